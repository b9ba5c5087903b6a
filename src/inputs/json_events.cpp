#include "inputs/json_events.hpp"

#include <limits>
#include <type_traits>

#include "inputs/damage.hpp"

namespace trapline::inputs {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kValuesPerPiece = std::size_t{1} << 14U;

}  // namespace

Result<bool> JsonEvents::read(const std::string& path, std::string_view text) {
  const bool whole = nlohmann::json::sax_parse(text.begin(), text.end(), this);
  finish();
  for (auto& [name, column] : columns_) column->flush();
  if (!whole && !problem_.empty())
    return offset_ > 0 ? damaged(path, offset_, problem_) : unreadable(path, problem_);
  return !sink_.stopped();
}

void JsonEvents::put_path(std::size_t from) {
  path_.clear();
  for (std::size_t i = from; i < levels_.size(); ++i) {
    if (levels_[i].list) continue;
    if (!path_.empty()) path_ += '.';
    path_ += levels_[i].key;
  }
}

void JsonEvents::flush(const std::string& path) {
  const auto found = columns_.find(path);
  if (found != columns_.end()) found->second->flush();
}

ValueColumn* JsonEvents::find() {
  const auto found = columns_.find(path_);
  return found == columns_.end() ? nullptr : found->second.get();
}

void JsonEvents::malformed(std::string_view text) {
  const Cell cell = locate();
  if (!cell.data) return;
  if (ValueColumn* column = find()) column->malformed(cell.row, 0, text);
}

// Null: it is passed over.
ValueColumn* JsonEvents::text_column() {
  const auto found = texts_.find(path_);
  if (found != texts_.end()) return found->second.get();
  if (texts_.size() == kMaxColumns) return nullptr;
  auto made = std::make_unique<ValueColumn>(sink_, Column{path_, DType::kInt64, {-1}, {}, true}, 1);
  if (!made->begin()) {
    made = nullptr;
    sink_.skipped(path_, "text");
  }
  return texts_.emplace(path_, std::move(made)).first->second.get();
}

bool JsonEvents::null() {
  malformed("");
  passed();
  return !sink_.stopped();
}

bool JsonEvents::boolean(bool flag) { return number(std::int64_t{flag}); }

bool JsonEvents::number_integer(std::int64_t number) { return this->number(number); }

bool JsonEvents::number_unsigned(std::uint64_t number) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (number <= kMax) return this->number(static_cast<std::int64_t>(number));
  malformed(std::to_string(number));
  passed();
  return !sink_.stopped();
}

bool JsonEvents::number_float(double number, const std::string&) { return this->number(number); }

bool JsonEvents::string(std::string& text) {
  this->text(text);
  if (const Cell cell = locate(); cell.data) {
    if (ValueColumn* column = find()) {
      column->malformed(cell.row, 0, text);
    } else if (ValueColumn* texts = text_column()) {
      texts->malformed(cell.row, 0, text);
    }
  }
  passed();
  return !sink_.stopped();
}

bool JsonEvents::key(std::string& key) {
  levels_.back().key = std::move(key);
  return true;
}

bool JsonEvents::parse_error(std::size_t position, const std::string&,
                             const nlohmann::detail::exception& error) {
  offset_ = position;
  problem_ = "no valid JSON";
  const std::string text = error.what();
  const std::size_t why = text.rfind("; ");
  if (why != text.npos) problem_ += ": " + text.substr(why + 2, 80);
  return false;
}

bool JsonEvents::open(bool list) {
  if (levels_.size() == kMaxDepth) {
    problem_ = "nested more than 64 deep";
    return false;
  }
  levels_.push_back({list, {}});
  opened();
  return !sink_.stopped();
}

bool JsonEvents::close() {
  levels_.pop_back();
  closed();
  return true;
}

template <class T>
bool JsonEvents::number(T number) {
  if constexpr (std::is_same_v<T, std::int64_t>) integer(number);
  if (const Cell cell = locate(); cell.data) {
    ValueColumn* column = find();
    if (column == nullptr && columns_.size() < kMaxColumns) {
      constexpr DType kType = std::is_same_v<T, double> ? DType::kFloat64 : DType::kInt64;
      auto made = std::make_unique<ValueColumn>(sink_, Column{path_, kType, {-1}}, kValuesPerPiece);
      made->begin();
      column = made.get();
      columns_.emplace(path_, std::move(made));
    }
    if (column != nullptr) {
      if (levels_.back().list && is_list()) column->has_lists();
      column->add(cell.row, 0, number);
    }
  }
  passed();
  return !sink_.stopped();
}

}  // namespace trapline::inputs
