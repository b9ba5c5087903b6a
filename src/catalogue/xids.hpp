// What the number of an Xid says, an error that NVIDIA's driver writes into the kernel's log.
//
// To teach Trapline another number, add its row to xids.def.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace trapline {

enum class XidTells : std::uint8_t {
  kHardware,      // the GPU, its memory, its links or its board failed
  kDriver,        // the driver, its firmware, or the GPU
  kMemoryAccess,  // a program's kernel did what the GPU refuses
  kProgram,       // a program failed, in any way
  kAfter,         // it follows another error, or a program's end
  kNotice,        // nothing failed
};

struct XidRow {
  int number;
  XidTells tells;
  std::string_view meaning;
};

std::span<const XidRow> xid_rows();

// nullptr: the catalogue does not use the number.
const XidRow* find_xid(int number);

}  // namespace trapline
