// A rule over files: which files are meant, each read once, those with something bad in them once more.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "check/column_sink.hpp"
#include "check/rule.hpp"
#include "check/workers.hpp"
#include "core/finding.hpp"
#include "core/result.hpp"

namespace trapline::check {

struct FileResult {
  std::string path;
  std::int64_t bytes = 0;
  std::optional<Error> error;
  std::vector<ColumnResult> columns;
  std::vector<std::string> objects;   // what is no tensor and was not looked into
  bool whole = false;                 // read to the end
  bool table = false;                 // its reader knows tables, of which programs pick columns
  bool records = false;               // and they are tables of records: nothing in them is a weight
  std::string_view annotations = {};  // "COCO": its labels are those of boxes in pictures
  std::vector<std::string> looked;    // all columns, also those that were not checked: "id", "title (text)"
  std::size_t unclear = 0;            // columns of integers that nothing tells about
};

struct Progress {
  std::atomic<std::int64_t> bytes{0}, all_bytes{0};
  std::atomic<std::int64_t> files{0}, all_files{0};
};

struct Job {
  Workers& workers;
  const std::atomic<bool>& stop;
  Progress& progress;
};

// Folders become the files below them that some reader knows, patterns what they match; what cannot be found
// or has no reader is a problem.
std::vector<std::string> expand(const std::vector<std::string>& words, std::vector<Error>& problems);

// Reads one file against the rule, and again for the details of what is bad.
FileResult check_file(const Rule& rule, const ColumnFilter& wanted, const std::string& path, const Job& job);

// All files, on all threads, results in the order of the paths.
std::vector<FileResult> check_files(const Rule& rule, const ColumnFilter& wanted,
                                    const std::vector<std::string>& paths, const Job& job);

// How many values were checked; 0 is no pass.
std::int64_t values_in(const std::vector<FileResult>& results);

// "id, title (text), ...", for a message.
std::string column_list(const std::vector<std::string>& names);

// What the results say: findings in the order of the files, and a note on what was looked at.
Report report_of(const Rule& rule, const std::vector<FileResult>& results);

}  // namespace trapline::check
