#include "diagnose/watch.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace trapline {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestName = 1024;

std::string text(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>().substr(0, kLongestName);
}

std::optional<WatchSeen> read_seen(const json& object) {
  if (!object.is_object()) return std::nullopt;
  WatchSeen seen{text(object, "kind"), text(object, "name"), text(object, "type"), 0, text(object, "unit")};
  const auto step = object.find("step");
  if (step == object.end() || !step->is_number_integer()) return std::nullopt;
  seen.step = step->get<std::int64_t>();
  if (seen.kind != "output" && seen.kind != "loss" && seen.kind != "gradient") return std::nullopt;
  if (seen.unit.empty()) seen.unit = "step";
  return seen;
}

// "the output of `fc1` (Linear)", "the gradient of `fc1.weight`", "the loss"
std::string place_text(const WatchSeen& seen) {
  if (seen.kind == "loss") return "the loss";
  const std::string noun = seen.kind == "output" ? "output" : "gradient";
  if (seen.name.empty()) {
    return seen.type.empty() ? fmt::format("the {} of a layer without a name", noun)
                             : fmt::format("the {} of a {}", noun, seen.type);
  }
  const std::string name = layer_name(seen.name, '`');
  return seen.type.empty() ? fmt::format("the {} of {}", noun, name)
                           : fmt::format("the {} of {} ({})", noun, name, seen.type);
}

std::string where_text(const WatchSeen& seen) {
  return fmt::format("in {} {}, in {}", seen.unit, seen.step, place_text(seen));
}

std::string look_text(const WatchFact& watch) {
  const WatchSeen& at = watch.inf_before ? *watch.inf_before : watch.first;
  if (at.kind == "loss") {
    return fmt::format(
        "look at the loss of {} {}: log(0), 0/0 or an empty mean; every layer before it was finite", at.unit,
        at.step);
  }
  if (at.kind == "gradient") {
    return fmt::format(
        "the forward pass was finite: look at functions without a finite derivative (sqrt, norm or pow at 0, "
        "where() around log) on the way to {}",
        place_text(at));
  }
  return fmt::format("print the input of {} in {} {}: everything before it was finite",
                     at.name.empty() ? "that layer" : layer_name(at.name, '`'), at.unit, at.step);
}

}  // namespace

std::optional<WatchFact> read_watch(const json& facts) {
  const auto found = facts.find("watch");
  if (found == facts.end()) return std::nullopt;
  auto first = read_seen(*found);
  if (!first) return std::nullopt;
  WatchFact watch{text(*found, "what") != "inf", std::move(*first), std::nullopt};
  if (const auto inf = found->find("inf_before"); inf != found->end()) watch.inf_before = read_seen(*inf);
  return watch;
}

std::string watch_text(const WatchFact& watch) {
  std::string text =
      fmt::format("the first {} of this run was {}", watch.nan ? "NaN" : "Inf", where_text(watch.first));
  if (watch.inf_before) text += fmt::format("; before it, Inf {}", where_text(*watch.inf_before));
  return text;
}

void add_watch(const WatchFact& watch, Finding& finding) {
  finding.evidence.push_back({"watch", std::nullopt, watch_text(watch)});
  finding.fix.insert(finding.fix.begin(), look_text(watch));
}

Result<Finding> diagnose_watch(const json& facts) {
  const std::optional<WatchFact> watch = read_watch(facts);
  if (!watch) return Error{"facts", "`watch` is missing or not readable", "see docs/facts.md"};
  Finding finding;
  finding.cause = Cause::kNonFiniteValue;
  finding.certainty = Certainty::kProven;
  finding.role = Role::kRoot;
  finding.device_assert = false;
  finding.contained = true;
  finding.summary = watch_text(*watch);
  const WatchSeen& first = watch->first;
  if (!first.name.empty()) finding.layer = Layer{first.name, first.type, "", {}, {}, ""};
  finding.fix = {
      look_text(*watch),
      "if the loss grew from step to step before, lower the learning rate or clip gradients",
      "float16 overflows at 65504: use bfloat16, or torch.amp.GradScaler with float16",
      "check the data: assert torch.isfinite(inputs).all()",
  };
  if (const auto process = facts.find("process"); process != facts.end() && process->is_object()) {
    Process here;
    for (const auto& [name, slot] : {std::pair{"rank", &here.rank}, std::pair{"pid", &here.pid},
                                     std::pair{"world_size", &here.world_size}}) {
      const auto value = process->find(name);
      if (value != process->end() && value->is_number_integer()) *slot = value->get<std::int64_t>();
    }
    here.host = text(*process, "host");
    here.device = text(*process, "device");
    finding.process = std::move(here);
  }
  return finding;
}

}  // namespace trapline
