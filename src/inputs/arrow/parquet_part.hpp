// A Parquet file, opened: batches of some of its fields. Row groups of numbers are decoded several at a time.
#pragma once

#include <arrow/api.h>

#include <functional>
#include <memory>
#include <vector>

#include "inputs/reader.hpp"

namespace trapline::inputs {

using Batches = std::function<arrow::Result<std::shared_ptr<arrow::RecordBatch>>()>;  // null: the end

// One file of the table, opened.
class Part {
 public:
  virtual ~Part() = default;
  virtual std::shared_ptr<arrow::Schema> schema() const = 0;
  virtual std::int64_t rows() const = 0;  // -1: not known beforehand
  // Batches with just these fields of the schema, in its order. Called once; the sink lends its threads.
  virtual arrow::Result<Batches> batches(const std::vector<int>& fields, Sink& sink) = 0;
};

arrow::Result<std::unique_ptr<Part>> open_parquet(std::shared_ptr<arrow::Buffer> bytes,
                                                  arrow::MemoryPool* pool);

}  // namespace trapline::inputs
