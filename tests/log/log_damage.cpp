#include "log_damage.hpp"

#include <algorithm>

namespace trapline {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

template <class Change>
std::string by_line(const std::string& text, Change change) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += change(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return out;
}

std::function<std::string(const std::string&)> prefix(std::string_view what) {
  return [what](const std::string& text) {
    return by_line(text, [&](const std::string& line) { return std::string(what) + line; });
  };
}

std::function<std::string(const std::string&)> around(std::string_view before, std::string_view after) {
  return [before, after](const std::string& text) {
    return by_line(text, [&](const std::string& line) {
      return line.empty() ? line : std::string(before) + line + std::string(after);
    });
  };
}

std::function<std::string(const std::string&)> swap(std::string_view from, std::string_view to) {
  return [from, to](const std::string& text) { return replaced(text, from, to); };
}

// Hard wraps, with something before each piece but the first.
std::function<std::string(const std::string&)> wrap(std::size_t width, std::string_view first,
                                                    std::string_view next) {
  return [=](const std::string& text) {
    return by_line(text, [&](const std::string& line) {
      std::string out(first);
      for (std::size_t i = 0; i < line.size(); i += width)
        out += (i > 0 ? "\n" + std::string(next) : std::string()) + line.substr(i, width);
      return out;
    });
  };
}

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out + "\"";
}

std::function<std::string(const std::string&)> json(std::string_view before, std::string_view after) {
  return [before, after](const std::string& text) {
    return by_line(text, [&](const std::string& line) {
      return std::string(before) + json_string(line) + std::string(after);
    });
  };
}

std::string utf16(const std::string& text) {
  std::string out("\xff\xfe", 2);
  for (const char c : text) out += c, out += '\0';
  return out;
}

bool is_ascii(const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

std::string full_width(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case ':':
        out += "\uFF1A";
        break;
      case ',':
        out += "\uFF0C";
        break;
      case '(':
        out += "\uFF08";
        break;
      case ')':
        out += "\uFF09";
        break;
      case '=':
        out += "\uFF1D";
        break;
      case '<':
        out += "\uFF1C";
        break;
      case '>':
        out += "\uFF1E";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string html(const std::string& text) {
  return replaced(replaced(replaced(text, "&", "&amp;"), "<", "&lt;"), ">", "&gt;");
}

// Two ranks print the same at once; their pieces alternate.
std::string interleaved(const std::string& text) {
  return by_line(text, [](const std::string& line) { return "[rank1]: " + line + "\n[rank3]: " + line; });
}

// Mail as quoted-printable: "=" is "=3D", and long lines are broken behind "=".
std::string quoted_printable(const std::string& text) {
  return by_line(text, [](const std::string& line) {
    std::string out;
    std::size_t width = 0;
    for (const char c : line) {
      const std::string unit = c == '=' ? "=3D" : std::string(1, c);
      if (width + unit.size() > 75) out += "=\n", width = 0;
      out += unit;
      width += unit.size();
    }
    return out;
  });
}

}  // namespace

const std::vector<LogDamage>& log_damages() {
  static const auto* const all = new std::vector<LogDamage>{
      {"docker json-file",
       [](const std::string& t) {
         return by_line(t, [](const std::string& line) {
           return "{\"log\":" + json_string(line + "\n") +
                  ",\"stream\":\"stderr\",\"time\":\"2024-11-21T03:36:55.186800470Z\"}";
         });
       }},
      {"container runtime", prefix("2024-11-21T03:36:55.186800470Z stderr F ")},
      {"journald", prefix("Nov 21 10:00:00 node7 python3[4711]: ")},
      {"journald, json",
       json("{\"_HOSTNAME\":\"node7\",\"_PID\":\"4711\",\"MESSAGE\":", ",\"PRIORITY\":\"3\"}")},
      {"structlog", json("{\"event\":", ",\"level\":\"error\",\"timestamp\":\"2024-11-21T03:36:55Z\"}")},
      {"cloud logging", json("{\"severity\":\"ERROR\",\"textPayload\":", ",\"labels\":{\"a\":\"b\"}}")},
      {"json, the tag in one known key, the text in another",
       json("{\"level\":\"error\",\"message\":\"stderr\",\"event\":", ",\"ts\":1.5}")},
      {"json, the text in a key of its own", json("{\"msg\":\"child output\",\"meta\":{\"chunk\":", "}}")},
      {"json, nested", json("{\"meta\":{\"message\":\"x\"},\"data\":{\"a\":{\"b\":{\"text\":", "}}}}")},
      {"json, a list", json("[\"2024-11-21T03:36:55Z\",\"stderr\",", "]")},
      {"journald, json, as bytes",
       [](const std::string& t) {
         return by_line(t, [](const std::string& line) {
           std::string bytes;
           for (const char c : line)
             bytes +=
                 (bytes.empty() ? "" : ",") + std::to_string(static_cast<int>(static_cast<unsigned char>(c)));
           return "{\"_PID\":\"4711\",\"MESSAGE\":[" + bytes + "],\"PRIORITY\":\"3\"}";
         });
       }},
      {"asciinema",
       [](const std::string& t) {
         std::string out = "{\"version\": 2, \"width\": 120, \"height\": 40}\n";
         for (std::size_t at = 0; at < t.size(); at += 50)
           out += "[" + std::to_string(at) + ".5, \"o\", " + json_string(t.substr(at, 50)) + "]\n";
         return out;
       }},
      {"blanks by the cursor", swap(" ", "\x1b[1C")},
      {"notebook",
       [](const std::string& t) {
         return "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"outputs\": [\n    {\n     "
                "\"name\": \"stderr\",\n"
                "     \"output_type\": \"stream\",\n     \"text\": [\n" +
                by_line(t,
                        [](const std::string& line) { return "      " + json_string(line + "\n") + ","; }) +
                "      \"\"\n     ]\n    }\n   ],\n   \"source\": [\"CUDA error: out of memory\"]\n  }\n "
                "]\n}\n";
       }},
      {"whole log in one json string",
       [](const std::string& t) { return "{\"message\": " + json_string(t) + "}\n"; }},
      {"kubectl --prefix", prefix("[pod/trainer-0/main] ")},
      {"docker compose", prefix("trainer-1  | ")},
      {"torchrun", prefix("[default3]:")},
      {"rank tag", prefix("[rank3]: ")},
      {"mpirun", prefix("[1,3]<stderr>:")},
      {"sagemaker", prefix("[1,mpirank:3,algo-1]<stderr>:")},
      {"srun --label", prefix("3: ")},
      {"ray", prefix("(RayTrainWorker pid=2280, ip=10.0.0.3) ")},
      {"ray, coloured", prefix("\x1b[36m(RayTrainWorker pid=2280, ip=10.0.0.3)\x1b[0m ")},
      {"vllm", prefix("(EngineCore_DP0 pid=123) ERROR 01-22 09:02:21 [core.py:591] ")},
      {"vllm, old", prefix("ERROR 01-22 09:02:21 multiproc_worker_utils.py:236] ")},
      {"loguru", prefix("2024-11-21 03:36:55.186 | ERROR    | trainer.loop:fit:120 - ")},
      {"logging", prefix("2024-11-21 03:36:55,186 - trainer - ERROR - ")},
      {"hydra", prefix("[2024-11-21 03:36:55,186][trainer][ERROR] - ")},
      {"github actions", prefix("2024-11-21T03:36:55.1868004Z ")},
      {"github actions, error", prefix("2024-11-21T03:36:55.1868004Z ##[error]")},
      {"azure", prefix("2024/11/21 03:36:55 ")},
      {"syslog, RFC 5424", prefix("<34>1 2024-11-21T03:36:55.003Z node7 python3 4711 - - ")},
      {"grep -n", prefix("train.log:153:")},
      {"pager's numbers", prefix("  153  ")},
      {"editor's numbers", prefix("153 | ")},
      {"ansi red", around("\x1b[31m", "\x1b[0m")},
      {"ansi, escape lost", around("[31m", "[0m")},
      {"ansi, caret", around("^[[1;31m", "^[[0m")},
      {"grep --color", swap("Assertion", "\x1b[01;31m\x1b[KAssertion\x1b[m\x1b[K")},
      {"windows line ends", [](const std::string& t) { return replaced(t, "\n", "\r\n"); }},
      {"byte order mark", [](const std::string& t) { return "\xef\xbb\xbf" + t; }},
      {"utf-16", [](const std::string& t) { return is_ascii(t) ? utf16(t) : t; }},
      {"bar before, overwritten", prefix("  3%|2    | 40/1200 [01:20<19:20,  0.69it/s]\r")},
      {"bar glued", prefix("  3%|2    | 40/1200 [01:20<19:20,  0.69it/s]")},
      {"bar of keras glued", prefix(" 12/100 [==>...........] - ETA: 12s - loss: 0.6931")},
      {"step glued", prefix("Epoch 1 step 7 loss 0.693")},
      {"fenced", [](const std::string& t) { return "```\n" + t + "```\n"; }},
      {"fence glued", [](const std::string& t) { return "```" + t.substr(0, t.size() - 1) + "```\n"; }},
      {"quoted twice", prefix("> > ")},
      {"quoted, no blank", prefix(">")},
      {"bullet", prefix("* ")},
      {"indented", prefix("        ")},
      {"table", around("| ", " |")},
      {"bold", around("**", "**")},
      {"inline code", around("`", "`")},
      {"code tag", around("<code>", "</code>")},
      {"html paragraphs", around("<p>", "</p><br/>")},
      {"html entities", [](const std::string& t) { return replaced(html(t), "\"", "&quot;"); }},
      {"html entities twice",
       [](const std::string& t) {
         return replaced(replaced(replaced(t, "&", "&amp;amp;"), "<", "&amp;lt;"), ">", "&amp;gt;");
       }},
      {"no-break spaces", swap(" ", "\u00a0")},
      {"doubled blanks", swap(" ", "  ")},
      {"zero-width spaces", swap("_", "_\u200b")},
      {"soft hyphens", swap("ss", "s\u00ads")},
      {"curly quotes",
       [](const std::string& t) {
         return replaced(
             replaced(replaced(t, "Assertion `", "Assertion \u2018"), "` failed", "\u2019 failed"), "'",
             "\u2019");
       }},
      {"acute accents", swap("`", "\u00b4")},
      {"ligatures",
       [](const std::string& t) { return replaced(replaced(t, ">=", "\u2265"), "<=", "\u2264"); }},
      {"dashes", swap("-", "\u2013")},
      {"full width", full_width},
      {"doubled back-quotes", swap("`", "``")},
      {"lost back-quotes", swap("`", "")},
      {"escaped underscores", swap("_", "\\_")},
      {"escaped stars and brackets",
       [](const std::string& t) { return replaced(replaced(t, "[", "\\["), "]", "\\]"); }},
      {"wrapped at 80", wrap(80, "", ""), true, false},
      {"wrapped at 100", wrap(100, "", ""), true, false},
      {"wrapped at 72, quoted", wrap(72, "> ", "> "), true, false},
      {"wrapped at 120, indented", wrap(120, "", "    "), true, false},
      {"wrapped at 90 under a prefix", wrap(90, "trainer-1  | ", "trainer-1  | "), true, false},
      {"quoted-printable", quoted_printable, true, false},
      {"literal line ends",
       [](const std::string& t) {
         return "Error: step failed\\n" + replaced(t, "\n", "\\n") + "exit status 1\\n" + "\n";
       }},
      {"list of lines",
       [](const std::string& t) {
         std::string out = "stderr=[";
         by_line(t,
                 [&](const std::string& line) { return out += "'" + replaced(line, "'", "\\'") + "\\n', "; });
         return out + "'']\n";
       }},
      {"bytes",
       [](const std::string& t) { return "b'" + replaced(replaced(t, "'", "\\'"), "\n", "\\n") + "'\n"; }},
      {"two ranks by line", interleaved},
      {"hip",
       [](const std::string& t) {
         return replaced(replaced(replaced(t, ".cu:", ".hip:"), "Assertion `", "Device-side assertion `"),
                         "` failed", "' failed");
       },
       false},
      {"windows path", [](const std::string& t) { return replaced(t, "/", "\\"); }, false},
      {"tail replaced", swap(" failed.", " failed. ..."), false},
      {"shell prompt",
       [](const std::string& t) {
         return "(env) user@host:~/proj$ python train.py\n" + t + "(env) user@host:~/proj$\n";
       }},
      {"behind healthy text",
       [](const std::string& t) {
         std::string out;
         for (int i = 0; i < 400; ++i) out += "step " + std::to_string(i) + " loss 0.693 lr 1e-4\n";
         return out + t + "wandb: Run history: done\n";
       }},
  };
  return *all;
}

const std::vector<LogDamage>& line_damages() {
  static const auto* const all = new std::vector<LogDamage>{
      {"none", [](const std::string& t) { return t; }},
      {"lost back-quotes", swap("`", "")},
      {"doubled back-quotes", swap("`", "``")},
      {"straight quotes", swap("`", "'")},
      {"missing dot", [](const std::string& t) { return t.substr(0, t.size() - 1); }, false},
      {"markdown bold", [](const std::string& t) { return "**" + t + "**"; }},
      {"markdown bold condition",
       [](const std::string& t) {
         return replaced(replaced(t, "Assertion `", "Assertion **`"), "` failed", "`** failed");
       }},
      {"underscored words",
       [](const std::string& t) {
         return replaced(replaced(t, "Assertion", "__Assertion"), "failed.", "failed__.");
       }},
      {"inline code", [](const std::string& t) { return "`" + t + "`"; }},
      {"quoted mail", [](const std::string& t) { return "> " + t; }},
      {"box", [](const std::string& t) { return "\u2502 " + t + "      \u2502"; }},
      {"html", [](const std::string& t) { return replaced(html(t), " ", "&nbsp;"); }},
      {"json escapes",
       [](const std::string& t) {
         return replaced(replaced(replaced(t, "<", "\\u003c"), ">", "\\u003e"), "&", "\\u0026");
       }},
      {"glued to a bar",
       [](const std::string& t) { return "  3%|2         | 40/1200 [01:20<19:20, 0.69it/s]" + t; }},
      {"glued to text", [](const std::string& t) { return "Right, so" + t; }},
      {"time stamp", [](const std::string& t) { return "2024-11-21T03:36:55.186800470Z " + t; }},
      {"line number", [](const std::string& t) { return "10888:" + t; }},
      {"literal line ends", [](const std::string& t) { return "failed.\\n" + t + "\\n" + t; }},
      {"hip",
       [](const std::string& t) {
         const std::size_t block = t.find("block: ["), assertion = t.find("Assertion");
         if (block == std::string::npos || assertion == std::string::npos || assertion < block) return t;
         return replaced(t.substr(0, block) + "Device-side assertion" + t.substr(assertion + 9),
                         ".cu:", ".hip:");
       }},
      {"windows",
       [](const std::string& t) {
         const std::size_t block = t.find("block: ["), colon = t.find(": ");
         if (block == std::string::npos || colon == std::string::npos || colon > block) return t;
         return "C:\\b\\pytorch\\" + replaced(t.substr(0, colon), "/", "\\") + ": " + t.substr(block);
       },
       true, false},
      {"full width", full_width},
      {"wrapped at 80", wrap(80, "", ""), true, false},
      {"wrapped at 119", wrap(119, "", ""), true, false},
      {"read by OCR", [](const std::string& t) { return replaced(replaced(t, "Index", "1ndex"), "o", "0"); },
       true, false},
      {"cut after the condition", [](const std::string& t) { return t.substr(0, t.rfind("` failed") + 4); },
       false, false},
      {"beginning cut off",
       [](const std::string& t) { return t.substr(std::min(t.find("thread:"), t.size() - 1)); }, false,
       false},
      {"blanks at the end", [](const std::string& t) { return t + "            "; }},
      {"^M", [](const std::string& t) { return t + "^M"; }},
  };
  return *all;
}

}  // namespace trapline
