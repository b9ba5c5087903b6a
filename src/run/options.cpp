#include "run/options.hpp"

#include <fmt/format.h>

#include <array>

namespace trapline {
namespace {

constexpr std::array<std::string_view, 4> kWatch{"light", "nan", "nan:stop", "off"};
constexpr std::array<std::string_view, 3> kOnFault{"raise", "skip", "stop"};

const auto kOptions = std::to_array<RunOption>({
    {"--cpu", "", "TRAPLINE_CPU", "run a program written for CUDA on the CPU", Switch{&RunOptions::cpu}},
    {"--steps", "N", "TRAPLINE_STEPS", "end the program cleanly after N optimizer steps",
     WholeNumberOption{&RunOptions::steps, 1, 1'000'000'000'000}},
    {"--watch", "MODE", "TRAPLINE_WATCH",
     "light: look at losses and gradients for NaN (default); nan: at every module; nan:stop: and end at "
     "the first; off",
     WordOption{&RunOptions::watch, kWatch}},
    {"--report", "DIR", "TRAPLINE_REPORT_DIR", "keep the findings of all processes in the folder DIR",
     PathOption{&RunOptions::reports}},
    {"--on-fault", "MODE", "TRAPLINE_ON_FAULT",
     "raise: at the bad operation (default); skip: leave out the optimizer step and the bad samples; stop: "
     "end "
     "at once with exit code 65",
     WordOption{&RunOptions::on_fault, kOnFault}},
    {"--skip-limit", "PERCENT", "TRAPLINE_SKIP_LIMIT",
     "with --on-fault skip: raise when more than PERCENT of the steps were skipped (default 1)",
     NumberOption{&RunOptions::skip_limit, 0, 100}},
    {"--quarantine", "FILE", "TRAPLINE_QUARANTINE",
     "leave out the samples that FILE names; skip adds to it (trapline-quarantine.jsonl)",
     PathOption{&RunOptions::quarantine}},
});

std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const std::filesystem::path& value) { return value.string(); }

struct TextOf {
  const RunOptions& options;

  std::optional<std::string> operator()(const Switch& option) const {
    return options.*option.member ? std::optional<std::string>("1") : std::nullopt;
  }
  std::optional<std::string> operator()(const auto& option) const {
    const auto& value = options.*option.member;
    return value ? std::optional(text_of(*value)) : std::nullopt;
  }
};

}  // namespace

std::span<const RunOption> run_options() { return kOptions; }

std::optional<Error> problem_of(const RunOptions& options) {
  if (options.skip_limit && options.on_fault != "skip")
    return Error{"--skip-limit has nothing to limit", "no step is skipped", "add --on-fault skip"};
  return std::nullopt;
}

std::vector<std::pair<std::string_view, std::string>> variables_of(const RunOptions& options) {
  std::vector<std::pair<std::string_view, std::string>> out;
  for (const RunOption& option : kOptions) {
    if (auto text = std::visit(TextOf{options}, option.kind)) out.emplace_back(option.variable, *text);
  }
  return out;
}

}  // namespace trapline
