#include "supervise/samples.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "supervise/spawn.hpp"

namespace trapline::supervise {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxFile = std::uintmax_t{16} << 20U;
constexpr std::size_t kMaxLines = 100'000;

bool is_of(const std::string& line, const Finding& root) {
  const auto read = nlohmann::json::parse(line, nullptr, false);
  if (!read.is_object() || !read.value("dataset_index", nlohmann::json()).is_number_integer()) return false;
  return read.value("code", nlohmann::json()) == info(root.cause).code &&
         read.value("op", nlohmann::json()) == root.op;
}

}  // namespace

std::vector<std::string> proposed_samples(const fs::path& folder, const Finding& root) {
  std::vector<std::string> out;
  std::set<std::string> known;  // several ranks may have met the same sample
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    const std::string name = file->path().filename().string();
    std::error_code problem;
    if (!name.starts_with("samples-") || !name.ends_with(".jsonl")) continue;
    if (!file->is_regular_file(problem) || file->file_size(problem) > kMaxFile) continue;
    std::ifstream from(file->path());
    for (std::string line; std::getline(from, line) && out.size() < kMaxLines;) {
      if (is_of(line, root) && known.insert(line).second) out.push_back(line);
    }
  }
  return out;
}

bool add_samples(const fs::path& quarantine, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  // One write at the end: the nodes of a job may share the file.
  const Descriptor file(
      ::open(quarantine.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
  return file.is_open() && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace trapline::supervise
