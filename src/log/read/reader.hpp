// The reader: files, folders and streams in, cleaned lines that may matter out.
//
//   fd -> decompress -> encoding -> window (prefilter, context) -> clean -> prefix -> LineSink
//
// Memory is flat whatever the input: every stage works on blocks of fixed size.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "log/line.hpp"

namespace trapline {

class ByteSource;

struct ReadOptions {
  bool prefilter = true;            // false: every line is delivered (slow; the tests' reference)
  std::int64_t max_files = 100000;  // of one folder
  int max_depth = 16;               // of folders in folders
  std::function<bool(const std::string& path)> skip;  // files in folders that are somebody else's business
};

struct ReadProblem {
  Error error;
  bool no_logs = false;  // a folder without any logs: no problem where something else was found in it
};

struct ReadSummary {
  std::int64_t sources = 0;  // texts read, damaged ones included
  std::int64_t skipped = 0;  // files in folders that are no text
  std::uint64_t bytes = 0;   // of text, after decompression
  std::int64_t lines = 0;
  std::vector<ReadProblem> problems;  // inputs that could not be read, or not to their end; at most 32
  std::int64_t more_problems = 0;
  std::vector<std::string> notes;  // limits of what was read; at most 32
  // What was passed over and may hold the fault, a line each; at most 32. A report is not clean then.
  std::vector<std::string> omissions;
  std::int64_t more_omissions = 0;
};

class LogReader {
 public:
  explicit LogReader(LineSink& sink, ReadOptions options = {});
  ~LogReader();

  // A file, a folder (recursively, in natural order: rank2 before rank10), or "-" for standard input.
  // Problems do not stop the reading; they are in summary(). Returns false when nothing at all could be read
  // of this path.
  bool read_path(const std::string& path);

  // Reads to the end of the stream; a live one (pipe, terminal, socket) delivers lines as they arrive.
  bool read_stream(int fd, const std::string& name);

  const ReadSummary& summary() const { return summary_; }

 private:
  struct Stages;

  bool read_folder(const std::string& path);
  bool read_file(const std::string& path, bool named);
  bool read_descriptor(int fd, const std::string& name, bool named, bool fresh);
  void read_notebook(ByteSource& source, SourceEnd& end);
  bool finish_source(const std::string& name, const ByteSource& source, SourceEnd& end);
  void problem(Error error, bool no_logs = false);
  void note(std::string text);
  void omit(std::string text);

  LineSink& sink_;
  ReadOptions options_;
  ReadSummary summary_;
  std::unique_ptr<Stages> stages_;
  std::int64_t quiet_source_budget_ =
      std::int64_t{256} * 1024;  // bytes of small sources without any hit that are delivered all the same
};

}  // namespace trapline
