#include "inputs/stand_in.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "inputs/damage.hpp"

namespace trapline::inputs {
namespace {

// The first line of a pointer, and the most that one may have: the specification of Git LFS (docs/spec.md
// there).
constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/";
constexpr std::size_t kMaxPointer = 1024;

bool starts_with_any_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::ranges::equal(text.substr(0, lower.size()), lower, {}, [](char c) {
           return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
         });
}

// Files of a kind that is known and not read, by what they begin with.
struct Unread {
  std::string_view bytes;   // that stand
  std::size_t at;           // here
  std::string_view also;    // and these, when there are any,
  std::int64_t also_at;     // here; negative: from the end
  std::string_view ending;  // and the file's name ends so, when it says anything
  std::string_view what, fix;
};

constexpr std::string_view kSheet = "Excel sheets are not read";
constexpr std::string_view kSheetFix = "save the sheet as CSV";

// From the formats' own specifications: HDF5's superblock (behind a user block of 512 bytes in files of
// MATLAB 7.3), ORC's postscript, Avro's object container,
// MAT-file level 5, LMDB's first meta page (64 bit), MXNet's recordio, ZIP and OLE2.
constexpr Unread kUnread[] = {
    {"ORC", 0, "ORC", -4, "", "ORC is not read",
     "write it as Parquet: pyarrow.parquet.write_table(pyarrow.orc.read_table('FILE'), 't.parquet')"},
    {std::string_view("Obj\x01", 4), 0, "", 0, "", "Avro is not read", "write its records as JSON lines"},
    {"MATLAB 5.0 MAT-file", 0, "", 0, "", "MATLAB files are not read",
     "write each of its arrays as .npy: numpy.save('labels.npy', scipy.io.loadmat('FILE')['labels'])"},
    {std::string_view("\xde\xc0\xef\xbe\x01\0\0\0", 8), 16, "", 0, "", "LMDB is not read",
     "write its labels as .npy or CSV"},
    {std::string_view("\x0a\x23\xd7\xce", 4), 0, "", 0, ".rec", "RecordIO is not read",
     "write its labels as .npy or CSV"},
    {std::string_view("PK\x03\x04", 4), 0, "", 0, ".xlsx", kSheet, kSheetFix},
    {std::string_view("PK\x03\x04", 4), 0, "", 0, ".xlsm", kSheet, kSheetFix},
    {std::string_view("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 8), 0, "", 0, ".xls", kSheet, kSheetFix},
};

bool has(std::string_view text, std::size_t at, std::string_view bytes) {
  return at <= text.size() && text.substr(at).starts_with(bytes);
}

bool is(const Unread& kind, const std::string& path, std::string_view text) {
  const auto size = static_cast<std::int64_t>(text.size());
  const std::int64_t also_at = kind.also_at < 0 ? size + kind.also_at : kind.also_at;
  return path.ends_with(kind.ending) && has(text, kind.at, kind.bytes) &&
         (kind.also.empty() || (also_at >= 0 && has(text, static_cast<std::size_t>(also_at), kind.also)));
}

}  // namespace

std::optional<Error> stand_in(const std::string& path, std::span<const std::byte> bytes) {
  std::string_view text = as_text(bytes.first(std::min<std::size_t>(bytes.size(), 256)));
  if (bytes.size() < kMaxPointer && text.starts_with(kPointer)) {
    return unreadable(path, "this is a Git LFS pointer, not the file", "fetch the file with `git lfs pull`");
  }
  for (const Unread& kind : kUnread) {
    if (is(kind, path, as_text(bytes))) return unreadable(path, std::string(kind.what), kind.fix);
  }
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\xEF\xBB\xBF"), text.size()));
  if (starts_with_any_case(text, "<!doctype html") || starts_with_any_case(text, "<html")) {
    return unreadable(path, "this is a page of a web server (HTML), not the file: the download failed",
                      "download the file again, where it is gated with a login");
  }
  return std::nullopt;
}

}  // namespace trapline::inputs
