// Bytes from a descriptor, without and with decompression: one interface for every stage below the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace trapline {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads at least one byte unless the source is at its end (0) or broken (0, and problem() says why).
  virtual std::size_t read(char* data, std::size_t size) = 0;
  // "why: what to do", empty while nothing is wrong. What was read before stays good.
  virtual const std::string& problem() const = 0;
};

// A descriptor that somebody else closes. `quiet` is told when a live one has had nothing to say for a
// moment.
class DescriptorSource : public ByteSource {
 public:
  explicit DescriptorSource(int fd);
  std::size_t read(char* data, std::size_t size) override;
  const std::string& problem() const override { return problem_; }

  bool live() const { return live_; }
  // Whether more bytes (or the end) are there within `milliseconds`.
  bool wait(int milliseconds) const;

 private:
  int fd_;
  bool live_ = false;  // a pipe, a terminal or a socket
  std::string problem_;
};

// Some bytes that were read ahead, then the rest of the source.
class PeekedSource : public ByteSource {
 public:
  // Reads ahead until `least` bytes are there (or the end), and takes up to `most` when they come by
  // themselves.
  PeekedSource(ByteSource& rest, std::size_t most, std::size_t least);
  const std::string& peeked() const { return peeked_; }
  void drop(std::size_t count) { taken_ += count; }
  bool pending() const { return taken_ < peeked_.size(); }
  std::size_t read(char* data, std::size_t size) override;
  const std::string& problem() const override { return rest_.problem(); }

 private:
  ByteSource& rest_;
  std::string peeked_;
  std::size_t taken_ = 0;
};

}  // namespace trapline
