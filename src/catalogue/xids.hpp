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

// That of a kernel's line, "NVRM: Xid (PCI:0000:65:00): 31, pid=..."; of "45, ... caused by previous Xid 149"
// the one that came first. nullptr: the line has none that is known.
const XidRow* xid_in(std::string_view line);

}  // namespace trapline
