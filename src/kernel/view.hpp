// The arguments of a call, as Python holds them, in the words of the C interface. Described, never copied.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/python.hpp"
#include "trapline/capi.h"

namespace trapline::kernel {

constexpr int kMaxList = 64;
constexpr int kMaxIntegers = 512;

// Room for what one argument refers to. Must live as long as what was described into it.
struct Room {
  trapline_tensor tensors[kMaxList];
  std::int64_t integers[kMaxIntegers];
  int used = 0;
};

// Learns from the imported torch how its tensors are described. False, with an exception set: not this torch.
bool prepare_views(PyObject* torch);

bool is_tensor(PyObject* object);

// False: no row can apply to such a value (a layout without strides, a list that is too long).
bool describe(PyObject* value, trapline_arg& out, Room& room);

// As torch prints it without "torch."; for those dtypes that the C interface has no number for, too.
const char* dtype_name(PyObject* tensor, const trapline_tensor& described);

// The only element of a float32 or float64 in host memory. False: it is no such tensor (subclasses are none).
bool read_number(PyObject* tensor, double& out);

// Whether a tensor holds a number that is not finite. False also where it is no contiguous float32 in host
// memory, or has more than a few thousand elements.
// `is_plain`: the caller knows that it holds its own numbers.
bool holds_bad(PyObject* tensor, bool is_plain = false);
// `most`: elements that it may have; they are taken off.
bool holds_bad(PyObject* tensor, bool is_plain, std::int64_t& most);

// Whether tensors are borrowed through DLPack, or asked for their attributes.
bool borrows_tensors();

}  // namespace trapline::kernel
