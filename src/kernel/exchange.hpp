// DLPack's C exchange interface, as far as it is used here: layouts as in DLPack's specification 1.2
// (dlpack.h, DLTensor and DLPackExchangeAPI), under which torch 2.10 and newer lend a tensor without a Python
// call.
#pragma once

#include <cstdint>

namespace trapline::kernel {

struct DlDevice {
  std::int32_t type;  // 1: host memory
  std::int32_t id;
};

struct DlType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};

struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t ndim;
  DlType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

struct DlExchange {
  std::uint32_t major, minor;
  void* previous;
  void* allocate;
  void* managed_from_object;
  void* managed_to_object;
  int (*borrow)(void* object, DlTensor* out);  // nullptr: not offered
  void* current_stream;
};

constexpr std::uint32_t kDlMajor = 1;
constexpr const char* kDlCapsule = "dlpack_exchange_api";

}  // namespace trapline::kernel
