// TFRecord files of tf.train.Example: a column per feature, a row per record. The framing is that of
// TensorFlow's record_writer.cc, an Example that of its example.proto and feature.proto, read by the wire
// format of protobuf.
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "inputs/crc32c.hpp"
#include "inputs/damage.hpp"
#include "inputs/formats.hpp"
#include "inputs/mapped_file.hpp"
#include "inputs/value_column.hpp"

namespace trapline::inputs {
namespace {

// Length, its checksum; behind the data the data's checksum.
constexpr std::size_t kHead = 12, kTail = 4;
constexpr std::size_t kMaxFeatures = 1024;
constexpr std::size_t kValuesPerPiece = std::size_t{1} << 14U;
constexpr std::int64_t kRowsBetweenAsking = 1024;
constexpr std::size_t kBytesBetweenReleases = std::size_t{8} << 20U;
using Bytes = std::span<const std::byte>;

enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// The fields of one protobuf message, in their order.
class Message {
 public:
  explicit Message(Bytes bytes) : left_(bytes) {}

  struct Field {
    std::uint64_t number = 0;
    Wire wire = Wire::kVarint;
    std::uint64_t value = 0;  // of a varint
    Bytes bytes;              // of the others
  };
  // False: the end, or broken().
  bool next(Field& field) {
    if (left_.empty() || broken_) return false;
    const std::uint64_t key = varint();
    field.number = key >> 3U;
    field.wire = static_cast<Wire>(key & 7U);
    if (field.number == 0) broken_ = true;
    switch (field.wire) {
      case Wire::kVarint:
        field.value = varint();
        break;
      case Wire::kFixed64:
        field.bytes = take(8);
        break;
      case Wire::kBytes:
        field.bytes = take(varint());
        break;
      case Wire::kFixed32:
        field.bytes = take(4);
        break;
      default:
        broken_ = true;
    }
    return !broken_;
  }
  bool broken() const { return broken_; }
  bool empty() const { return left_.empty(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) break;
      const auto byte = std::to_integer<std::uint64_t>(left_[0]);
      left_ = left_.subspan(1);
      value |= (byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    broken_ = true;
    return 0;
  }

 private:
  Bytes take(std::uint64_t count) {
    if (count > left_.size()) {
      broken_ = true;
      return {};
    }
    const Bytes taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  Bytes left_;
  bool broken_ = false;
};

class Records {
 public:
  explicit Records(Sink& sink) : sink_(sink) {}

  // Empty, or what is wrong.
  std::string record(Bytes data, std::int64_t row) {
    Message example(data);
    Message::Field field;
    while (example.next(field)) {
      if (field.number != 1 || field.wire != Wire::kBytes) continue;
      Message features(field.bytes);
      Message::Field entry;
      while (features.next(entry)) {
        if (entry.number != 1 || entry.wire != Wire::kBytes) continue;
        if (!feature(entry.bytes, row)) return "no tf.train.Example";
        if (columns_.size() > kMaxFeatures) return "more than 1024 features";
      }
      if (features.broken()) return "no tf.train.Example";
    }
    return example.broken() ? "no tf.train.Example" : "";
  }
  void flush() {
    for (auto& [name, column] : columns_) {
      if (column) column->flush();
    }
  }
  bool any() const { return !columns_.empty(); }

 private:
  // An entry of the map: name, Feature.
  bool feature(Bytes entry, std::int64_t row) {
    std::string_view name;
    Bytes value;
    Message map(entry);
    Message::Field field;
    while (map.next(field)) {
      if (field.wire != Wire::kBytes) continue;
      if (field.number == 1) name = as_text(field.bytes);
      if (field.number == 2) value = field.bytes;
    }
    if (map.broken()) return false;
    Message kinds(value);
    while (kinds.next(field)) {
      if (field.wire != Wire::kBytes) continue;
      const bool fits = field.number == 1   ? text(name)
                        : field.number == 2 ? floats(name, field.bytes, row)
                        : field.number == 3 ? integers(name, field.bytes, row)
                                            : true;
      if (!fits) return false;
    }
    return !kinds.broken();
  }

  bool text(std::string_view name) {
    if (columns_.find(name) == columns_.end()) {
      sink_.skipped(name, "text");
      columns_.emplace(std::string(name), nullptr);
    }
    return true;
  }

  // Packed or one by one, as protobuf allows either.
  bool floats(std::string_view name, Bytes list, std::int64_t row) {
    ValueColumn* column = column_of(name, DType::kFloat64);
    Message message(list);
    Message::Field field;
    while (message.next(field)) {
      if (field.number != 1) continue;
      if (field.wire != Wire::kBytes && field.wire != Wire::kFixed32) return false;
      if (field.bytes.size() % 4 != 0) return false;
      for (std::size_t at = 0; column != nullptr && at < field.bytes.size(); at += 4) {
        column->add(row, 0, static_cast<double>(load_le<float>(field.bytes, at)));
      }
    }
    return !message.broken();
  }

  bool integers(std::string_view name, Bytes list, std::int64_t row) {
    ValueColumn* column = column_of(name, DType::kInt64);
    Message message(list);
    Message::Field field;
    while (message.next(field)) {
      if (field.number != 1) continue;
      if (field.wire == Wire::kVarint) {
        if (column != nullptr) column->add(row, 0, std::bit_cast<std::int64_t>(field.value));
        continue;
      }
      if (field.wire != Wire::kBytes) return false;
      Message packed(field.bytes);
      while (!packed.empty() && !packed.broken()) {
        const std::uint64_t value = packed.varint();
        if (column != nullptr && !packed.broken()) column->add(row, 0, std::bit_cast<std::int64_t>(value));
      }
      if (packed.broken()) return false;
    }
    return !message.broken();
  }

  // Null: not wanted.
  ValueColumn* column_of(std::string_view name, DType dtype) {
    auto found = columns_.find(name);
    if (found == columns_.end()) {
      auto made =
          std::make_unique<ValueColumn>(sink_, Column{std::string(name), dtype, {-1}}, kValuesPerPiece);
      if (!made->begin()) made = nullptr;
      found = columns_.emplace(std::string(name), std::move(made)).first;
    }
    ValueColumn* column = found->second.get();
    return column != nullptr && column->wanted() ? column : nullptr;
  }

  Sink& sink_;
  std::map<std::string, std::unique_ptr<ValueColumn>, std::less<>> columns_;
};

// The length of the first record, when its checksum is right.
std::optional<std::uint64_t> length_at(Bytes bytes, std::size_t at) {
  if (bytes.size() - at < kHead) return std::nullopt;
  if (masked_crc32c(bytes.subspan(at, 8)) != load_le<std::uint32_t>(bytes, at + 8)) return std::nullopt;
  return load_le<std::uint64_t>(bytes, at);
}

class TfRecordReader final : public Reader {
 public:
  std::string_view name() const override { return "tfrecord"; }
  bool knows(const Source& source) const override {
    return length_at(source.bytes, 0).has_value() || source.path.ends_with(".tfrecord") ||
           source.path.ends_with(".tfrecords");
  }

  Result<bool> read(const Source& source, Sink& sink) const override {
    const Bytes bytes = source.bytes;
    Records records(sink);
    std::size_t at = 0, released = 0;
    std::string problem;
    for (std::int64_t row = 0; at < bytes.size() && problem.empty(); ++row) {
      const std::optional<std::uint64_t> length = length_at(bytes, at);
      if (!length) {
        problem = bytes.size() - at < kHead ? "it ends too early" : "the checksum of its length is wrong";
      } else if (*length > bytes.size() - at - kHead || bytes.size() - at - kHead - *length < kTail) {
        problem = "it ends too early";
      } else {
        const Bytes data = bytes.subspan(at + kHead, *length);
        if (masked_crc32c(data) != load_le<std::uint32_t>(bytes, at + kHead + *length)) {
          problem = "its checksum is wrong";
        } else {
          problem = records.record(data, row);
        }
      }
      if (!problem.empty()) {
        problem = "record " + std::to_string(row) + ": " + problem;
        break;
      }
      at += kHead + *length + kTail;
      if (at - released >= kBytesBetweenReleases) {
        release_pages(bytes.subspan(released, at - released));
        released = at;
      }
      if (row % kRowsBetweenAsking == 0 && sink.stopped()) break;
    }
    records.flush();
    if (!problem.empty()) return damaged(source.path, at, problem);
    return !sink.stopped();
  }
};

}  // namespace

const Reader& tfrecord() {
  static const TfRecordReader reader;
  return reader;
}

}  // namespace trapline::inputs
