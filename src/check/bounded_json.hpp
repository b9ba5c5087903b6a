// JSON files of model folders: bounded in size and depth, whatever they hold.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace trapline::check {

// The object in the file. `leave_out`: values under this name are dropped while reading (the merges of a
// tokenizer, which nothing here needs).
Result<nlohmann::json> read_json_object(const std::string& path, std::string_view leave_out = {});

// An integer of any size as the nearest that fits.
std::int64_t saturated(const nlohmann::json& integer);

}  // namespace trapline::check
