// Jupyter notebooks: what their cells printed and raised, as lines. The cells' sources, pictures and widgets
// are passed over, so that the words of a tutorial are no evidence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "log/clean/raw_line.hpp"

namespace trapline {

// Whether a source is a notebook, by its name and its first bytes.
bool is_notebook(std::string_view name, std::string_view head);

// Takes a notebook in pieces of any size. Lenient: one that was cut is told up to there. A line's number is
// that of the line in the file on which its string begins.
class NotebookReader {
 public:
  explicit NotebookReader(RawLineSink& sink) : sink_(sink) {}
  void feed(std::string_view bytes);
  // The end of the file. Of an exception that it cuts, what was there is told.
  void finish();
  std::int64_t lines() const { return number_ - 1; }
  bool unfinished() const { return !open_.empty() || in_string_; }

 private:
  struct Open {
    bool object;
    std::string key;  // what it is in the object around it; a list's items have their list's
    bool outputs;     // inside a cell's outputs
  };

  void tell_exception();
  void string_begins();
  void string_ends();
  void closes();
  void tell(std::string_view inside, std::int64_t number);

  RawLineSink& sink_;
  std::vector<Open> open_;
  std::string key_;           // of the value that follows
  bool key_follows_ = false;  // in an object: the next string is a key
  bool in_string_ = false, is_escaped_ = false, is_kept_ = false;
  std::string inside_;  // of the string, still escaped
  std::int64_t number_ = 1, string_number_ = 1;
  std::string name_, value_;  // of the exception in this output; told at its end where no traceback was
  bool has_traceback_ = false;
};

}  // namespace trapline
