// What an element of a data set is, and as what it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "inputs/elements.hpp"
#include "inputs/hdf5/library.hpp"
#include "inputs/reader.hpp"

namespace trapline::inputs {

struct Element {
  enum class Kind : std::uint8_t { kNumbers, kRagged, kText, kNone };
  Kind kind = Kind::kNone;
  std::string why;  // kNone: what it is instead, "references"
  // As libhdf5 is to hand it over: an element of kNumbers is so many numbers of `encoding`.
  Id memory;
  Encoding encoding;
  std::vector<std::int64_t> sizes;  // beyond those of the data set: of an array, 2 for a complex number
  std::size_t bytes = 0;            // of the element in memory
  std::vector<ClassName> classes;   // that an enumeration names, from 0 on
};

Element element_of(hid_t type);

// The members of a compound type that is no complex number; empty: it is another type.
struct Member {
  std::string name;
  Element element;  // read from elements of the compound type by its memory
};
std::vector<Member> members_of(hid_t type);

}  // namespace trapline::inputs
