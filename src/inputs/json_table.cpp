// .json with records: a list of objects, or the annotations of COCO. Read as a stream, because such a file is
// one document of any size.
#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "inputs/damage.hpp"
#include "inputs/formats.hpp"
#include "inputs/value_column.hpp"

namespace trapline::inputs {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxColumns = 1024;
constexpr std::size_t kMaxClasses = 100'000;
constexpr std::size_t kValuesPerPiece = std::size_t{1} << 14U;
constexpr std::string_view kBlank = " \t\r\n";

std::string_view start_of(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text.substr(std::min(text.find_first_not_of(kBlank), text.size()));
}
bool is_list_of_objects(std::string_view text) {
  text = start_of(text);
  return text.starts_with('[') && start_of(text.substr(1)).starts_with('{');
}
bool is_coco(std::string_view text) {
  return start_of(text).starts_with('{') && text.find("\"annotations\"") != text.npos &&
         text.find("\"category_id\"") != text.npos;
}

// The events of nlohmann's parser. Records are the elements of the list at the top, or of "annotations".
class Records final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Records(Sink& sink, bool coco) : sink_(sink), record_depth_(coco ? 2 : 1), coco_(coco) {}

  bool null() override {
    return value([&](ValueColumn* column, const std::string&) {
      if (column != nullptr) column->malformed(row_, 0, "");
    });
  }
  bool boolean(bool flag) override { return number(std::int64_t{flag}); }
  bool number_integer(std::int64_t number) override { return this->number(number); }
  bool number_unsigned(std::uint64_t number) override {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (number <= kMax) return this->number(static_cast<std::int64_t>(number));
    return value([&](ValueColumn* column, const std::string&) {
      if (column != nullptr) column->malformed(row_, 0, std::to_string(number));
    });
  }
  bool number_float(double number, const std::string&) override { return this->number(number); }
  bool string(std::string& text) override {
    if (is_category("name")) category_.name = text;
    return value([&](ValueColumn* column, const std::string& path) {
      if (column != nullptr) {
        column->malformed(row_, 0, text);
      } else if (texts_.size() < kMaxColumns && texts_.emplace(path, true).second) {
        sink_.skipped(path, "text");
      }
    });
  }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& key) override {
    levels_.back().key = std::move(key);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    offset_ = position;
    problem_ = "no valid JSON";
    const std::string text = error.what();
    const std::size_t why = text.rfind("; ");
    if (why != text.npos) problem_ += ": " + text.substr(why + 2, 80);
    return false;
  }

  void finish() {
    // Keys that few records lack are missing values there; those that most lack are optional.
    for (auto& [path, seen] : rows_with_) {
      const auto column = columns_.find(path);
      const std::int64_t lacking = row_ - seen.count;
      if (column == columns_.end() || lacking == 0 || lacking > seen.count) continue;
      const std::int64_t without = seen.first_without < 0 ? seen.latest + 1 : seen.first_without;
      column->second->flush();
      for (std::int64_t i = 0; i < lacking; ++i) column->second->malformed(without, 0, "");
    }
    for (auto& [path, column] : columns_) column->flush();
    const auto label = columns_.find("category_id");
    if (label != columns_.end() && label->second->wanted() && !classes_.empty()) {
      sink_.class_names(label->second->column(), classes_);
    }
  }
  const std::string& problem() const { return problem_; }
  std::size_t offset() const { return offset_; }

 private:
  struct Level {
    bool list = false;
    std::string key;  // that is being read, of an object
  };

  bool open(bool list) {
    if (levels_.size() == kMaxDepth) {
      problem_ = "nested more than 64 deep";
      return false;
    }
    levels_.push_back({list, {}});
    if (is_category_list()) category_ = {std::numeric_limits<std::int64_t>::min(), {}};
    return !sink_.stopped();
  }
  bool close() {
    if (is_category_list() && category_.id != std::numeric_limits<std::int64_t>::min() &&
        classes_.size() < kMaxClasses) {
      classes_.push_back(category_);
    }
    levels_.pop_back();
    if (levels_.size() == record_depth_ && in_list()) ++row_;
    return true;
  }
  // Inside the list whose elements are the records.
  bool in_list() const {
    if (levels_.size() < record_depth_) return false;
    return coco_ ? !levels_[0].list && levels_[0].key == "annotations" && levels_[1].list : levels_[0].list;
  }
  // An object right inside "categories".
  bool is_category_list() const {
    return coco_ && levels_.size() == 3 && levels_[0].key == "categories" && levels_[1].list &&
           !levels_[2].list;
  }
  bool is_category(std::string_view key) const { return is_category_list() && levels_[2].key == key; }

  template <class Visit>
  bool value(Visit&& visit) {
    if (!in_list() || levels_.size() <= record_depth_) return !sink_.stopped();
    path_.clear();
    for (std::size_t i = record_depth_; i < levels_.size(); ++i) {
      if (levels_[i].list) continue;
      if (!path_.empty()) path_ += '.';
      path_ += levels_[i].key;
    }
    note_row(path_);
    const auto found = columns_.find(path_);
    visit(found == columns_.end() ? nullptr : found->second.get(), path_);
    return true;
  }
  void note_row(const std::string& path) {
    const auto [at, is_new] = rows_with_.try_emplace(path);
    if (is_new && rows_with_.size() > kMaxColumns) {
      rows_with_.erase(at);
      return;
    }
    Rows& rows = at->second;
    if (rows.latest == row_) return;
    if (rows.first_without < 0 && rows.latest + 1 < row_) rows.first_without = rows.latest + 1;
    rows.latest = row_;
    ++rows.count;
  }
  template <class T>
  bool number(T number) {
    if constexpr (std::is_same_v<T, std::int64_t>) {
      if (is_category("id")) category_.id = number;
    }
    return value([&](ValueColumn* column, const std::string& path) {
      if (column == nullptr) {
        if (columns_.size() == kMaxColumns) return;
        constexpr DType kType = std::is_same_v<T, double> ? DType::kFloat64 : DType::kInt64;
        auto made = std::make_unique<ValueColumn>(sink_, Column{path, kType, {-1}}, kValuesPerPiece);
        made->begin();
        column = made.get();
        columns_.emplace(path, std::move(made));
      }
      if (levels_.back().list) column->has_lists();
      column->add(row_, 0, number);
    });
  }

  Sink& sink_;
  std::size_t record_depth_;  // levels that are open outside a record
  bool coco_;
  std::vector<Level> levels_;
  std::unordered_map<std::string, std::unique_ptr<ValueColumn>> columns_;
  std::unordered_map<std::string, bool> texts_;
  struct Rows {
    std::int64_t count = 0, latest = -1;  // with the path; the last of them
    std::int64_t first_without = -1;
  };
  std::unordered_map<std::string, Rows> rows_with_;
  std::string path_;
  std::vector<ClassName> classes_;
  ClassName category_;
  std::int64_t row_ = 0;
  std::string problem_;
  std::size_t offset_ = 0;
};

class JsonReader final : public Reader {
 public:
  std::string_view name() const override { return "json"; }
  bool knows(const Source& source) const override {
    if (!source.path.ends_with(".json")) return false;
    const std::string_view text = as_text(source.bytes);
    return is_list_of_objects(text) || is_coco(text);
  }
  Result<bool> read(const Source& source, Sink& sink) const override {
    const std::string_view text = as_text(source.bytes);
    Records records(sink, !is_list_of_objects(text));
    const bool whole = nlohmann::json::sax_parse(text.begin(), text.end(), &records);
    records.finish();  // what came before the damage, too
    if (!whole && !records.problem().empty()) {
      return records.offset() > 0 ? damaged(source.path, records.offset(), records.problem())
                                  : unreadable(source.path, records.problem());
    }
    return !sink.stopped();
  }
};

}  // namespace

const Reader& json_table() {
  static const JsonReader reader;
  return reader;
}

}  // namespace trapline::inputs
