// Class numbers beside those that the data set names: COCO's categories are 1 to 90, and ten of them and 0
// are no class. A range cannot tell.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>

#include "check/tally.hpp"
#include "inputs/reader.hpp"

namespace trapline::check {

// Numbers in [0, limit) that no class has.
bool has_gaps(std::span<const inputs::ClassName> classes, std::int64_t limit);

// Reads one column once more.
class GapSink final : public inputs::Sink {
 public:
  GapSink(std::string column, std::span<const inputs::ClassName> classes, const std::atomic<bool>& stop);

  bool begin(const inputs::Column& column) override { return column.name == column_; }
  bool piece(const inputs::Piece& piece) override;
  void malformed(const inputs::Column&, std::int64_t, std::int64_t, std::string_view) override {}
  void file(const inputs::Column& column, std::string_view path, std::int64_t first_row) override;
  bool stopped() const override { return stop_.load(std::memory_order_relaxed); }

  // Labels from 0 to the highest class that are none of them.
  std::int64_t bad() const { return bad_; }
  const Place& first() const { return first_; }

 private:
  std::string column_;
  const std::atomic<bool>& stop_;
  std::unordered_set<std::int64_t> ids_;
  std::int64_t highest_ = 0;
  std::int64_t bad_ = 0;
  Place first_;
  std::string file_;
  std::int64_t file_row_ = 0;
};

}  // namespace trapline::check
