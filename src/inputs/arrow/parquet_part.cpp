#include "inputs/arrow/parquet_part.hpp"

#include <arrow/io/memory.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <string>
#include <utility>

namespace trapline::inputs {
namespace {

constexpr std::int64_t kRowsPerBatch = std::int64_t{1} << 16U;
constexpr int kMaxTogether = 8;  // row groups
// Of row groups that are decoded at the same time, and so held as a whole; others come batch by batch.
constexpr std::int64_t kMaxHeld = std::int64_t{64} << 20U;
constexpr std::int64_t kMaxGroup = kMaxHeld / 4;

using FileReader = parquet::arrow::FileReader;

class ParquetPart final : public Part {
 public:
  ParquetPart(std::shared_ptr<arrow::Buffer> bytes, arrow::MemoryPool* pool)
      : bytes_(std::move(bytes)), pool_(pool) {}

  arrow::Status open() {
    ARROW_RETURN_NOT_OK(open(reader_));
    metadata_ = reader_->parquet_reader()->metadata();
    ARROW_RETURN_NOT_OK(reader_->GetSchema(&schema_));
    if (rows() < 0) return arrow::Status::Invalid("it claims ", rows(), " rows");
    return arrow::Status::OK();
  }
  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  std::int64_t rows() const override { return metadata_->num_rows(); }
  arrow::Result<Batches> batches(const std::vector<int>& fields, Sink& sink) override {
    // The columns of Parquet are the leaves; a field has those that begin with its name.
    const parquet::SchemaDescriptor* schema = metadata_->schema();
    for (int column = 0; column < schema->num_columns(); ++column) {
      const int field = schema->group_node()->FieldIndex(*schema->GetColumnRoot(column));
      if (std::binary_search(fields.begin(), fields.end(), field)) columns_.push_back(column);
    }
    return [this, &sink] { return next(sink); };
  }

 private:
  using Batch = std::shared_ptr<arrow::RecordBatch>;

  // With the metadata that the first of them has read.
  arrow::Status open(std::unique_ptr<FileReader>& reader) const {
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(std::make_shared<arrow::io::BufferReader>(bytes_),
                                     parquet::default_reader_properties(), metadata_));
    parquet::ArrowReaderProperties properties;
    properties.set_use_threads(false);
    properties.set_pre_buffer(false);
    properties.set_batch_size(kRowsPerBatch);
    return builder.memory_pool(pool_)->properties(properties)->Build(&reader);
  }

  // Bytes of a row group's wanted numbers, decoded; -1: it may be more than its metadata tells.
  std::int64_t size_of_group(int group) const {
    const auto about = metadata_->RowGroup(group);
    std::int64_t values = 0;
    for (const int column : columns_) {
      const parquet::Type::type type = metadata_->schema()->Column(column)->physical_type();
      if (type == parquet::Type::BYTE_ARRAY || type == parquet::Type::FIXED_LEN_BYTE_ARRAY) return -1;
      const std::int64_t here = about->ColumnChunk(column)->num_values();
      if (here < 0 || here > kMaxGroup) return -1;
      values += here;
    }
    return values * 8;
  }

  // How many row groups from the next on are decoded at the same time. The first comes batch by batch: often
  // nobody wants more.
  int together() const {
    if (next_group_ == 0 || next_group_ == broken_) return 1;
    std::int64_t held = 0;
    int count = 0;
    while (count < kMaxTogether && next_group_ + count < metadata_->num_row_groups()) {
      const std::int64_t size = size_of_group(next_group_ + count);
      if (size < 0 || size > kMaxGroup || held + size > kMaxHeld) break;
      held += size;
      ++count;
    }
    return count;
  }

  arrow::Result<Batch> next(Sink& sink) {
    for (;;) {
      if (!ready_.empty()) {
        Batch batch = std::move(ready_.front());
        ready_.pop_front();
        return batch;
      }
      if (batches_ != nullptr) {
        ARROW_ASSIGN_OR_RAISE(Batch batch, batches_->Next());
        if (batch != nullptr) return batch;
        batches_ = nullptr;
      }
      if (next_group_ >= metadata_->num_row_groups()) return nullptr;
      const int count = together();
      if (count < 2) {
        ARROW_ASSIGN_OR_RAISE(batches_, reader_->GetRecordBatchReader({next_group_}, columns_));
        ++next_group_;
        continue;
      }
      decode(count, sink);
    }
  }

  void decode(int count, Sink& sink) {
    struct Group {
      arrow::Status status;
      std::vector<Batch> batches;
    };
    std::vector<Group> groups(static_cast<std::size_t>(count));
    helpers_.resize(std::max(helpers_.size(), groups.size()));
    sink.parallel(count, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      try {  // Parquet throws where Arrow returns
        groups[at].status = decode(next_group_ + static_cast<int>(i), helpers_[at], groups[at].batches);
      } catch (const std::exception& error) {
        groups[at].status = arrow::Status::Invalid(error.what());
      }
    });
    for (Group& group : groups) {
      if (!group.status.ok()) {  // what stands before the damage is handed over all the same
        broken_ = next_group_;
        return;
      }
      for (Batch& batch : group.batches) ready_.push_back(std::move(batch));
      ++next_group_;
    }
  }

  arrow::Status decode(int group, std::unique_ptr<FileReader>& helper, std::vector<Batch>& batches) const {
    if (helper == nullptr) ARROW_RETURN_NOT_OK(open(helper));
    ARROW_ASSIGN_OR_RAISE(const auto reader, helper->GetRecordBatchReader({group}, columns_));
    for (;;) {
      ARROW_ASSIGN_OR_RAISE(Batch batch, reader->Next());
      if (batch == nullptr) return arrow::Status::OK();
      batches.push_back(std::move(batch));
    }
  }

  std::shared_ptr<arrow::Buffer> bytes_;
  arrow::MemoryPool* pool_;
  std::unique_ptr<FileReader> reader_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<int> columns_;
  int next_group_ = 0, broken_ = -1;
  std::unique_ptr<arrow::RecordBatchReader> batches_;  // of one group
  std::vector<std::unique_ptr<FileReader>> helpers_;   // one for each of those that run together
  std::deque<Batch> ready_;
};

}  // namespace

arrow::Result<std::unique_ptr<Part>> open_parquet(std::shared_ptr<arrow::Buffer> bytes,
                                                  arrow::MemoryPool* pool) {
  auto part = std::make_unique<ParquetPart>(std::move(bytes), pool);
  ARROW_RETURN_NOT_OK(part->open());
  return part;
}

}  // namespace trapline::inputs
