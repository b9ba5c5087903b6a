// .json with records: a list of objects, at the top or below a key of an object ({"data": [...]}), or the
// annotations of COCO.
#include <algorithm>
#include <limits>

#include "inputs/damage.hpp"
#include "inputs/formats.hpp"
#include "inputs/json_events.hpp"
#include "inputs/json_outline.hpp"

namespace trapline::inputs {
namespace {

constexpr std::size_t kMaxClasses = 100'000;
constexpr std::string_view kAnnotations = "annotations";

bool is_list_of_objects(std::string_view text) {
  text = json_start(text);
  return text.starts_with('[') && json_start(text.substr(1)).starts_with('{');
}
bool is_coco(std::string_view text) {
  return json_start(text).starts_with('{') && text.find("\"annotations\"") != text.npos &&
         text.find("\"category_id\"") != text.npos;
}

// Records are the elements of the list at the top, or of the one below `key` of the object there.
class Records final : public JsonEvents {
 public:
  Records(Sink& sink, std::string key)
      : JsonEvents(sink), key_(std::move(key)), depth_(key_.empty() ? 1 : 2), coco_(key_ == kAnnotations) {}

 private:
  Cell locate() override {
    if (!in_list() || levels_.size() <= depth_) return {};
    put_path(depth_);
    note_row();
    return {true, row_};
  }
  void opened() override {
    if (is_category_list()) category_ = {kNoId, {}};
    in_category_ = is_category_list();
  }
  void closed() override {
    if (in_category_ && category_.id != kNoId && classes_.size() < kMaxClasses) classes_.push_back(category_);
    in_category_ = is_category_list();
    if (levels_.size() == depth_ && in_list()) ++row_;
  }
  void integer(std::int64_t number) override {
    if (is_category("id")) category_.id = number;
  }
  void text(const std::string& text) override {
    if (is_category("name")) category_.name = text;
  }

  void finish() override {
    // Keys that few records lack are missing values there; those that most lack are optional.
    for (auto& [path, seen] : rows_with_) {
      const auto column = columns().find(path);
      const std::int64_t lacking = row_ - seen.count;
      if (column == columns().end() || lacking == 0 || lacking > seen.count) continue;
      const std::int64_t without = seen.first_without < 0 ? seen.latest + 1 : seen.first_without;
      column->second->flush();
      for (std::int64_t i = 0; i < lacking; ++i) column->second->malformed(without, 0, "");
    }
    const auto label = columns().find("category_id");
    if (label != columns().end() && label->second->wanted() && !classes_.empty()) {
      label->second->flush();
      sink_.class_names(label->second->column(), classes_);
    }
  }

  // Inside the list whose elements are the records.
  bool in_list() const {
    if (levels_.size() < depth_ || levels_.empty()) return false;
    return key_.empty() ? levels_[0].list : !levels_[0].list && levels_[0].key == key_ && levels_[1].list;
  }
  // An object right inside "categories".
  bool is_category_list() const {
    return coco_ && levels_.size() == 3 && levels_[0].key == "categories" && levels_[1].list &&
           !levels_[2].list;
  }
  bool is_category(std::string_view key) const { return is_category_list() && levels_[2].key == key; }

  void note_row() {
    const auto [at, is_new] = rows_with_.try_emplace(path_);
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

  static constexpr std::int64_t kNoId = std::numeric_limits<std::int64_t>::min();
  struct Rows {
    std::int64_t count = 0, latest = -1;  // with the path; the last of them
    std::int64_t first_without = -1;
  };

  std::string key_;
  std::size_t depth_;  // levels that are open outside a record
  bool coco_;
  std::unordered_map<std::string, Rows> rows_with_;
  std::vector<ClassName> classes_;
  ClassName category_;
  bool in_category_ = false;
  std::int64_t row_ = 0;
};

class JsonReader final : public Reader {
 public:
  std::string_view name() const override { return "json"; }
  bool knows(const Source& source) const override {
    if (!source.path.ends_with(".json")) return false;
    const std::string_view text = as_text(source.bytes);
    return is_list_of_objects(text) || is_coco(text) ||
           outline_json(text).kind == JsonOutline::Kind::kRecords;
  }
  bool is_table(const Source&) const override { return true; }
  std::string_view annotations(const Source& source) const override {
    const std::string_view text = as_text(source.bytes);
    return !is_list_of_objects(text) && is_coco(text) ? "COCO" : "";
  }
  Result<bool> read(const Source& source, Sink& sink) const override {
    const std::string_view text = as_text(source.bytes);
    const std::string key = is_list_of_objects(text) ? ""
                            : is_coco(text)          ? std::string(kAnnotations)
                                                     : outline_json(text).key;
    return Records(sink, key).read(source.path, text);
  }
};

}  // namespace

const Reader& json_table() {
  static const JsonReader reader;
  return reader;
}

}  // namespace trapline::inputs
