// The data.pkl of a checkpoint, read without running it. A pickle is a program; of its instructions only
// those are known that put plain values, lists and dictionaries together, and of its functions only those by
// which torch rebuilds a tensor over a stored array. Other objects are kept as the values that they would be
// made of, so that the tensors in them are found, and are told by the name of their class; what would run
// programs or open files is refused by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace trapline::inputs {

struct PickledTensor {
  std::string name;                          // "model.layer.0.weight": keys and places in lists, dotted
  std::string_view dtype;                    // "FloatStorage", or torch's name of the dtype, "float8_e4m3fn"
  std::string_view storage;                  // its key in the archive: data/<key>
  std::int64_t offset = 0;                   // in elements
  std::vector<std::int64_t> sizes, strides;  // of equal length, none negative
};

inline constexpr std::size_t kMaxPickle = std::size_t{16} << 20U;
inline constexpr std::size_t kMaxPickledValues = std::size_t{4} << 20U;

// Called for the first object of each class that is not known: where it stands, and the class or function.
using PassedOver = std::function<void(const std::string& name, std::string_view type)>;

// Calls visit for every tensor; it returns false to stop. `path` and `base` (the offset of the pickle in the
// file) are for the error.
std::optional<Error> read_pickled_tensors(std::span<const std::byte> pickle, const std::string& path,
                                          std::uint64_t base,
                                          const std::function<bool(const PickledTensor&)>& visit,
                                          const PassedOver& passed_over);

}  // namespace trapline::inputs
