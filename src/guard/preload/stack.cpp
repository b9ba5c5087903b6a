#include "guard/preload/stack.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#define BACKWARD_HAS_DW 1
#include <backward.hpp>

namespace trapline::native {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxFrames = 128;

std::string line_of(const std::string& path, unsigned number) {
  std::ifstream file(path);
  std::string line;
  for (unsigned i = 0; i < number; ++i) {
    if (!std::getline(file, line)) return "";
  }
  return line.size() <= 400 ? line : line.substr(0, 400);
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](auto part) { return text.find(part) != std::string_view::npos; });
}

// The program's own code: no header of torch or of the standard library, and no file of a library that was
// built elsewhere (its sources are not here).
bool is_user(const std::string& file) {
  if (contains_any(file, {"/include/torch/", "/include/ATen/", "/include/c10/", "/include/c++/", "/bits/"}))
    return false;
  return std::ifstream(file).good();
}

// libtrapline_native, the adapter, and the dispatcher's glue, whose names fill a screen and say nothing.
bool is_hidden(const std::string& object, const std::string& function) {
  return contains_any(object, {"libtrapline", "trapline_libtorch"}) ||
         contains_any(function, {"trapline::guard::", "c10::impl::"});
}

// What calls main().
bool is_start(const std::string& object, const std::string& function) {
  return function == "_start" || function.starts_with("__libc_start") || contains_any(object, {"/ld-linux"});
}

// "torch::nn::functional::cross_entropy(at::Tensor const&, ...)" without its parameters: "main", "train".
std::string short_name(const std::string& function) {
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    if (function[i] == '<') ++depth;
    if (function[i] == '>' && depth > 0) --depth;
    if (function[i] == '(' && depth == 0 && i > 0) return function.substr(0, i);
  }
  return function;
}

// Where the line calls the operation, from 1, the end beyond: "torch::nn::functional::cross_entropy(x, y)".
std::pair<std::size_t, std::size_t> columns_of(const std::string& line, const std::string& operation) {
  std::size_t begin = operation.empty() ? std::string::npos : line.find(operation);
  if (begin == std::string::npos) return {0, 0};
  std::size_t end = begin + operation.size();
  const auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':';
  };
  while (begin > 0 && is_name(line[begin - 1])) --begin;
  int depth = 0;
  for (std::size_t i = end; i < line.size() && (i > end || line[i] == '('); ++i) {
    depth += line[i] == '(' ? 1 : line[i] == ')' ? -1 : 0;
    if (depth == 0) {
      end = i + 1;
      break;
    }
  }
  return {begin + 1, end + 1};
}

json frame_of(const std::string& file, unsigned line, const std::string& function) {
  const bool user = is_user(file);
  return {{"file", file},
          {"line", line},
          {"function", short_name(function)},
          {"code", user ? line_of(file, line) : ""},
          {"user", user}};
}

}  // namespace

Stack capture_stack(const std::string& operation) {
  backward::StackTrace trace;
  trace.load_here(kMaxFrames);
  backward::TraceResolver resolver;
  resolver.load_stacktrace(trace);
  std::vector<json> innermost_first;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const backward::ResolvedTrace resolved = resolver.resolve(trace[i]);
    if (is_hidden(resolved.object_filename, resolved.object_function) ||
        is_start(resolved.object_filename, resolved.object_function))
      continue;
    const auto& source = resolved.source;
    const std::string& function = source.function.empty() ? resolved.object_function : source.function;
    if (source.filename.empty()) {
      innermost_first.push_back({{"file", resolved.object_filename},
                                 {"line", 0},
                                 {"function", short_name(function)},
                                 {"user", false}});
      continue;
    }
    // The source is the innermost of the calls that were inlined into the object's function; the inliners
    // are where each was called from.
    // Each names the function that was inlined there, which is the function of the place before it.
    const auto& inliners = resolved.inliners;
    for (std::size_t at = 0; at <= inliners.size(); ++at) {
      const auto& place = at == 0 ? source : inliners[at - 1];
      innermost_first.push_back(
          frame_of(place.filename, place.line, at < inliners.size() ? inliners[at].function : function));
    }
  }
  Stack stack;
  for (const json& frame : innermost_first) {
    if (frame["user"].get<bool>()) {
      stack.origin = frame;
      const auto [begin, end] = columns_of(frame["code"].get<std::string>(), operation);
      if (end > begin) {
        stack.origin["column"] = begin;
        stack.origin["end_column"] = end;
      }
      break;
    }
  }
  for (auto frame = innermost_first.rbegin(); frame != innermost_first.rend(); ++frame)
    stack.frames.push_back(std::move(*frame));
  return stack;
}

}  // namespace trapline::native
