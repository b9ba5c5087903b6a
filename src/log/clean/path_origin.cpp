#include <array>

#include "log/clean/prefix.hpp"
#include "log/clean/prefix_cursor.hpp"

namespace trapline {
namespace {

using prefix::Cursor;
using prefix::digit;

std::string_view last_part(std::string_view& path) {
  while (path.ends_with('/') || path.ends_with('\\')) path.remove_suffix(1);
  const std::size_t slash = path.find_last_of("/\\");
  const std::string_view part = slash == path.npos ? path : path.substr(slash + 1);
  path = slash == path.npos ? std::string_view{} : path.substr(0, slash);
  return part;
}

// The number behind `word` in `text` ("rank3", "rank_03", "RANK-3"), where the word does not continue another
// one.
std::int64_t number_behind(std::string_view text, std::string_view word) {
  for (std::size_t i = 0; i + word.size() < text.size(); ++i) {
    if (i > 0 && (prefix::lower(text[i - 1]) || prefix::upper(text[i - 1]))) continue;
    Cursor at(text.substr(i));
    if (!at.take_word(word)) continue;
    if (!digit(at.peek()))
      at.take(at.peek() == '-' || at.peek() == '_' || at.peek() == '.' ? at.peek() : '=');
    std::int64_t number = 0;
    if (at.number(number, 1, 6)) return number;
  }
  return -1;
}

bool is_number(std::string_view text) {
  std::int64_t number = 0;
  Cursor at(text);
  return at.number(number, 1, 6) && at.at_end();
}

std::int64_t to_number(std::string_view text) {
  std::int64_t number = 0;
  Cursor(text).number(number, 1, 18);
  return number;
}

}  // namespace

Origin origin_of_path(std::string_view path) {
  Origin origin;
  std::string_view file = last_part(path);
  std::string_view folder = last_part(path);
  for (const std::string_view end : {".gz", ".zst", ".bz2", ".xz"}) {
    if (file.ends_with(end)) file.remove_suffix(end.size());
  }
  std::int64_t rank = -1;
  // Ray: worker-<hash>-01000000-4711.err names the process.
  if (file.starts_with("worker-") && (file.ends_with(".err") || file.ends_with(".out"))) {
    const std::string_view stem = file.substr(0, file.size() - 4);
    const std::string_view pid = stem.substr(stem.rfind('-') + 1);
    if (stem.size() > 40 && is_number(pid)) {
      origin.pid = to_number(pid);
      return origin;
    }
  }
  const std::string_view stem = file.substr(0, file.find_last_of('.'));
  for (const std::string_view word : {"rank", "worker", "proc", "process", "task", "gpu", "trainer", "tp"}) {
    if (rank < 0) rank = number_behind(file, word);
  }
  if (rank < 0 &&
      (stem == "stderr" || stem == "stdout" || stem == "log" || stem == "output" || stem == "error")) {
    rank = number_behind(
        folder, "rank");  // rank3/stderr.log; torchrun and mpirun: attempt_0/3/stderr.log, 1/rank.3/stderr
    if (rank < 0 && is_number(folder)) rank = to_number(folder);
  }
  // 3.log; longer numbers are jobs, and 048 is the forty-eighth of something.
  const bool is_plain = stem.size() <= 3 && (stem.size() == 1 || !stem.starts_with('0'));
  if (rank < 0 && is_number(stem) && is_plain) {
    rank = to_number(stem);
    origin.is_bare_number = true;
  }
  if (rank >= 0) origin.rank = static_cast<int>(rank);
  return origin;
}

}  // namespace trapline
