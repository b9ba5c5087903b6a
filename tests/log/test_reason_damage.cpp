// Every assertion that a user can reach, through every way in which a log is damaged on its way: the cause
// must survive, or at least never turn into another one that is claimed with certainty.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/asserts.hpp"
#include "catalogue/fold.hpp"
#include "reason_case.hpp"

namespace trapline {
namespace {

using Damage = std::function<std::string(const std::string&)>;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string wrapped(const std::string& text, std::size_t width) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += width) out += text.substr(i, width) + "\n";
  return out;
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
      default:
        out += c;
    }
  }
  return out;
}

struct Named {
  const char* name;
  Damage damage;
  bool keeps_fields = true;  // the row's operation must survive, too
};

const std::vector<Named>& damages() {
  static const auto* const all = new std::vector<Named>{
      {"none", [](const std::string& t) { return t; }},
      {"lost back-quotes", [](const std::string& t) { return replaced(t, "`", ""); }},
      {"doubled back-quotes", [](const std::string& t) { return replaced(t, "`", "``"); }},
      {"straight quotes", [](const std::string& t) { return replaced(t, "`", "'"); }},
      {"missing dot", [](const std::string& t) { return t.substr(0, t.size() - 1); }},
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
      {"html",
       [](const std::string& t) {
         return replaced(replaced(replaced(replaced(t, "&", "&amp;"), "<", "&lt;"), ">", "&gt;"), " ",
                         "&nbsp;");
       }},
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
       false},
      {"full width", full_width},
      {"wrapped at 80", [](const std::string& t) { return wrapped(t, 80); }, false},
      {"wrapped at 119", [](const std::string& t) { return wrapped(t, 119); }, false},
      {"read by OCR", [](const std::string& t) { return replaced(replaced(t, "Index", "1ndex"), "o", "0"); },
       false},
      {"cut after the condition", [](const std::string& t) { return t.substr(0, t.rfind("` failed") + 4); },
       false},
      {"beginning cut off",
       [](const std::string& t) { return t.substr(std::min(t.find("thread:"), t.size() - 1)); }, false},
      {"blanks at the end", [](const std::string& t) { return t + "            "; }},
      {"^M", [](const std::string& t) { return t + "^M"; }},
  };
  return *all;
}

// Conditions that only their file tells ("false", "end >= begin") may be lost with it.
bool distinctive(const AssertRow& row) { return fold(row.condition).size() >= 9; }

TEST(Damage, TheCauseSurvives) {
  for (const AssertRow& row : assert_rows()) {
    if (row.reach != Reach::kUser || row.condition.empty() || row.cause == Cause::kInsufficientEvidence ||
        row.sample.find("block: [") == std::string_view::npos || row.sample.starts_with("RuntimeError"))
      continue;
    for (const Named& named : damages()) {
      const std::string text = named.damage(std::string(row.sample));
      const Report report = explain(text + "\n");
      const Finding f = report.findings.empty() ? Finding{} : report.findings.front();
      const bool sure = f.certainty == Certainty::kDetermined || f.certainty == Certainty::kProven;
      if (distinctive(row)) {
        EXPECT_EQ(f.cause, row.cause) << named.name << ": " << text;
        EXPECT_EQ(f.device_assert, true) << named.name << ": " << text;
        if (named.keeps_fields) {
          EXPECT_EQ(f.op, row.op) << named.name << ": " << text;
        }
      } else if (sure) {
        EXPECT_EQ(f.cause, row.cause) << named.name << ": " << text;
      }
    }
  }
}

TEST(Damage, MessagesSurvive) {
  for (const std::string message :
       {"RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: misaligned address",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device"}) {
    const Cause cause = root(message).cause;
    for (const Named& named : damages()) {
      if (std::string_view(named.name) == "missing dot" || std::string_view(named.name).starts_with("cut") ||
          std::string_view(named.name).starts_with("beginning"))
        continue;
      const std::string text = named.damage(message);
      EXPECT_EQ(root(text + "\n").cause, cause) << named.name << ": " << text;
    }
  }
}

TEST(Damage, TwoRanksTornInsideOneLine) {
  const std::string_view text =
      "0,0:115: operator(): block: [3374,0,0], thread: "
      "[29/p/aten/src/ATen/native/cuda/ScatterGatherKernel.cu/p/aten/src/ATen/native/"
      "cuda/ScatterGatherKernel.cu:115: operator(): block: [5859,0,0], thread: [7,0,0] Assertion `idx_dim >= "
      "0 && idx_dim < index_size && "
      "\"index out of bounds\"` failed.\n"
      "/p/aten/src/ATen/native/cuda/ScatterGatherKernel.cu], thread: [105,0,0] Assertion `idx_dim >= 0 && "
      "idx_dim < index_size && \"index "
      "out of bounds\"` failed.\n";
  const Finding f = root(text);
  EXPECT_EQ(f.cause, Cause::kIndexOutOfRange);
  EXPECT_EQ(f.op, "gather");
}

TEST(Damage, TranslatedWithoutItsCondition) {
  const Finding f = root(
      "../aten/src/ATen/native/cuda/IndexKernel.cu\uFF1A92\uFF1A operator\uFF08\uFF09\uFF1A block\uFF1A "
      "[16,0,0]\uFF0C "
      "thread\uFF1A [15,0,0] \u65AD\u8A00\u5931\u8D25\u3002\n");
  EXPECT_EQ(f.cause, Cause::kIndexOutOfRange);
  EXPECT_EQ(f.certainty, Certainty::kLikely);  // the condition is lost
}

TEST(Damage, CutInTheMiddleOfThePlace) {
  const Finding f = root(
      "/pytorch/aten/src/THCUNN/ClassNLLCriterion.cu:105: void "
      "cunn_ClassNLLCriterion_updateOutput_kernel(Dtype *, long       "
      "   *, int) [with Dtype = float]: block: [0,0,0], thread: [");
  EXPECT_EQ(f.cause, Cause::kLabelOutOfRange);
  EXPECT_EQ(f.certainty, Certainty::kLikely);
}

}  // namespace
}  // namespace trapline
