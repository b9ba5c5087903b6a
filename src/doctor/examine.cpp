#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "doctor/doctor.hpp"
#include "doctor/driver.hpp"
#include "doctor/places.hpp"
#include "doctor/python.hpp"
#include "doctor/self_test.hpp"
#include "doctor/variables.hpp"
#include "run/environment.hpp"
#include "run/find_program.hpp"
#include "run/session.hpp"

namespace trapline::doctor {
namespace {

using enum Level;

constexpr double kDriverSeconds = 20;

std::string cuda_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Lines lines_of_driver(const std::optional<DriverFacts>& driver, double seconds) {
  if (!driver) {
    return {{kProblem, "driver", fmt::format("no answer within {} s, or a crash", seconds),
             "programs that use CUDA will hang or crash, too",
             "run nvidia-smi; look for Xid lines in `dmesg`"}};
  }
  if (!driver->is_there) {
    return {{kNote, "driver", fmt::format("{} cannot be loaded", driver->library),
             "there is no NVIDIA driver here: checks run on the CPU, and programs for CUDA need --cpu", ""}};
  }
  Lines lines;
  const std::string version =
      driver->version > 0 ? fmt::format(", serves CUDA up to {}", cuda_text(driver->version)) : "";
  if (!driver->error.empty()) {
    const bool none = driver->error.find("NO_DEVICE") != std::string::npos;
    lines.push_back(
        {none ? kNote : kProblem, "driver", fmt::format("{}{}: {}", driver->library, version, driver->error),
         none ? "no GPU, or none that this process may see" : "CUDA does not work here",
         none ? "" : "run nvidia-smi: a mismatch of its kernel module and library needs a restart"});
    return lines;
  }
  lines.push_back({kOk, "driver", driver->library + version});
  for (std::size_t i = 0; i < driver->gpus.size(); ++i) {
    const Gpu& gpu = driver->gpus[i];
    lines.push_back({kOk, fmt::format("gpu {}", i),
                     fmt::format("{}, {}, compute capability {}.{}", gpu.name, size_text(gpu.bytes),
                                 gpu.major, gpu.minor)});
  }
  if (driver->gpus.empty())
    lines.push_back({kNote, "gpu", "none is visible", "checks run on the CPU", "see CUDA_VISIBLE_DEVICES"});
  return lines;
}

// What a Python that gave no facts did instead.
Line line_without_facts(const std::string& python, const PythonAnswer& answer, double seconds) {
  const Answer& process = answer.process;
  if (!process.error.empty())
    return {kProblem, "python", process.error, "", "name your program's Python with --python PATH"};
  std::string said = process.output.substr(0, process.output.find_last_not_of(" \n") + 1);
  said.erase(0, said.find_last_of('\n') + 1);
  const std::string words = said.empty() ? "" : fmt::format("; it said: {}", said);
  if (process.timed_out)
    return {kProblem, "python", fmt::format("{} did not answer within {} s{}", python, seconds, words), "",
            "start it by hand; name another one with --python PATH"};
  return {kProblem, "python",
          fmt::format("{} ended with code {} and told nothing{}", python, process.ended.exit_code, words), "",
          "is it a Python? name your program's with --python PATH"};
}

Lines lines_of_python(const std::string& python, const PythonAnswer& answer, double seconds) {
  if (!answer.python) return {line_without_facts(python, answer, seconds)};
  const PythonFacts& facts = *answer.python;
  Lines lines = {{kOk, "python", fmt::format("{}, {}", facts.version, facts.executable)}};
  if (facts.has_hook) {
    lines.push_back({kOk, "hook", "the start-up hook of `trapline run` reaches it"});
  } else {
    const bool by_flags = !facts.flags.empty();
    std::string why = by_flags                ? fmt::format("it runs with {}", fmt::join(facts.flags, ", "))
                      : !facts.hidden.empty() ? facts.hidden + " runs instead"
                                              : "PYTHONPATH does not reach it";
    lines.push_back({kProblem, "hook", "the start-up hook of `trapline run` does not reach it: " + why,
                     "programs that this Python runs are not guarded",
                     by_flags ? "start the program without these flags, or call trapline.install() in it"
                              : "call trapline.install() in the program"});
  }
  for (const std::string& file : facts.customize) {
    lines.push_back({kOk, "customize", file + " runs at the start of every Python",
                     "Trapline's hook lets it run, and runs besides", ""});
  }
  return lines;
}

Lines lines_of_torch(const PythonAnswer& answer, const std::optional<DriverFacts>& driver, double seconds) {
  if (!answer.python) return {};
  if (!answer.torch) {
    return {{kProblem, "torch",
             answer.process.timed_out
                 ? fmt::format("`import torch` takes longer than {} s", seconds)
                 : fmt::format("`import torch` ended the process{}",
                               answer.process.ended.signal != 0
                                   ? fmt::format(" by signal {}", answer.process.ended.signal)
                                   : ""),
             "no program of this Python can use it", "try it by hand"}};
  }
  const TorchFacts& torch = *answer.torch;
  if (!torch.error.empty()) {
    return {{kProblem, "torch", torch.error,
             "programs of this Python cannot use torch, and nothing is guarded",
             "activate the environment of your program, or name its Python with --python PATH"}};
  }
  const bool has_gpu = driver && !driver->gpus.empty();
  const std::string build = !torch.cuda.empty()  ? fmt::format("built for CUDA {}", torch.cuda)
                            : !torch.hip.empty() ? fmt::format("built for ROCm {}", torch.hip)
                                                 : "built for the CPU";
  Line line{kOk, "torch", fmt::format("{}, {}, {}", torch.version, build, torch.path)};
  if (torch.cuda.empty() && torch.hip.empty() && has_gpu) {
    line.level = kNote;
    line.means = "this torch cannot use the GPU of this machine";
    line.todo = "install a CUDA build, if the program is to run on the GPU (pytorch.org, \"Get Started\")";
  }
  if (!torch.hip.empty()) {
    line.level = kNote;
    line.means = "on ROCm only what runs on the CPU is checked";
  }
  return {line};
}

Lines lines_of_torch_cuda(const PythonAnswer& answer, const std::optional<DriverFacts>& driver,
                          double seconds) {
  if (!answer.torch || !answer.torch->error.empty() || answer.torch->cuda.empty()) return {};
  if (!answer.cuda) {
    return {{kProblem, "torch.cuda",
             answer.process.timed_out ? fmt::format("no answer within {} s", seconds)
                                      : "asking for the GPU ended the process",
             "programs that use the GPU hang or crash", "run nvidia-smi; look for Xid lines in `dmesg`"}};
  }
  const TorchCudaFacts& cuda = *answer.cuda;
  const bool has_gpu = driver && !driver->gpus.empty();
  if (!cuda.is_available) {
    if (!has_gpu)
      return {{kNote, "torch.cuda", "torch sees no GPU", "programs for CUDA need --cpu here", ""}};
    return {{kProblem, "torch.cuda",
             "torch sees no GPU, though the driver has one" + (cuda.error.empty() ? "" : ": " + cuda.error),
             "the driver may be too old for this build",
             "update the driver, or install a build for an older CUDA"}};
  }
  Lines lines = {
      {kOk, "torch.cuda", fmt::format("torch sees {} GPU{}", cuda.count, cuda.count == 1 ? "" : "s")}};
  for (const Gpu& gpu : has_gpu ? driver->gpus : std::vector<Gpu>{}) {
    // Code for sm_XY runs on X.Z with Z >= Y, and PTX (compute_XY) on everything newer.
    const bool fits = std::ranges::any_of(cuda.architectures, [&](const std::string& name) {
      const auto at = name.find('_');
      if (at == std::string::npos) return true;
      const int number = std::atoi(name.c_str() + at + 1);
      if (name.starts_with("compute")) return number <= gpu.major * 10 + gpu.minor;
      return number / 10 == gpu.major && number % 10 <= gpu.minor;
    });
    if (fits || cuda.architectures.empty()) continue;
    lines.push_back({kProblem, "torch.cuda",
                     fmt::format("this build has no code for {} ({}.{}): {}", gpu.name, gpu.major, gpu.minor,
                                 fmt::join(cuda.architectures, ", ")),
                     "kernels will not start: TL402", "install a build for this GPU: `trapline why TL402`"});
  }
  return lines;
}

Lines lines_of_guard(const PythonAnswer& answer) {
  if (!answer.guard) return {};
  const GuardFacts& guard = *answer.guard;
  if (guard.kind.empty())
    return {
        {kProblem, "guard", guard.what.empty() ? "none" : guard.what, "programs run unguarded", guard.todo}};
  if (guard.kind == "native") return {{kOk, "guard", guard.what}};
  const bool slow = guard.kind == "pure";
  return {{guard.is_coming && !slow ? kOk : kNote, "guard",
           guard.what + (guard.why.empty() ? "" : "; not the compiled one: " + guard.why),
           slow ? "it finds the same, and adds tens of microseconds to each guarded call"
                : "it finds the same as the compiled one, and costs a little more",
           guard.todo}};
}

// The Python that a program would be started with.
Result<std::string> choose_python(const Request& request, std::span<const std::string> environment) {
  if (!request.python.empty()) return request.python;
  const std::string path = find_variable(environment, "PATH").value_or("");
  for (const char* name : {"python", "python3"}) {
    if (const auto found = find_program(name, path)) return *found;
  }
  return Error{"there is no python and no python3 on PATH", "", "name one with --python PATH"};
}

void append(Lines& lines, Lines more) { std::ranges::move(more, std::back_inserter(lines)); }

}  // namespace

Diagnosis examine(const Request& request) {
  const std::vector<std::string> environment = current_environment();
  const auto installation = locate(this_executable());
  Diagnosis diagnosis;
  Lines& lines = diagnosis.lines;
  lines.push_back(line_of_installation(installation));
  const double driver_seconds = std::min(kDriverSeconds, request.seconds);
  const auto driver = ask_driver(driver_seconds);
  append(lines, lines_of_driver(driver, driver_seconds));
  const auto python = choose_python(request, environment);
  if (!python) {
    lines.push_back({kProblem, "python", python.error().what,
                     "explain, check and why work without it; run needs your program's Python",
                     python.error().fix});
  } else if (installation) {
    const GuardPaths paths{installation->python, installation->library, {}, {}, {}};
    const PythonAnswer answer = ask_python(*python, guarded_environment(environment, paths, {}),
                                           installation->python, request.seconds);
    append(lines, lines_of_python(*python, answer, request.seconds));
    append(lines, lines_of_torch(answer, driver, request.seconds));
    append(lines, lines_of_torch_cuda(answer, driver, request.seconds));
    append(lines, lines_of_guard(answer));
  }
  append(lines, lines_of_folders(environment));
  append(lines, lines_of_variables(environment));
  append(lines, lines_of_surroundings(environment));
  if (request.self_test && python) diagnosis.found = self_test(*python, request.seconds, lines);
  return diagnosis;
}

bool has_problem(const Diagnosis& diagnosis) {
  return std::ranges::any_of(diagnosis.lines, [](const Line& line) { return line.level == kProblem; });
}

}  // namespace trapline::doctor
