// The parts of facts that several kinds have. What is missing or not readable is nullopt.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/finding.hpp"
#include "core/knobs.hpp"
#include "core/result.hpp"
#include "diagnose/facts.hpp"

namespace trapline::diagnose {

// One reader for each kind.
Result<Violation> read_violation(const nlohmann::json& json);
HostError read_host_error(const nlohmann::json& json);
Result<Watch> read_watched_run(const nlohmann::json& json);

// The members of these names, of the facts as a whole.
std::vector<Frame> read_stack(const nlohmann::json& facts);
std::optional<Frame> read_origin(const nlohmann::json& facts);
std::optional<Sample> read_sample(const nlohmann::json& facts);
std::optional<Process> read_process(const nlohmann::json& facts);
std::optional<Progress> read_progress(const nlohmann::json& facts);
std::optional<PositionFact> read_position(const nlohmann::json& facts);
LibraryFact read_library(const nlohmann::json& facts);
std::optional<NanFact> read_nan(const nlohmann::json& facts);
std::optional<WeightsFact> read_weights(const nlohmann::json& facts);
std::optional<CheckFact> read_check(const nlohmann::json& facts);
std::optional<WatchFact> read_watch(const nlohmann::json& facts);

std::optional<Frame> read_frame(const nlohmann::json* value);
std::optional<Variable> read_variable(const nlohmann::json& object, const char* name);
// The object itself is one.
std::optional<Variable> read_variable(const nlohmann::json& value);

}  // namespace trapline::diagnose
