// Bytes from a descriptor, without and with decompression: one interface for every stage below the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace trapline {

// Why a source ended before its end, and what to do.
struct SourceProblem {
  std::string why, fix;
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads at least one byte unless the source is at its end (0) or broken (0, and problem() says why).
  virtual std::size_t read(char* data, std::size_t size) = 0;
  // None while nothing is wrong. What was read before stays good.
  virtual const std::optional<SourceProblem>& problem() const = 0;
};

// A descriptor that somebody else closes.
class DescriptorSource : public ByteSource {
 public:
  // `fresh`: nobody has read from it yet.
  DescriptorSource(int fd, bool fresh);
  std::size_t read(char* data, std::size_t size) override;
  const std::optional<SourceProblem>& problem() const override { return problem_; }

  bool live() const { return live_; }
  // Whether more bytes (or the end) are there within `milliseconds`.
  bool wait(int milliseconds) const;

 private:
  int fd_;
  std::int64_t size_ = 0;   // of a regular file, when it was opened
  std::int64_t left_ = -1;  // of a regular file; -1: unknown
  bool live_ = false;       // a pipe, a terminal or a socket
  std::optional<SourceProblem> problem_;
};

// Some bytes that were read ahead, then the rest of the source.
class PeekedSource : public ByteSource {
 public:
  // Reads ahead into `storage`, which must outlive the source, until `least` bytes are there (or the end);
  // takes what else comes with them.
  PeekedSource(ByteSource& rest, std::span<char> storage, std::size_t least);
  std::string_view peeked() const { return {storage_.data(), have_}; }
  void drop(std::size_t count) { taken_ += count; }
  bool pending() const { return taken_ < have_; }
  std::size_t read(char* data, std::size_t size) override;
  const std::optional<SourceProblem>& problem() const override { return rest_.problem(); }

 private:
  ByteSource& rest_;
  std::span<char> storage_;
  std::size_t have_ = 0;
  std::size_t taken_ = 0;
};

}  // namespace trapline
