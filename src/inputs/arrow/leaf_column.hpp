// The numbers of one leaf, from array to array, as pieces of one column.
#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "inputs/arrow/leaf.hpp"
#include "inputs/reader.hpp"

namespace trapline::inputs {

class LeafColumn {
 public:
  // `rows`: of the whole column, -1 when not known.
  LeafColumn(Sink& sink, Leaf leaf, std::int64_t rows);
  bool begin() { return wanted_ = leaf_.text ? sink_->begin_text(column_) : sink_->begin(column_); }
  bool wanted() const { return wanted_; }
  const Leaf& leaf() const { return leaf_; }
  const Column& column() const { return column_; }

  // The next rows; `array` is valid (its offsets and indices have been checked) and of the leaf's field.
  void add(const std::shared_ptr<arrow::Array>& array);
  // The rows after those that were added lie in `path`.
  void in_file(std::string_view path) { sink_->file(column_, path, next_row_); }

 private:
  bool add_dense(const arrow::Array& array);
  void add_texts(const arrow::Array& array);
  void walk(const arrow::Array& array, std::int64_t begin, std::int64_t end, std::size_t level,
            std::int64_t row);
  void run(const arrow::Array& array, std::int64_t begin, std::int64_t end, std::int64_t row);
  void copy(const arrow::Array& array, std::int64_t begin, std::int64_t end, std::int64_t row);
  void flush_run();
  void flush_copied();
  void deliver(const void* data, std::span<const std::int64_t> sizes, std::int64_t first_row,
               std::span<const std::int64_t> row_of);

  Sink* sink_;
  Leaf leaf_;
  Column column_;
  std::int64_t next_row_ = 0;
  bool wanted_ = false;
  std::vector<std::int64_t> strides_, sizes_;
  // A run of elements that lie side by side in `run_array_`, and the row of each.
  const arrow::Array* run_array_ = nullptr;
  std::int64_t run_begin_ = 0, run_end_ = 0;
  std::vector<std::int64_t> run_rows_;
  // Elements that were rewritten, and the row of each.
  std::vector<std::byte> copied_;
  std::vector<std::int64_t> copied_rows_;
};

}  // namespace trapline::inputs
