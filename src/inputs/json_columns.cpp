// .json by columns: what json.dump() makes of a dict of lists, and pandas of a table with orient="columns",
// "list" and "split".
#include <algorithm>

#include "inputs/damage.hpp"
#include "inputs/formats.hpp"
#include "inputs/json_events.hpp"
#include "inputs/json_outline.hpp"

namespace trapline::inputs {
namespace {

// A list for each column, or an object with a key for each row.
class Columns final : public JsonEvents {
 public:
  explicit Columns(Sink& sink) : JsonEvents(sink) {}

 private:
  static constexpr std::size_t kRows = 2;  // levels that are open outside a row's value

  Cell locate() override {
    if (levels_.size() < kRows) return {};
    path_ = levels_[0].key;
    for (std::size_t i = kRows; i < levels_.size(); ++i) {
      if (!levels_[i].list) path_ += "." + levels_[i].key;
    }
    return {true, row_};
  }
  bool is_list() const override { return levels_.size() > kRows; }
  void closed() override {
    if (levels_.size() == kRows) ++row_;
    if (levels_.size() == kRows - 1) {
      flush(levels_[0].key);
      row_ = 0;
    }
  }
  void passed() override {
    if (levels_.size() == kRows) ++row_;
  }

  std::int64_t row_ = 0;
};

// A list of names, and a list of rows.
class Split final : public JsonEvents {
 public:
  explicit Split(Sink& sink) : JsonEvents(sink) {}

 private:
  static constexpr std::size_t kCells = 3;  // levels that are open outside a cell's value

  bool in(std::string_view key) const {
    return levels_.size() >= 2 && !levels_[0].list && levels_[0].key == key && levels_[1].list;
  }
  Cell locate() override {
    if (!in("data") || levels_.size() < kCells) return {};
    path_ = cell_ < names_.size() ? names_[cell_] : std::to_string(cell_);
    for (std::size_t i = kCells; i < levels_.size(); ++i) {
      if (!levels_[i].list) path_ += "." + levels_[i].key;
    }
    return {true, row_};
  }
  bool is_list() const override { return levels_.size() > kCells; }
  void closed() override {
    if (!in("data")) return;
    if (levels_.size() == kCells) ++cell_;
    if (levels_.size() == kCells - 1) {
      ++row_;
      cell_ = 0;
    }
  }
  void passed() override {
    if (in("data") && levels_.size() == kCells) ++cell_;
  }
  void text(const std::string& text) override {
    if (in("columns") && levels_.size() == 2 && names_.size() < kMaxColumns) names_.push_back(text);
  }

  std::vector<std::string> names_;
  std::size_t cell_ = 0;
  std::int64_t row_ = 0;
};

class JsonColumnsReader final : public Reader {
 public:
  std::string_view name() const override { return "json columns"; }
  bool knows(const Source& source) const override {
    if (!source.path.ends_with(".json")) return false;
    const JsonOutline::Kind kind = outline_json(as_text(source.bytes)).kind;
    return kind == JsonOutline::Kind::kColumns || kind == JsonOutline::Kind::kSplit;
  }
  bool is_table(const Source&) const override { return true; }
  Result<bool> read(const Source& source, Sink& sink) const override {
    const std::string_view text = as_text(source.bytes);
    if (outline_json(text).kind == JsonOutline::Kind::kSplit) return Split(sink).read(source.path, text);
    return Columns(sink).read(source.path, text);
  }
};

}  // namespace

const Reader& json_columns() {
  static const JsonColumnsReader reader;
  return reader;
}

}  // namespace trapline::inputs
