// libtrapline_arrow.so: reads Parquet, and Arrow's file and stream formats, through Arrow C++.
#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/util/key_value_metadata.h>

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <set>

#include "inputs/arrow/leaf_column.hpp"
#include "inputs/arrow/parquet_part.hpp"
#include "inputs/arrow_plugin.hpp"
#include "inputs/damage.hpp"
#include "inputs/features.hpp"

namespace trapline::inputs {
namespace {

// For pages that a file claims to decompress to; a page of Parquet is a megabyte as everybody writes it.
constexpr std::int64_t kMaxMemory = std::int64_t{1} << 30U;
// Arrow's file format (Feather 2) and its stream format. Both are opened twice: for the schema, and again
// with the wanted fields, so that nothing else is decompressed.
template <class Reader>
class IpcPart final : public Part {
 public:
  static arrow::Result<std::unique_ptr<Part>> open(const std::shared_ptr<arrow::io::RandomAccessFile>& file,
                                                   arrow::MemoryPool* pool) {
    auto part = std::make_unique<IpcPart>();
    part->file_ = file;
    part->options_.memory_pool = pool;
    part->options_.use_threads = false;
    ARROW_ASSIGN_OR_RAISE(part->reader_, Reader::Open(part->file_.get(), part->options_));
    return part;
  }
  std::shared_ptr<arrow::Schema> schema() const override { return reader_->schema(); }
  std::int64_t rows() const override { return -1; }
  arrow::Result<Batches> batches(const std::vector<int>& fields, Sink&) override {
    options_.included_fields = fields;
    ARROW_RETURN_NOT_OK(file_->Seek(0));
    ARROW_ASSIGN_OR_RAISE(reader_, Reader::Open(file_.get(), options_));
    return [this, next = 0]() mutable -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
      if constexpr (std::is_same_v<Reader, arrow::ipc::RecordBatchFileReader>) {
        if (next == reader_->num_record_batches()) return nullptr;
        return reader_->ReadRecordBatch(next++);
      } else {
        return reader_->Next();
      }
    };
  }

 private:
  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  arrow::ipc::IpcReadOptions options_ = arrow::ipc::IpcReadOptions::Defaults();
  std::shared_ptr<Reader> reader_;
};

arrow::Result<std::unique_ptr<Part>> open(const ArrowPart& part, arrow::MemoryPool* pool) {
  auto buffer = std::make_shared<arrow::Buffer>(reinterpret_cast<const std::uint8_t*>(part.bytes.data()),
                                                static_cast<std::int64_t>(part.bytes.size()));
  const std::string_view text = as_text(part.bytes);
  if (text.starts_with("FEA1"))
    return arrow::Status::Invalid("Feather version 1 is not read; write version 2");
  if (text.starts_with("PAR1") || (!text.starts_with("ARROW1") && part.path.ends_with(".parquet"))) {
    return open_parquet(std::move(buffer), pool);
  }
  auto file = std::make_shared<arrow::io::BufferReader>(std::move(buffer));
  if (text.starts_with("ARROW1")) return IpcPart<arrow::ipc::RecordBatchFileReader>::open(file, pool);
  return IpcPart<arrow::ipc::RecordBatchStreamReader>::open(file, pool);
}

Error problem_of(const ArrowPart& part, const std::string& message) {
  // Arrow's messages may have several lines, and name its own source files behind the first.
  const std::string first = message.substr(0, message.find('\n'));
  const bool dot = first.ends_with('.');
  return unreadable(part.path, dot ? first.substr(0, first.size() - 1) : first);
}

class Table {
 public:
  Table(std::span<const ArrowPart> parts, Sink& sink)
      : parts_(parts), sink_(sink), pool_(arrow::default_memory_pool(), kMaxMemory) {}

  std::optional<Error> read() {
    for (const ArrowPart& part : parts_) {
      std::optional<Error> problem;
      try {
        const arrow::Status status = read(part);
        if (!status.ok()) problem = problem_of(part, status.message());
      } catch (const std::exception& error) {  // Parquet throws where Arrow returns
        problem = problem_of(part, error.what());
      }
      if (problem) return problem;
      if (sink_.stopped()) break;
    }
    return std::nullopt;
  }

 private:
  arrow::Status read(const ArrowPart& part) {
    ARROW_ASSIGN_OR_RAISE(const std::unique_ptr<Part> opened, open(part, &pool_));
    if (schema_ == nullptr) {
      schema_ = opened->schema();
      begin(parts_.size() == 1 ? opened->rows() : -1);
    } else if (!schema_->Equals(*opened->schema(), false)) {
      return arrow::Status::Invalid("its columns are not those of the files before it");
    }
    std::set<int> fields;
    for (const LeafColumn& column : columns_) {
      if (column.wanted()) fields.insert(column.leaf().field);
    }
    if (fields.empty()) return arrow::Status::OK();
    for (LeafColumn& column : columns_) {
      if (part.named && column.wanted()) column.in_file(part.path);
    }
    const std::vector<int> wanted(fields.begin(), fields.end());
    ARROW_ASSIGN_OR_RAISE(const Batches next, opened->batches(wanted, sink_));
    std::int64_t rows = 0;
    for (;;) {
      ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::RecordBatch> batch, next());
      if (batch == nullptr) {
        if (opened->rows() < 0 || opened->rows() == rows) return arrow::Status::OK();
        return arrow::Status::Invalid("it claims ", opened->rows(), " rows, ", rows, " are there");
      }
      rows += batch->num_rows();
      // Lengths, offsets and dictionary indices come from the file.
      ARROW_RETURN_NOT_OK(batch->ValidateFull());
      if (batch->num_columns() != static_cast<int>(wanted.size()))
        return arrow::Status::Invalid("a batch lacks columns");
      bool any = false;
      for (LeafColumn& column : columns_) {
        if (!column.wanted()) continue;
        const auto place =
            std::lower_bound(wanted.begin(), wanted.end(), column.leaf().field) - wanted.begin();
        const std::shared_ptr<arrow::Array>& array = batch->column(static_cast<int>(place));
        if (!array->type()->Equals(schema_->field(column.leaf().field)->type())) {
          return arrow::Status::Invalid("a batch has a column of another type");
        }
        column.add(array);
        any |= column.wanted();
      }
      if (!any || sink_.stopped()) return arrow::Status::OK();
    }
  }

  void begin(std::int64_t rows) {
    const Leaves leaves = leaves_of(*schema_);
    std::map<std::string, std::vector<ClassName>> classes;
    if (const auto metadata = schema_->metadata(); metadata != nullptr) {
      const int place = metadata->FindKey("huggingface");
      if (place >= 0) classes = class_labels(metadata->value(place));
    }
    columns_.reserve(leaves.leaves.size());
    for (const Leaf& leaf : leaves.leaves) {
      LeafColumn column(sink_, leaf, rows);
      if (!column.begin()) {
        if (leaf.text) sink_.skipped(leaf.name, "text");
        continue;
      }
      columns_.push_back(std::move(column));
      const auto names = classes.find(leaf.name);
      if (names != classes.end()) sink_.class_names(columns_.back().column(), names->second);
    }
    for (const auto& [name, why] : leaves.skipped) sink_.skipped(name, why);
  }

  std::span<const ArrowPart> parts_;
  Sink& sink_;
  arrow::CappedMemoryPool pool_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<LeafColumn> columns_;
};

}  // namespace
}  // namespace trapline::inputs

extern "C" __attribute__((visibility("default"))) void trapline_arrow_read(
    std::span<const trapline::inputs::ArrowPart> parts, trapline::inputs::Sink& sink,
    std::optional<trapline::Error>& problem) {
  trapline::inputs::Table table(parts, sink);
  problem = table.read();
}
