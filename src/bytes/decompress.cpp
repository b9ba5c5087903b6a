#include "bytes/decompress.hpp"

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace trapline {
namespace {

constexpr std::uint64_t kMaxXzMemory = 96U << 20;  // `xz -9` needs 65 MiB; more is nobody's log
constexpr std::string_view kDamagedFix = "the text before it was read; copy the file again";
constexpr int kMaxZstdWindowLog = 26;  // 64 MiB

// The input side that the formats share: a buffer, the offset, and the words of a problem.
class Decompressor : public ByteSource {
 public:
  Decompressor(Compression compression, ByteSource& compressed)
      : compressed_(compressed), format_(compression) {}
  const std::optional<SourceProblem>& problem() const override { return problem_; }

  std::size_t read(char* data, std::size_t size) final {
    std::size_t got = 0;
    while (got == 0 && size > 0 && !problem_ && !ended_) {
      if (next_ == filled_ && !fill() && at_boundary()) {
        problem_ = compressed_.problem();
        ended_ = true;
        break;
      }
      const bool starved = next_ == filled_;
      got = step(data, size);
      // Out of input, nothing came out, and still inside a member: the archive ends before its end.
      if (got == 0 && starved && !ended_ && !problem_) {
        problem_ = compressed_.problem() ? compressed_.problem() : truncated();
      }
    }
    return got;
  }

 protected:
  // Turns input into at most `size` bytes of output; consumes with take().
  virtual std::size_t step(char* data, std::size_t size) = 0;
  // Between two members, where the file may end.
  virtual bool at_boundary() const = 0;

  char* input() { return buffer_.data() + next_; }
  std::size_t available() const { return filled_ - next_; }
  void take(std::size_t count) { next_ += count; }
  void end() { ended_ = true; }
  void broken(const std::string& what) {
    problem_ = SourceProblem{
        what + " in the " + std::string(name_of(format_)) + " data at offset " + std::to_string(offset()),
        std::string(kDamagedFix)};
  }

 private:
  bool fill() {
    base_ += filled_;
    next_ = 0;
    filled_ = compressed_.read(buffer_.data(), buffer_.size());
    return filled_ > 0;
  }
  std::uint64_t offset() const { return base_ + next_; }
  SourceProblem truncated() const {
    return {"the " + std::string(name_of(format_)) + " data ends too early, at offset " +
                std::to_string(offset()),
            std::string(kDamagedFix)};
  }

  ByteSource& compressed_;
  Compression format_;
  std::array<char, std::size_t{64} * 1024> buffer_;
  std::size_t next_ = 0, filled_ = 0;
  std::uint64_t base_ = 0;  // offset of the buffer in the file
  std::optional<SourceProblem> problem_;
  bool ended_ = false;
};

class Gzip final : public Decompressor {
 public:
  explicit Gzip(ByteSource& compressed) : Decompressor(Compression::kGzip, compressed) {
    ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK;
  }
  ~Gzip() override { inflateEnd(&stream_); }

 protected:
  bool at_boundary() const override { return boundary_; }
  std::size_t step(char* data, std::size_t size) override {
    if (!ready_) return broken("no memory"), 0;
    if (boundary_ && members_ > 0) {
      // gzip's own tool takes zeros behind the last member for padding, and anything else that is no member
      // for garbage.
      while (available() > 0 && *input() == 0) take(1);
      if (available() == 0) return 0;
      if (*input() != '\x1f') return broken("garbage behind the archive"), 0;
      inflateReset(&stream_);
    }
    boundary_ = false;
    stream_.next_in = reinterpret_cast<Bytef*>(input());
    stream_.avail_in = static_cast<uInt>(available());
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
    const uInt room = stream_.avail_out;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    take(available() - stream_.avail_in);
    if (result == Z_STREAM_END) {
      boundary_ = true;
      ++members_;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      broken(stream_.msg != nullptr ? stream_.msg : "an error");
    }
    return room - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
  bool boundary_ = false;
  std::int64_t members_ = 0;
};

class Bzip2 final : public Decompressor {
 public:
  explicit Bzip2(ByteSource& compressed) : Decompressor(Compression::kBzip2, compressed) { start(); }
  ~Bzip2() override { BZ2_bzDecompressEnd(&stream_); }

 protected:
  bool at_boundary() const override { return boundary_; }
  std::size_t step(char* data, std::size_t size) override {
    if (boundary_ && members_ > 0) {
      if (*input() != 'B') return broken("garbage behind the archive"), 0;
      BZ2_bzDecompressEnd(&stream_);
      start();
    }
    if (!ready_) return broken("no memory"), 0;
    boundary_ = false;
    stream_.next_in = input();
    stream_.avail_in = static_cast<unsigned>(available());
    stream_.next_out = data;
    stream_.avail_out =
        static_cast<unsigned>(std::min<std::size_t>(size, std::numeric_limits<unsigned>::max()));
    const unsigned room = stream_.avail_out;
    const int result = BZ2_bzDecompress(&stream_);
    take(available() - stream_.avail_in);
    if (result == BZ_STREAM_END) {
      boundary_ = true;
      ++members_;
    } else if (result != BZ_OK) {
      broken(result == BZ_MEM_ERROR ? "no memory" : "broken block");
    }
    return room - stream_.avail_out;
  }

 private:
  void start() {
    stream_ = {};
    ready_ = BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK;
  }
  bz_stream stream_{};
  bool ready_ = false;
  bool boundary_ = false;
  std::int64_t members_ = 0;
};

class Xz final : public Decompressor {
 public:
  explicit Xz(ByteSource& compressed) : Decompressor(Compression::kXz, compressed) {
    ready_ = lzma_stream_decoder(&stream_, kMaxXzMemory, LZMA_CONCATENATED) == LZMA_OK;
  }
  ~Xz() override { lzma_end(&stream_); }

 protected:
  // Only the decoder knows, and it is asked with LZMA_FINISH when the input has ended.
  bool at_boundary() const override { return false; }
  std::size_t step(char* data, std::size_t size) override {
    if (!ready_) return broken("no memory"), 0;
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(input());
    stream_.avail_in = available();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(data);
    stream_.avail_out = size;
    const lzma_ret result = lzma_code(&stream_, available() == 0 ? LZMA_FINISH : LZMA_RUN);
    take(available() - stream_.avail_in);
    if (result == LZMA_STREAM_END) {
      end();
    } else if (result == LZMA_MEMLIMIT_ERROR) {
      broken("a dictionary of more than 96 MiB");
    } else if (result != LZMA_OK && result != LZMA_BUF_ERROR) {
      broken(result == LZMA_MEM_ERROR ? "no memory" : "broken block");
    }
    return size - stream_.avail_out;
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ready_ = false;
};

class Zstd final : public Decompressor {
 public:
  explicit Zstd(ByteSource& compressed)
      : Decompressor(Compression::kZstd, compressed), stream_(ZSTD_createDStream()) {
    if (stream_ != nullptr) ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kMaxZstdWindowLog);
  }
  ~Zstd() override { ZSTD_freeDStream(stream_); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;

 protected:
  bool at_boundary() const override { return boundary_; }
  std::size_t step(char* data, std::size_t size) override {
    if (stream_ == nullptr) return broken("no memory"), 0;
    ZSTD_inBuffer in{input(), available(), 0};
    ZSTD_outBuffer out{data, size, 0};
    const std::size_t result = ZSTD_decompressStream(stream_, &out, &in);
    take(in.pos);
    if (ZSTD_isError(result) != 0) {
      broken(ZSTD_getErrorName(result));
    } else {
      boundary_ = result == 0;
    }
    return out.pos;
  }

 private:
  ZSTD_DStream* stream_;
  bool boundary_ = false;
};

}  // namespace

Compression compression_of(std::string_view magic) {
  using namespace std::string_view_literals;
  // A file that ends within its magic is an archive, too, of which next to nothing was copied. From two bytes
  // on: one alone may be anything.
  const auto is = [&](std::string_view whole) {
    return magic.starts_with(whole) || (magic.size() >= 2 && whole.starts_with(magic));
  };
  if (is("\x1f\x8b\x08"sv)) return Compression::kGzip;
  if (is("\x28\xb5\x2f\xfd"sv)) return Compression::kZstd;
  // What is for other readers (RFC 8878, 3.1.2), as parallel compressors put it in front.
  if (magic.size() >= 4 && magic[0] >= '\x50' && magic[0] <= '\x5f' &&
      magic.substr(1).starts_with("\x2a\x4d\x18")) {
    return Compression::kZstd;
  }
  if (is("\xfd"
         "7zXZ\0"sv)) {
    return Compression::kXz;
  }
  if (is("BZh"sv) && (magic.size() < 4 || (magic[3] >= '1' && magic[3] <= '9')) &&
      (magic.size() < 5 || magic[4] == '\x31' || magic[4] == '\x17')) {
    return Compression::kBzip2;
  }
  return Compression::kNone;
}

std::string_view name_of(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "plain";
    case Compression::kGzip:
      return "gzip";
    case Compression::kZstd:
      return "zstd";
    case Compression::kBzip2:
      return "bzip2";
    case Compression::kXz:
      return "xz";
  }
  return "";
}

std::unique_ptr<ByteSource> decompress(Compression compression, ByteSource& compressed) {
  switch (compression) {
    case Compression::kNone:
      break;
    case Compression::kGzip:
      return std::make_unique<Gzip>(compressed);
    case Compression::kZstd:
      return std::make_unique<Zstd>(compressed);
    case Compression::kBzip2:
      return std::make_unique<Bzip2>(compressed);
    case Compression::kXz:
      return std::make_unique<Xz>(compressed);
  }
  return nullptr;
}

}  // namespace trapline
