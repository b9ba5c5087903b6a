// An array of .npy to pieces; .npz holds several of them.
#pragma once

#include <span>
#include <string>

#include "inputs/npy_header.hpp"
#include "inputs/reader.hpp"

namespace trapline::inputs {

Column npy_column(const NpyHeader& header, std::string name);
// `data` holds exactly header.data_bytes. Returns whether the sink wants more.
bool deliver_npy(Sink& sink, const Column& column, const NpyHeader& header, std::span<const std::byte> data);

}  // namespace trapline::inputs
