// What only Python knows, asked of the Python that would run the program (python/trapline/_doctor.py).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "doctor/bounded.hpp"

namespace trapline::doctor {

struct PythonFacts {
  std::string version{}, executable{};
  std::vector<std::string> flags{};      // "-E", "-I", "-S", "-s"
  bool has_hook = false;                 // Trapline's start-up hook ran in it
  std::vector<std::string> customize{};  // files of sitecustomize and usercustomize that ran besides
  std::string hidden{};                  // a file of ours that another sitecustomize keeps from running
};

struct TorchFacts {
  std::string version{}, path{};
  std::string error{};  // why it cannot be imported; "": it can
  std::string cuda{};   // the CUDA that it was built with; empty: none
  std::string hip{};
};

struct GuardFacts {
  std::string kind{};      // native, kernel, pure; empty: none
  std::string what{};      // in words
  std::string why{};       // why it is not the compiled one
  std::string todo{};      // what would give it
  bool is_coming = false;  // it is being built, or will be at the next start
};

struct TorchCudaFacts {
  bool is_available = false;
  std::int64_t count = 0;
  std::string error{};
  std::vector<std::string> architectures{};  // "sm_80" that the build has code for
};

// Each part is missing where Python did not get so far.
struct PythonAnswer {
  Answer process;
  std::optional<PythonFacts> python{};
  std::optional<TorchFacts> torch{};
  std::optional<GuardFacts> guard{};
  std::optional<TorchCudaFacts> cuda{};
};

// Runs `python -c ...` as `trapline run` would, with Trapline's own module in it.
PythonAnswer ask_python(const std::string& python, const std::vector<std::string>& environment,
                        const std::filesystem::path& package, double seconds);

// The facts that the module has written, a JSON object a line; what makes no sense is left out.
void read_facts(const std::string& text, PythonAnswer& answer);

}  // namespace trapline::doctor
