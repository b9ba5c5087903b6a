#include "doctor/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "doctor/bounded.hpp"

namespace trapline::doctor {
namespace {

constexpr int kMaxGpus = 64;
// CUdevice_attribute of cuda.h.
constexpr int kMajor = 75, kMinor = 76;

std::string library_name() {
  const char* named = std::getenv("TRAPLINE_CUDA_DRIVER");
  return named != nullptr && *named != '\0' ? named : "libcuda.so.1";
}

template <class F>
F* function(void* library, const char* name) {
  return reinterpret_cast<F*>(::dlsym(library, name));
}

// In the child. A line for each fact: "error WORDS", "version N", "gpu MAJOR MINOR BYTES NAME".
std::string describe() {
  void* library = ::dlopen(library_name().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "missing\n";
  auto* init = function<int(unsigned)>(library, "cuInit");
  auto* version = function<int(int*)>(library, "cuDriverGetVersion");
  auto* count = function<int(int*)>(library, "cuDeviceGetCount");
  auto* get = function<int(int*, int)>(library, "cuDeviceGet");
  auto* name = function<int(char*, int, int)>(library, "cuDeviceGetName");
  auto* attribute = function<int(int*, int, int)>(library, "cuDeviceGetAttribute");
  auto* memory = function<int(std::size_t*, int)>(library, "cuDeviceTotalMem_v2");
  auto* error_name = function<int(int, const char**)>(library, "cuGetErrorName");
  if (init == nullptr || version == nullptr || count == nullptr) return "error it lacks cuInit\n";
  std::string text;
  int number = 0;
  if (version(&number) == 0) text += fmt::format("version {}\n", number);
  int devices = 0;
  const int began = init(0);
  const int error = began != 0 ? began : count(&devices);
  if (error != 0) {
    const char* words = nullptr;
    if (error_name == nullptr || error_name(error, &words) != 0 || words == nullptr) words = "error";
    return text + fmt::format("error {} ({})\n", words, error);
  }
  if (get == nullptr || name == nullptr || attribute == nullptr || memory == nullptr) return text;
  for (int i = 0; i < devices && i < kMaxGpus; ++i) {
    int device = 0, major = 0, minor = 0;
    std::size_t bytes = 0;
    std::array<char, 256> words{};
    if (get(&device, i) != 0) continue;
    name(words.data(), static_cast<int>(words.size()) - 1, device);
    attribute(&major, kMajor, device);
    attribute(&minor, kMinor, device);
    memory(&bytes, device);
    text += fmt::format("gpu {} {} {} {}\n", major, minor, bytes, words.data());
  }
  return text;
}

// The next word of `line` as a number.
std::uint64_t number_of(std::string_view& line) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.starts_with(' ')) line.remove_prefix(1);
  return value;
}

}  // namespace

std::optional<DriverFacts> ask_driver(double seconds) {
  const auto text = ask_child(describe, seconds);
  if (!text) return std::nullopt;
  DriverFacts facts;
  facts.library = library_name();
  facts.is_there = *text != "missing\n";
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view key = line.substr(0, space);
    line.remove_prefix(std::min(space + 1, line.size()));
    if (key == "error") facts.error = line;
    if (key == "version") facts.version = static_cast<int>(number_of(line));
    if (key != "gpu") continue;
    Gpu gpu;
    gpu.major = static_cast<int>(number_of(line));
    gpu.minor = static_cast<int>(number_of(line));
    gpu.bytes = number_of(line);
    gpu.name = line;
    facts.gpus.push_back(std::move(gpu));
  }
  return facts;
}

}  // namespace trapline::doctor
