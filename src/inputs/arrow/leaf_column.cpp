#include "inputs/arrow/leaf_column.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "inputs/damage.hpp"

namespace trapline::inputs {
namespace {

constexpr std::size_t kMaxHeld = std::size_t{1} << 17U;  // elements

const arrow::Array& stored(const arrow::Array& array) {
  const arrow::Array* at = &array;
  while (at->type_id() == arrow::Type::EXTENSION)
    at = static_cast<const arrow::ExtensionArray*>(at)->storage().get();
  return *at;
}

// The bytes of a primitive array from its first element on.
const std::byte* values_of(const arrow::Array& array, std::size_t width) {
  const auto& buffer = array.data()->buffers[1];
  if (buffer == nullptr) return nullptr;
  return reinterpret_cast<const std::byte*>(buffer->data()) +
         static_cast<std::size_t>(array.offset()) * width;
}

// Where in the array below the elements [begin, end) of a list lie.
std::pair<std::int64_t, std::int64_t> below(const arrow::Array& array, std::int64_t begin, std::int64_t end) {
  if (array.type_id() == arrow::Type::LIST) {
    const auto& list = static_cast<const arrow::ListArray&>(array);
    return {list.value_offset(begin), list.value_offset(end)};
  }
  if (array.type_id() == arrow::Type::LARGE_LIST) {
    const auto& list = static_cast<const arrow::LargeListArray&>(array);
    return {list.value_offset(begin), list.value_offset(end)};
  }
  const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
  const std::int64_t size = list.value_length();
  return {(list.offset() + begin) * size, (list.offset() + end) * size};
}

const arrow::Array& values_below(const arrow::Array& array) {
  if (array.type_id() == arrow::Type::LIST) return *static_cast<const arrow::ListArray&>(array).values();
  if (array.type_id() == arrow::Type::LARGE_LIST)
    return *static_cast<const arrow::LargeListArray&>(array).values();
  return *static_cast<const arrow::FixedSizeListArray&>(array).values();
}

bool holds_list(arrow::Type::type type) {
  return type == arrow::Type::LIST || type == arrow::Type::LARGE_LIST || type == arrow::Type::FIXED_SIZE_LIST;
}

}  // namespace

LeafColumn::LeafColumn(Sink& sink, Leaf leaf, std::int64_t rows) : sink_(&sink), leaf_(std::move(leaf)) {
  column_ = {leaf_.name, leaf_.encoding.dtype(), {rows}, name_of(leaf_.encoding.stored), leaf_.text};
  if (!leaf_.ragged && product(leaf_.fixed)) {
    column_.sizes.insert(column_.sizes.end(), leaf_.fixed.begin(), leaf_.fixed.end());
  } else if (leaf_.ragged || !leaf_.fixed.empty()) {
    leaf_.ragged = true;
  }
  sizes_ = column_.sizes;
  strides_.assign(sizes_.size(), 1);
  for (std::size_t d = sizes_.size(); d-- > 1;)
    strides_[d - 1] = strides_[d] * std::max<std::int64_t>(sizes_[d], 1);
}

void LeafColumn::deliver(const void* data, std::span<const std::int64_t> sizes, std::int64_t first_row,
                         std::span<const std::int64_t> row_of) {
  Piece piece;
  piece.column = &column_;
  constexpr std::array<std::int64_t, 1> kOne{1};
  piece.view = {data, column_.dtype, sizes,
                sizes.size() == 1 ? std::span<const std::int64_t>(kOne) : strides_};
  piece.first_row = first_row;
  piece.row_of = row_of;
  piece.scalars = !leaf_.lists;
  wanted_ = sink_->piece(piece) && !sink_->stopped();
}

void LeafColumn::add(const std::shared_ptr<arrow::Array>& array) {
  const std::int64_t first = next_row_;
  const arrow::Array& top = stored(*array);
  if (leaf_.text) {
    add_texts(top);
  } else if (wanted_ && !add_dense(top)) {
    for (std::int64_t i = 0; i < top.length() && wanted_; ++i) walk(top, i, i + 1, 0, first + i);
    flush_run();
    flush_copied();
  }
  next_row_ = first + top.length();
}

void LeafColumn::add_texts(const arrow::Array& array) {
  const auto* dictionary = array.type_id() == arrow::Type::DICTIONARY
                               ? static_cast<const arrow::DictionaryArray*>(&array)
                               : nullptr;
  const arrow::Array& values = dictionary != nullptr ? stored(*dictionary->dictionary()) : array;
  for (std::int64_t i = 0; i < array.length() && wanted_; ++i) {
    std::string_view text;
    const bool null = array.IsNull(i);
    const std::int64_t at = dictionary != nullptr && !null ? dictionary->GetValueIndex(i) : i;
    if (!null && !values.IsNull(at)) {
      text = values.type_id() == arrow::Type::STRING
                 ? static_cast<const arrow::StringArray&>(values).GetView(at)
                 : static_cast<const arrow::LargeStringArray&>(values).GetView(at);
    }
    wanted_ = sink_->text(column_, next_row_ + i, 0, text) && !sink_->stopped();
  }
}

// Numbers without lists, or in lists of fixed sizes, that need no rewriting: views of Arrow's own memory.
bool LeafColumn::add_dense(const arrow::Array& top) {
  if (leaf_.ragged || leaf_.bits || !leaf_.encoding.direct()) return false;
  const arrow::Array* at = &top;
  std::int64_t begin = 0;
  std::int64_t per_row = 1;
  while (holds_list(at->type_id())) {
    if (at->null_count() != 0) return false;
    const std::int64_t size = static_cast<const arrow::FixedSizeListArray&>(*at).value_length();
    begin = (begin + at->offset()) * size;
    per_row *= size;
    at = &stored(values_below(*at));
  }
  if (at->null_count() != 0) return false;
  const std::size_t width = leaf_.encoding.bytes();
  const std::byte* data = values_of(*at, width);
  if (per_row == 0 || top.length() == 0 || data == nullptr) return per_row == 0 || top.length() == 0;
  if (reinterpret_cast<std::uintptr_t>(data) % width != 0) return false;
  const auto row_bytes = static_cast<std::int64_t>(width) * per_row;
  const std::int64_t step =
      std::max<std::int64_t>(static_cast<std::int64_t>(kMappedPieceBytes) / row_bytes, 1);
  for (std::int64_t row = 0; row < top.length() && wanted_; row += step) {
    sizes_[0] = std::min(step, top.length() - row);
    deliver(data + (begin + row * per_row) * static_cast<std::int64_t>(width), sizes_, next_row_ + row, {});
  }
  return true;
}

// The elements below [begin, end) of `array`, all of one row. `level`: structs passed so far.
void LeafColumn::walk(const arrow::Array& outer, std::int64_t begin, std::int64_t end, std::size_t level,
                      std::int64_t row) {
  const arrow::Array& array = stored(outer);
  const bool list = holds_list(array.type_id());
  if (!list && array.type_id() != arrow::Type::STRUCT) return run(array, begin, end, row);
  const auto down = [&](std::int64_t from, std::int64_t to) {
    if (list) {
      const auto [first, last] = below(array, from, to);
      walk(values_below(array), first, last, level, row);
    } else {
      const auto& data = static_cast<const arrow::StructArray&>(array);
      // The struct keeps its fields, so the reference outlives this call.
      walk(*data.field(leaf_.below[level]), from, to, level + 1, row);
    }
  };
  if (array.null_count() == 0) return down(begin, end);
  for (std::int64_t i = begin; i < end && wanted_; ++i) {
    if (array.IsNull(i)) {
      sink_->malformed(column_, row, 0, "");
    } else {
      down(i, i + 1);
    }
  }
}

void LeafColumn::run(const arrow::Array& array, std::int64_t begin, std::int64_t end, std::int64_t row) {
  const std::size_t width = leaf_.encoding.bytes();
  const bool direct = leaf_.encoding.direct() && !leaf_.bits && array.null_count() == 0 &&
                      array.type_id() != arrow::Type::DICTIONARY &&
                      reinterpret_cast<std::uintptr_t>(values_of(array, width)) % width == 0;
  if (!direct) return copy(array, begin, end, row);
  while (begin < end && wanted_) {
    if (run_array_ != &array || run_end_ != begin || run_rows_.size() >= kMaxHeld) {
      flush_run();
      run_array_ = &array;
      run_begin_ = run_end_ = begin;
    }
    const auto room = static_cast<std::int64_t>(kMaxHeld - run_rows_.size());
    const std::int64_t count = std::min(room, end - begin);
    run_rows_.insert(run_rows_.end(), static_cast<std::size_t>(count), row);
    run_end_ += count;
    begin += count;
  }
}

void LeafColumn::flush_run() {
  if (!run_rows_.empty() && wanted_) {
    const std::size_t width = leaf_.encoding.bytes();
    const std::array<std::int64_t, 1> sizes{run_end_ - run_begin_};
    deliver(values_of(*run_array_, width) + run_begin_ * static_cast<std::int64_t>(width), sizes,
            run_rows_[0], run_rows_);
  }
  run_rows_.clear();
  run_array_ = nullptr;
}

void LeafColumn::copy(const arrow::Array& array, std::int64_t begin, std::int64_t end, std::int64_t row) {
  const std::size_t to = size_of(column_.dtype);
  const std::size_t from = leaf_.encoding.bytes();
  const auto* dictionary = array.type_id() == arrow::Type::DICTIONARY
                               ? static_cast<const arrow::DictionaryArray*>(&array)
                               : nullptr;
  const arrow::Array& values = dictionary != nullptr ? stored(*dictionary->dictionary()) : array;
  const std::byte* data = leaf_.bits ? nullptr : values_of(values, from);
  for (std::int64_t i = begin; i < end && wanted_; ++i) {
    const bool null = array.IsNull(i);
    const std::int64_t at = dictionary != nullptr && !null ? dictionary->GetValueIndex(i) : i;
    if (null || values.IsNull(at)) {
      sink_->malformed(column_, row, 0, "");
      continue;
    }
    if (copied_rows_.size() == kMaxHeld) flush_copied();
    copied_.resize(copied_.size() + to);
    std::byte* place = copied_.data() + copied_.size() - to;
    if (leaf_.bits) {
      *place = static_cast<std::byte>(static_cast<const arrow::BooleanArray&>(array).Value(at));
    } else {
      convert(leaf_.encoding, data + at * static_cast<std::int64_t>(from), place, 1);
    }
    copied_rows_.push_back(row);
  }
}

void LeafColumn::flush_copied() {
  if (!copied_rows_.empty() && wanted_) {
    // Rows with one value each need no list of rows.
    const auto count = static_cast<std::int64_t>(copied_rows_.size());
    const bool plain =
        column_.sizes.size() == 1 && copied_rows_.back() - copied_rows_.front() == count - 1 &&
        std::adjacent_find(copied_rows_.begin(), copied_rows_.end(),
                           [](std::int64_t a, std::int64_t b) { return b != a + 1; }) == copied_rows_.end();
    const std::array<std::int64_t, 1> sizes{count};
    deliver(copied_.data(), sizes, copied_rows_[0],
            plain ? std::span<const std::int64_t>() : std::span<const std::int64_t>(copied_rows_));
  }
  copied_.clear();
  copied_rows_.clear();
}

}  // namespace trapline::inputs
