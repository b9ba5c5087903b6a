#include "log/read/reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>

#include "bytes/decompress.hpp"
#include "bytes/source.hpp"
#include "log/clean/line_maker.hpp"
#include "log/read/encoding.hpp"
#include "log/read/notebook.hpp"
#include "log/read/order.hpp"
#include "log/read/window.hpp"

namespace trapline {
namespace {

constexpr std::size_t kMaxWords = 32;  // problems and notes kept
constexpr int kQuietMilliseconds = 30;

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kMaxSilence{60};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Opens files by name; those of one folder, one after the other, without a walk from the root for each.
class Opener {
 public:
  int open(const std::string& path, int flags) {
    const std::size_t slash = path.rfind('/');
    if (slash == path.npos) return ::open(path.c_str(), flags);
    if (!folder_ || path.compare(0, slash + 1, name_) != 0) {
      name_ = path.substr(0, slash + 1);
      folder_ = std::make_unique<Descriptor>(::open(name_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    if (folder_->get() < 0) return ::open(path.c_str(), flags);
    return ::openat(folder_->get(), path.c_str() + slash + 1, flags);
  }

 private:
  std::string name_;  // with its slash
  std::unique_ptr<Descriptor> folder_;
};

}  // namespace

// The stages whose memory is worth keeping from file to file.
struct LogReader::Stages {
  Stages(LineSink& sink, bool prefilter) : lines(sink), window(lines, prefilter) {}
  LineMaker lines;
  Window window;
  Opener opener;
  std::array<char, std::size_t{64} * 1024> peeked{};
  std::array<char, kSniffSize> unpacked{};
};

LogReader::LogReader(LineSink& sink, ReadOptions options)
    : sink_(sink),
      options_(std::move(options)),
      stages_(std::make_unique<Stages>(sink, options_.prefilter)) {}
LogReader::~LogReader() = default;

void LogReader::problem(Error error, bool no_logs) {
  if (summary_.problems.size() < kMaxWords) {
    summary_.problems.push_back({std::move(error), no_logs});
  } else {
    ++summary_.more_problems;
  }
}

void LogReader::note(std::string text) {
  if (summary_.notes.size() < kMaxWords) summary_.notes.push_back(std::move(text));
}

void LogReader::omit(std::string text) {
  if (summary_.omissions.size() < kMaxWords) {
    summary_.omissions.push_back(std::move(text));
  } else {
    ++summary_.more_omissions;
  }
}

bool LogReader::read_path(const std::string& path) {
  if (path == "-") return read_stream(STDIN_FILENO, "<stdin>");
  if (path.empty()) {  // "$LOG" of a variable that is not set
    problem({"a path is empty", "", "check the variable that should hold it"});
    return false;
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const bool wrong_name = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG || errno == ELOOP;
    problem({path, std::strerror(errno), wrong_name ? "check the name" : "check the permissions"});
    return false;
  }
  return S_ISDIR(status.st_mode) ? read_folder(path) : read_file(path, true);
}

bool LogReader::read_stream(int fd, const std::string& name) {
  return read_descriptor(fd, name, true, false);
}

bool LogReader::read_folder(const std::string& path) {
  bool any = false;
  const FolderListing listing = list_folder(path, options_.max_files, options_.max_depth);
  for (const Error& error : listing.problems) problem(error);
  for (const std::string& file : listing.files) {
    if (options_.skip && options_.skip(file)) continue;
    any = read_file(file, false) || any;
  }
  if (listing.left_out > 0) {
    omit(path + ": " + std::to_string(listing.left_out) + " files were not read: there are more than " +
         std::to_string(options_.max_files));
  }
  for (const std::string& omission : listing.omissions) omit(omission);
  summary_.more_omissions += listing.more_omissions;
  if (listing.hidden > 0) {
    note(path + ": " + std::to_string(listing.hidden) +
         (listing.hidden == 1 ? " hidden entry was" : " hidden entries were") +
         " not read: name what you mean");
  }
  if (!any && listing.problems.empty()) {
    problem({path, "no logs in this folder", "name the files, or another folder"}, true);
  }
  return any;
}

bool LogReader::read_file(const std::string& path, bool named) {
  // Non-blocking only for the opening: a named pipe without a writer must not hold up a folder.
  const Descriptor file(
      stages_->opener.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (named ? 0 : O_NONBLOCK)));
  if (file.get() < 0) {
    problem({path, std::strerror(errno), "check the permissions"});
    return false;
  }
  return read_descriptor(file.get(), path, named, true);
}

bool LogReader::read_descriptor(int fd, const std::string& name, bool named, bool fresh) {
  DescriptorSource descriptor(fd, fresh);
  PeekedSource head(descriptor, stages_->peeked, descriptor.live() ? kMagicSize : kSniffSize);
  const Compression compression = compression_of(head.peeked());
  const std::unique_ptr<ByteSource> unpacked = decompress(compression, head);
  std::unique_ptr<PeekedSource> unpacked_head;
  if (unpacked) {
    unpacked_head = std::make_unique<PeekedSource>(*unpacked, stages_->unpacked, kSniffSize);
  }
  PeekedSource& text = unpacked_head ? *unpacked_head : head;

  SourceEnd end;
  const EncodingGuess guess = guess_encoding(text.peeked().substr(0, kSniffSize));
  if (guess.encoding == Encoding::kBinary) {
    const std::string what = guess.what.empty() ? "not a text" : "this is " + std::string(guess.what);
    end.binary = true;
    end.bytes = text.peeked().size();
    ++summary_.skipped;
    if (named) {
      problem({name, what, "name the program's log"});
    } else if (guess.no_log) {
      note(name + ": skipped: " + what);
    } else {
      omit(name + ": skipped: " + what);
    }
    sink_.end_of_source(name, end);
    return false;
  }
  text.drop(guess.skip);
  Utf16Source utf16(text, guess.encoding == Encoding::kUtf16Big);
  ByteSource& source = guess.encoding == Encoding::kUtf8 ? static_cast<ByteSource&>(text) : utf16;

  stages_->lines.begin(name);
  if (is_notebook(name, text.peeked())) {
    read_notebook(source, end);
    return finish_source(name, source, end);
  }
  Window& window = stages_->window;
  window.reset();
  bool told = true;
  bool only_zeros = true;  // what a crashed file system leaves of a file
  bool only_blanks = true;
  std::int64_t delivered = 0;
  Clock::time_point delivered_at;  // the first line that was not told yet
  while (true) {
    std::size_t size = 0;
    char* room = window.room(size);
    if (descriptor.live() && !told) {
      // A stream that never pauses is interrupted now and then: what was delivered should be told soon.
      const bool late = Clock::now() - delivered_at > kMaxSilence;
      if (late || (!text.pending() && !descriptor.wait(kQuietMilliseconds))) {
        sink_.quiet();
        told = true;
      }
    }
    const std::size_t got = source.read(room, size);
    if (got == 0) break;
    only_zeros = only_zeros && std::all_of(room, room + got, [](char c) { return c == 0; });
    only_blanks = only_blanks && std::all_of(room, room + got, [](char c) {
                    return c == '\n' || c == '\r' || c == ' ' || c == '\t';
                  });
    window.filled(got);
    if (told && window.delivered() != delivered) {
      told = false;
      delivered_at = Clock::now();
    }
    delivered = window.delivered();
  }
  window.finish(window.bytes() <= static_cast<std::uint64_t>(quiet_source_budget_));
  if (!window.hit() && window.delivered() > 0)
    quiet_source_budget_ -= static_cast<std::int64_t>(window.bytes());

  end.bytes = only_blanks ? 0 : window.bytes();  // empty lines say as little as an empty file
  end.lines = window.lines();
  end.shortened = window.shortened();
  end.unfinished = window.unfinished();
  if (!source.problem() && only_zeros && end.bytes > 0)
    problem({name, "it holds zero bytes only", "name another copy: this one was not written to its end"});
  return finish_source(name, source, end);
}

// A notebook's lines are few and stand between megabytes of pictures: all of them are delivered.
void LogReader::read_notebook(ByteSource& source, SourceEnd& end) {
  NotebookReader notebook(stages_->lines);
  std::vector<char> room(Window::kBlock);
  while (const std::size_t got = source.read(room.data(), room.size())) {
    notebook.feed({room.data(), got});
    end.bytes += got;
  }
  notebook.finish();
  end.lines = notebook.lines();
  end.unfinished = notebook.unfinished();
}

bool LogReader::finish_source(const std::string& name, const ByteSource& source, SourceEnd& end) {
  stages_->lines.end();
  end.replaced = stages_->lines.replaced();
  if (source.problem()) {
    end.problem = Error{name, source.problem()->why, source.problem()->fix};
    problem(*end.problem);
  }
  if (end.shortened > 0) {
    note(name + ": " + std::to_string(end.shortened) + (end.shortened == 1 ? " line is" : " lines are") +
         " longer than " + std::to_string(Window::kLongLine / 1024) + " KiB and taken in pieces");
  }
  ++summary_.sources;
  summary_.bytes += end.bytes;
  summary_.lines += end.lines;
  sink_.end_of_source(name, end);
  return true;
}

}  // namespace trapline
