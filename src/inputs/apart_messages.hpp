// What the process that reads tells the one that checks: the calls of a Sink, as bytes. What arrives is
// checked as if it came from a file, for a library that a file has led astray may write anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "inputs/reader.hpp"

namespace trapline::inputs {

inline constexpr std::size_t kMaxMessage = std::size_t{64} << 20U;

// A message is numbers of 8 bytes, then bytes: `data`, whose start is so aligned, then `text`.
struct Message {
  enum class Kind : std::int64_t { kBegin, kPiece, kMalformed, kSkipped, kClassNames, kEnd };
  Kind kind = Kind::kEnd;
  std::vector<std::int64_t> numbers;
  std::span<const std::byte> data;
  std::vector<std::string> texts;
};

// In the child. Asks back after begin() and piece().
class SendingSink final : public Sink {
 public:
  explicit SendingSink(int socket) : socket_(socket) {}
  bool begin(const Column& column) override;
  bool piece(const Piece& piece) override;
  void malformed(const Column& column, std::int64_t row, std::int64_t line, std::string_view text) override;
  void skipped(std::string_view name, std::string_view why) override;
  void class_names(const Column& column, std::span<const ClassName> names) override;
  bool stopped() const override { return false; }  // the other process ends this one
  void end(const std::optional<Error>& problem);

 private:
  void send(const Message& message);
  bool answer();
  int socket_;
};

// In the parent: gives a message to the sink. The answer; empty: it is no message that a reader sends.
class Receiver {
 public:
  explicit Receiver(Sink& sink) : sink_(sink) {}
  // `bytes` begin aligned to 8.
  std::optional<bool> take(std::span<const std::byte> bytes);
  bool ended() const { return ended_; }
  const std::optional<Error>& problem() const { return problem_; }

 private:
  std::optional<bool> begin(const Message& message);
  std::optional<bool> piece(const Message& message);
  const Column* column(const Message& message) const;

  Sink& sink_;
  std::map<std::string, Column, std::less<>> columns_;  // at addresses that stay
  bool ended_ = false;
  std::optional<Error> problem_;
};

}  // namespace trapline::inputs
