#include "inputs/json_records.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace trapline::inputs {
namespace {

using simdjson::SUCCESS;

constexpr std::size_t kMaxKeys = 65536;  // of one object; more are data, not names
constexpr std::size_t kMaxNulls = JsonKey::kMaxNulls;
constexpr std::size_t kMaxRaw = 80;
constexpr std::size_t kValuesPerPiece = std::size_t{1} << 14U;

}  // namespace

JsonRecords::Key& JsonRecords::below(Key& key, std::string_view name) {
  // Records have their keys in the same order, so the next one is nearly always the one after the last.
  for (std::size_t tried = 0; tried < key.below.size(); ++tried) {
    if (key.guess >= key.below.size()) key.guess = 0;
    Key& candidate = *key.below[key.guess++];
    if (candidate.name == name) return candidate;
  }
  auto fresh = std::make_unique<Key>();
  fresh->name = std::string(name);
  fresh->path = key.path.empty() ? fresh->name : key.path + "." + fresh->name;
  fresh->id = keys_.size();
  for (const char c : fresh->name) {
    fresh->plain = fresh->plain && static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
    fresh->ascii = fresh->ascii && static_cast<unsigned char>(c) < 0x80;
  }
  keys_.push_back(fresh.get());
  ++changes_;
  key.below.push_back(std::move(fresh));
  key.guess = key.below.size();
  return *key.below.back();
}

// Null: the sink does not want it.
ValueColumn* JsonRecords::column_of(Key& key) {
  if (key.column == nullptr) {
    if (columns_ == kMaxJsonColumns) {
      if (!key.told) sink_.skipped(key.path, "more than 1024 different keys with numbers");
      changes_ += key.told ? 0 : 1;
      key.told = true;
      return nullptr;
    }
    ++columns_;
    ++changes_;
    key.column = std::make_unique<ValueColumn>(sink_, Column{key.path, DType::kInt64, {-1}}, kValuesPerPiece);
    key.column->begin();
    for (const auto& [row, line] : key.nulls) key.column->malformed(row, line, "");
    key.nulls = {};
  }
  if (key.lists) key.column->has_lists();
  return key.column->wanted() ? key.column.get() : nullptr;
}

template <class T>
simdjson::error_code JsonRecords::number(T& value, Key& key) {
  ValueColumn* column = column_of(key);
  if (column == nullptr) return SUCCESS;  // not decoded
  ondemand::number parsed;
  if (const auto problem = value.get_number().get(parsed); problem != SUCCESS) {
    return special(value, key) ? SUCCESS : problem;  // "-Infinity"
  }
  if (parsed.is_double()) {
    column->add(row_, line_, parsed.get_double());
  } else if (parsed.is_int64()) {
    column->add(row_, line_, parsed.get_int64());
  } else {
    column->malformed(row_, line_, std::to_string(parsed.get_uint64()));
  }
  return SUCCESS;
}

// What JSON has no word for and Python's json writes all the same.
template <class T>
bool JsonRecords::special(T& value, Key& key) {
  std::string_view token;
  if (simdjson::simdjson_result<std::string_view>(value.raw_json_token()).get(token) != SUCCESS) return false;
  token = token.substr(0, std::min(token.find_last_not_of(" \t\r\n") + 1, token.size()));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double number = 0;
  if (token == "NaN") {  // as Python writes a missing value
    null(key);
    return true;
  }
  if (token == "Infinity" || token == "-Infinity") {
    number = token[0] == '-' ? -kInfinity : kInfinity;
  } else {
    return false;
  }
  if (ValueColumn* column = column_of(key)) column->add(row_, line_, number);
  return true;
}

void JsonRecords::null(Key& key) {
  if (key.column != nullptr) {
    key.column->malformed(row_, line_, "");
  } else if (key.nulls.size() < kMaxNulls) {
    changes_ += key.nulls.empty() ? 1 : 0;
    key.nulls.emplace_back(row_, line_);
  }
}

void JsonRecords::note_absent(Key& object, std::size_t fields) {
  if (fields == object.below.size()) return;
  for (auto& key : object.below) {
    if (key->latest != object.objects && key->counts_absent()) key->absent.emplace_back(row_, line_);
  }
}

void JsonRecords::tell_absent(Key& object) {
  for (auto& key : object.below) {
    tell_absent(*key);
    const std::uint64_t count = object.objects - key->seen;
    if (key->column == nullptr || !key->column->wanted() || count == 0) continue;
    if (count > key->seen || key->absent.empty()) continue;
    key->column->flush();
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto& [row, line] = key->absent[std::min<std::size_t>(i, key->absent.size() - 1)];
      key->column->malformed(row, line, "");
    }
  }
}

void JsonRecords::text(Key& key, std::string_view raw) {
  if (key.column != nullptr) return key.column->malformed(row_, line_, raw);
  if (!key.told) {
    key.texts = std::make_unique<ValueColumn>(sink_, Column{key.path, DType::kInt64, {-1}, {}, true}, 1);
    if (!key.texts->begin()) {
      key.texts = nullptr;
      sink_.skipped(key.path, "text");
    }
    ++changes_;
  }
  key.told = true;
  if (key.texts != nullptr) key.texts->malformed(row_, line_, raw);
}

// A list or an object where the records before had a number.
template <class T>
simdjson::error_code JsonRecords::other_kind(T& list_or_object, Key& key) {
  std::string_view raw;
  if (const auto problem = list_or_object.raw_json().get(raw); problem != SUCCESS) return problem;
  key.column->malformed(row_, line_, raw.substr(0, kMaxRaw));
  return SUCCESS;
}

template <class T>
simdjson::error_code JsonRecords::value(T& value, Key& key, int depth) {
  ondemand::json_type type;
  if (const auto problem = value.type().get(type); problem != SUCCESS) {
    return special(value, key) ? SUCCESS : problem;
  }
  if (depth > kMaxJsonDepth) {
    deep_ = key.path;
    return simdjson::DEPTH_ERROR;
  }
  switch (type) {
    case ondemand::json_type::array: {
      ondemand::array elements;
      if (const auto problem = value.get_array().get(elements); problem != SUCCESS) return problem;
      if (key.is_number()) return other_kind(elements, key);
      for (auto element : elements) {
        if (element.error() != SUCCESS) return element.error();
        ondemand::value each = element.value_unsafe();
        changes_ += key.lists ? 0 : 1;
        key.lists = true;
        if (const auto problem = this->value(each, key, depth + 1); problem != SUCCESS) return problem;
      }
      return SUCCESS;
    }
    case ondemand::json_type::object: {
      ondemand::object fields;
      if (const auto problem = value.get_object().get(fields); problem != SUCCESS) return problem;
      if (key.is_number()) return other_kind(fields, key);
      key.guess = 0;
      if (key.objects++ == 0) key.began = {row_, line_};
      std::size_t count = 0;
      for (auto field : fields) {
        std::string_view name;
        ondemand::value each;
        if (const auto problem = field.error(); problem != SUCCESS) return problem;
        if (const auto problem = field.unescaped_key().get(name); problem != SUCCESS) return problem;
        Key& next = below(key, name);
        if (key.below.size() > kMaxKeys) return simdjson::CAPACITY;
        if (const auto problem = field.value().get(each); problem != SUCCESS) return problem;
        if (next.latest != key.objects) {  // not the same key twice
          if (next.seen == 0 && key.objects > 1) next.absent.push_back(key.began);
          next.latest = key.objects;
          ++next.seen;
          ++count;
        }
        if (const auto problem = this->value(each, next, depth + 1); problem != SUCCESS) return problem;
      }
      note_absent(key, count);
      return SUCCESS;
    }
    case ondemand::json_type::number:
      return number(value, key);
    case ondemand::json_type::string: {
      if (key.column != nullptr && !key.column->wanted()) return SUCCESS;
      if (key.column == nullptr && key.told && (key.texts == nullptr || !key.texts->wanted())) return SUCCESS;
      std::string_view characters;
      if (const auto problem = value.get_string().get(characters); problem != SUCCESS) return problem;
      text(key, characters);
      return SUCCESS;
    }
    case ondemand::json_type::boolean: {
      ValueColumn* column = column_of(key);
      if (column == nullptr) return SUCCESS;
      bool flag = false;
      if (const auto problem = value.get_bool().get(flag); problem != SUCCESS) return problem;
      column->add(row_, line_, std::int64_t{flag});
      return SUCCESS;
    }
    case ondemand::json_type::null: {
      bool is_null = false;
      const auto problem = value.is_null().get(is_null);
      if (problem != SUCCESS || !is_null) return simdjson::N_ATOM_ERROR;
      null(key);
      return SUCCESS;
    }
  }
  return SUCCESS;
}

std::string JsonRecords::record(ondemand::document& document, std::int64_t row, std::int64_t line) {
  row_ = row;
  line_ = line;
  const auto problem = value(document, root_, 0);
  if (problem == simdjson::DEPTH_ERROR && !deep_.empty()) {
    return in_quotes(deep_) + " is nested more than " + std::to_string(kMaxJsonDepth) + " deep";
  }
  if (problem == simdjson::DEPTH_ERROR) return "it is nested too deep";
  if (problem == simdjson::CAPACITY) return "an object of it has more than 65536 keys";
  if (problem != SUCCESS) return json_problem(problem);
  if (!at_end(document)) return "text behind the end of the record";
  return {};
}

void JsonRecords::taken(const JsonStretch& stretch, const JsonStretch::Run& run, std::int64_t row,
                        std::int64_t line) {
  using Kind = JsonStretch::Kind;
  next_.resize(stretch.cells.size());
  if (run.first == 0) std::fill(next_.begin(), next_.end(), 0);
  for (std::size_t id = 0; id < stretch.cells.size(); ++id) {
    Key& key = *keys_[id];
    key.seen += run.seen[id];
    key.objects += run.objects[id];
    const std::vector<JsonStretch::Cell>& cells = stretch.cells[id];
    std::size_t& next = next_[id];
    if (next == cells.size()) continue;
    if (key.column != nullptr && key.lists) key.column->has_lists();
    for (; next < cells.size() && cells[next].record < run.last; ++next) {
      const JsonStretch::Cell& cell = cells[next];
      row_ = row + (cell.record - run.first);
      line_ = line + stretch.line_of[cell.record];
      switch (cell.kind) {
        case Kind::kInteger:
          key.column->add(row_, line_, std::bit_cast<std::int64_t>(cell.bits));
          break;
        case Kind::kReal:
          key.column->add(row_, line_, std::bit_cast<double>(cell.bits));
          break;
        case Kind::kNull:
          null(key);
          break;
        case Kind::kText:
          text(key, stretch.texts[cell.bits]);
      }
    }
  }
}

namespace {
template <class Key, class Visit>
void each_column(Key& key, Visit&& visit) {
  if (key.column != nullptr) visit(*key.column);
  if (key.texts != nullptr) visit(*key.texts);
  for (auto& next : key.below) each_column(*next, visit);
}
}  // namespace

void JsonRecords::flush() {
  each_column(root_, [](ValueColumn& column) { column.flush(); });
}

void JsonRecords::finish() {
  tell_absent(root_);
  flush();
}

bool JsonRecords::wanted() const {
  if (columns_ == 0) return true;
  bool any = false;
  each_column(root_, [&](const ValueColumn& column) { any |= column.wanted(); });
  return any;
}

}  // namespace trapline::inputs
