#include "check/columns.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace trapline::check {
namespace {

enum Word : unsigned {
  kLabel = 1U,
  kClass = 2U,
  kTarget = 4U,
  kMask = 8U,
  kFlags = 16U,
  kIdentifier = 32U,
  kToken = 64U,
  kPlace = 128U,
  kCoordinate = 256U,
  kOther = 512U,
};

struct Row {
  std::string_view word;
  Word means;
};
#define TRAPLINE_COLUMN_WORD(word, means) {word, means},
constexpr Row kWords[] = {
#include "check/columns.def"
};
#undef TRAPLINE_COLUMN_WORD

// How much a column speaks for being the labels; a better one makes the others none.
constexpr int kNoLabels = 0, kWeak = 1, kFair = 2, kStrong = 3;

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The last part of "objects.label" and of "labels.0" that is no number: what holds a value is what it is
// called.
std::string_view last_part(std::string_view path) {
  while (true) {
    const std::size_t dot = path.rfind('.');
    const std::string_view part = dot == path.npos ? path : path.substr(dot + 1);
    if (dot == path.npos || !is_digits(part)) return part;
    path = path.substr(0, dot);
  }
}

// What the words of a name speak for, together: "fine_label", "classId", "y_train".
unsigned words_of(std::string_view name) {
  unsigned found = 0;
  std::string word;
  const auto end = [&] {
    for (const Row& row : kWords) {
      if (row.word == word) found |= row.means;
    }
    word.clear();
  };
  bool lower = false;  // "classId" has two words
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '#') found |= kOther;  // "#trials / class": how many there are
    if (std::isalnum(byte) == 0 || (lower && std::isupper(byte) != 0)) end();
    lower = std::islower(byte) != 0;
    if (std::isalnum(byte) != 0) word += static_cast<char>(std::tolower(byte));
  }
  end();
  return found;
}

// Numbers with fractions, but for a few that may be mistakes.
bool has_fractions(const Evidence& column) { return column.fractions * 10 > column.seen; }

// Few different numbers that occur again and again, none of them negative but for a mistake here and there.
bool is_like_classes(const Evidence& column) {
  constexpr std::int64_t kFew = 20, kOften = 20;
  const std::int64_t often = is_floating(column.dtype) ? kOften : 2;
  const auto kinds = static_cast<std::int64_t>(column.distinct);
  return column.negative * 20 <= column.seen && (kinds <= kFew || kinds <= column.seen / often);
}

// Numbers on both sides of 0, hardly any of them twice: nobody's classes, whatever the name says.
bool is_signed_measure(const Evidence& column) {
  return column.negative * 4 > column.seen && !is_like_classes(column);
}

bool is_like_pixels(const Evidence& column) {
  constexpr std::size_t kMostClasses = 160;  // ADE20K has 150
  return !is_floating(column.dtype) && column.distinct <= kMostClasses && column.negative * 20 <= column.seen;
}

int text_strength(const Evidence& column, unsigned words) {
  constexpr std::int64_t kFew = 20;
  const auto kinds = static_cast<std::int64_t>(column.distinct);
  if ((words & kOther) != 0 || (kinds > kFew && kinds > column.texts / 2)) return kNoLabels;
  return (words & kLabel) != 0 ? kFair : kWeak;
}

int label_strength(const Evidence& column, unsigned words, bool places) {
  if (column.text) return text_strength(column, words);
  if (column.classes) return kStrong;
  if ((words & kOther) != 0 || has_fractions(column)) return kNoLabels;
  const bool webdataset = column.name == "cls";  // as its tars end the member with the label
  if ((words & kLabel) != 0 || webdataset) return is_signed_measure(column) ? kNoLabels : kStrong;
  if ((words & kMask) != 0) {
    return column.dims > 1 && (words & kFlags) == 0 && is_like_pixels(column) ? kWeak : kNoLabels;
  }
  if ((words & kPlace) != 0 || !is_like_classes(column)) return kNoLabels;
  if ((words & kClass) != 0) return kFair;
  const bool nested = column.name.find('.') != std::string::npos;
  return (words & kTarget) != 0 && !places && !nested ? kWeak : kNoLabels;
}

bool are_ids(const Evidence& column, unsigned words, bool lone) {
  if (has_fractions(column) || (words & (kOther | kLabel | kClass | kMask | kPlace)) != 0) return false;
  const bool rows = column.lists || column.dims > 1;
  if ((words & kToken) != 0)
    return (words & kIdentifier) != 0 || ((rows || lone) && !is_floating(column.dtype));
  return last_part(column.name) == "ids" && rows;
}

// One array, which has no name: numbers that could be classes are taken for them.
bool is_lone_label(const Evidence& column) {
  if (is_floating(column.dtype)) return false;
  return column.dims > 1 ? is_like_pixels(column) : is_like_classes(column);
}

}  // namespace

bool may_be_text_labels(std::string_view name) {
  const unsigned words = words_of(last_part(name));
  return (words & (kLabel | kClass)) != 0 && (words & (kOther | kMask | kPlace)) == 0;
}

bool says_label(std::string_view name) { return (words_of(last_part(name)) & kLabel) != 0; }

bool says_class(std::string_view name) { return (words_of(last_part(name)) & (kLabel | kClass)) != 0; }

std::vector<Role> roles_of(std::span<const Evidence> columns) {
  const bool lone = columns.size() == 1;
  std::vector<unsigned> words;
  bool places = false;  // x beside y in a table: both are coordinates, or a curve
  for (const Evidence& column : columns) {
    words.push_back(words_of(last_part(column.name)));
    // "input" alone says nothing: {"input": 0.5}
    places = places || ((words.back() & kCoordinate) != 0 && column.dims == 1);
  }
  std::vector<int> strength;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    strength.push_back(label_strength(columns[i], words[i], places));
  }
  const int best = strength.empty() ? kNoLabels : *std::ranges::max_element(strength);
  std::vector<Role> roles;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Evidence& column = columns[i];
    const bool nameless = lone && column.name.empty() && is_lone_label(column);
    if (nameless || (strength[i] == best && best > kNoLabels)) {
      roles.push_back(Role::kLabels);
    } else if (column.text || column.texts * 10 > column.seen) {
      roles.push_back(Role::kText);
    } else if (are_ids(column, words[i], lone)) {
      roles.push_back(Role::kIds);
    } else if ((words[i] & kMask) != 0 && ((words[i] & kFlags) != 0 || column.dims == 1)) {
      roles.push_back(Role::kMask);
    } else {
      roles.push_back(is_floating(column.dtype) ? Role::kNumbers : Role::kOther);
    }
  }
  return roles;
}

}  // namespace trapline::check
