// What the checks keep of a file while a reader hands over its columns.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "check/rule.hpp"
#include "check/scan.hpp"
#include "check/tally.hpp"
#include "check/verdict.hpp"
#include "inputs/reader.hpp"

namespace trapline::check {

// Classes that are written as text, and where each was seen first.
struct TextClasses {
  std::vector<std::pair<std::string, Place>> all;  // in the order in which they came
  bool too_many = false;                           // to be kept
};

struct Unnamed {
  std::int64_t bad = 0;
  Place first;
};

struct ColumnResult {
  std::string name;
  DType dtype = DType::kInt64;
  std::vector<std::int64_t> sizes;
  std::string stored;  // its dtype in the file, where core has none of that name
  Tally tally;
  std::vector<inputs::ClassName> classes;  // as the source itself names them
  std::string last_file;                   // where its last rows lie, when the source is several
  bool often_missing = false;              // a guessed column of labels, of which many rows have none
  std::optional<TextClasses> texts{};      // labels that are texts
  std::optional<Unnamed> unnamed{};        // labels among the classes that are none
  Lengths lengths;                         // ids: of the rows that hold several

  bool clean() const { return tally.clean() && lengths.too_long == 0 && !unnamed; }
};

// Which columns of a file are meant.
struct ColumnFilter {
  std::string column{};                    // just this one; empty: those whose role fits the rule
  bool any = false;                        // every column whose dtype fits
  std::unordered_set<std::string> only{};  // of these names, when neither says more
  bool none_is_fine = false;               // a file without such a column is no problem
};

class ColumnSink : public inputs::Sink {
 public:
  // `closely`: element by element, for the details of what is known to be bad.
  ColumnSink(const Rule& rule, const ColumnFilter& wanted, bool closely, const Parallel& parallel,
             const std::atomic<bool>& stop)
      : rule_(rule), wanted_(wanted), closely_(closely), parallel_(parallel), stop_(stop) {}

  bool begin(const inputs::Column& column) override;
  bool begin_text(const inputs::Column& column) override;
  bool text(const inputs::Column& column, std::int64_t row, std::int64_t line,
            std::string_view text) override;
  bool piece(const inputs::Piece& piece) override;
  void malformed(const inputs::Column& column, std::int64_t row, std::int64_t line,
                 std::string_view text) override;
  void file(const inputs::Column& column, std::string_view path, std::int64_t first_row) override;
  void parallel(std::int64_t count, const std::function<void(std::int64_t)>& body) override {
    parallel_(count, body);
  }
  bool stopped() const override { return stop_.load(std::memory_order_relaxed); }

  void skipped(std::string_view name, std::string_view why) override;
  void object(std::string_view name, std::string_view type) override;
  void class_names(const inputs::Column& column, std::span<const inputs::ClassName> names) override;

  std::vector<ColumnResult> take();
  const std::vector<std::string>& passed_over() const { return passed_over_; }
  // "args (argparse.Namespace)": no tensors, and not looked into.
  const std::vector<std::string>& objects() const { return objects_; }
  std::int64_t bytes_seen() const { return bytes_; }

 private:
  struct Open {
    ColumnResult result;
    std::int64_t row = -1, row_line = 0, length = 0;  // a row of several values that may go on
    std::string file;                                 // where the column's source is several
    std::int64_t file_row = 0;                        // its first row
    std::unordered_set<std::string> texts;            // those of result.texts
  };
  bool wants(const inputs::Column& column) const;
  Open& make(const inputs::Column& column);
  Open& open(const inputs::Column& column);
  void measure(Open& column, const inputs::Piece& piece);
  static void add_length(Open& column, std::int64_t row, std::int64_t line, std::int64_t length,
                         std::int64_t most);
  void close_row(Open& column);
  void pass_over(std::string name);

  const Rule& rule_;
  const ColumnFilter& wanted_;
  bool closely_;
  const Parallel& parallel_;
  const std::atomic<bool>& stop_;
  std::vector<Open> columns_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<std::string> objects_;
  std::vector<std::string> passed_over_;  // different names of columns that were not wanted, the first few
  std::int64_t bytes_ = 0;
  std::int64_t released_ = 0;  // of them; the pages of files behind those were given back
};

}  // namespace trapline::check
