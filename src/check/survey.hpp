// The first look at a source: what its columns show in their first rows, from which roles_of() decides.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "check/columns.hpp"
#include "inputs/reader.hpp"

namespace trapline::check {

class Survey : public inputs::Sink {
 public:
  explicit Survey(const std::atomic<bool>& stop) : stop_(stop) {}

  bool begin(const inputs::Column& column) override;
  bool begin_text(const inputs::Column& column) override;
  bool text(const inputs::Column& column, std::int64_t row, std::int64_t line,
            std::string_view text) override;
  bool piece(const inputs::Piece& piece) override;
  void malformed(const inputs::Column& column, std::int64_t row, std::int64_t line,
                 std::string_view text) override;
  void skipped(std::string_view name, std::string_view why) override;
  void class_names(const inputs::Column& column, std::span<const inputs::ClassName> names) override;
  bool stopped() const override { return stop_.load(std::memory_order_relaxed); }

  // By name, each once, in the order in which they came. Of columns of text those that may be labels.
  std::vector<Evidence> take();
  // "name (text)": what has no numbers.
  const std::vector<std::string>& without_numbers() const { return without_; }

 private:
  struct Open {
    Evidence evidence;
    std::unordered_set<std::int64_t> kinds;
    std::unordered_set<std::string> texts;
  };
  Open& open(const inputs::Column& column);
  void take_value(Open& column, double value);

  const std::atomic<bool>& stop_;
  std::vector<Open> columns_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<std::string> without_;
  std::int64_t kept_ = 0;  // different values, of all columns
};

}  // namespace trapline::check
