#include "kernel/view.hpp"

#include <bit>

#include "kernel/exchange.hpp"

namespace trapline::kernel {
namespace {

constexpr std::int64_t kMaxProbe = 4096;  // elements: MAX_PROBE in python/trapline/_watch/hot.py

const DlExchange* g_exchange = nullptr;
PyTypeObject* g_tensor = nullptr;

// Without the exchange interface: the names of a tensor's attributes, and torch's own objects to compare
// with.
struct Names {
  PyObject *layout, *shape, *stride, *dtype, *data_ptr, *is_cpu, *strided;
} g_names;

struct DtypeRow {
  const char* name;
  std::int32_t number;
  std::uint8_t code, bits;  // DLPack's
  PyObject* dtype;          // torch's; nullptr: this torch has none of that name
};

DtypeRow g_dtypes[] = {
    {"int64", TRAPLINE_INT64, 0, 64, nullptr},
    {"float32", TRAPLINE_FLOAT32, 2, 32, nullptr},
    {"bool", TRAPLINE_BOOL, 6, 8, nullptr},
    {"int32", TRAPLINE_INT32, 0, 32, nullptr},
    {"float16", TRAPLINE_FLOAT16, 2, 16, nullptr},
    {"bfloat16", TRAPLINE_BFLOAT16, 4, 16, nullptr},
    {"float64", TRAPLINE_FLOAT64, 2, 64, nullptr},
    {"uint8", TRAPLINE_UINT8, 1, 8, nullptr},
    {"int8", TRAPLINE_INT8, 0, 8, nullptr},
    {"int16", TRAPLINE_INT16, 0, 16, nullptr},
    {"complex64", TRAPLINE_OTHER_DTYPE, 5, 64, nullptr},
    {"complex128", TRAPLINE_OTHER_DTYPE, 5, 128, nullptr},
    {"complex32", TRAPLINE_OTHER_DTYPE, 5, 32, nullptr},
    {"uint16", TRAPLINE_OTHER_DTYPE, 1, 16, nullptr},
    {"uint32", TRAPLINE_OTHER_DTYPE, 1, 32, nullptr},
    {"uint64", TRAPLINE_OTHER_DTYPE, 1, 64, nullptr},
};

std::int32_t number_of(const DlType& type) {
  for (const DtypeRow& row : g_dtypes) {
    if (row.code == type.code && row.bits == type.bits) return row.number;
  }
  return TRAPLINE_OTHER_DTYPE;
}

bool borrow(PyObject* tensor, trapline_tensor& out) {
  DlTensor view;
  if (g_exchange->borrow(tensor, &view) != 0) {  // sparse, or a dtype that DLPack does not know
    PyErr_Clear();
    return false;
  }
  out.data = view.device.type == 1 && view.data != nullptr
                 ? static_cast<const char*>(view.data) + view.byte_offset
                 : nullptr;
  out.sizes = view.shape;
  out.strides = view.strides;
  out.dim = view.ndim;
  out.dtype = number_of(view.dtype);
  return true;
}

// The integers of a sequence that torch made: -1 when it is none of integers, or too long.
int integers_of(PyObject* sequence, Room& room) {
  const Py_ssize_t count = PySequence_Size(sequence);
  if (count < 0 || room.used + count > kMaxIntegers) return -1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Ref item(PySequence_GetItem(sequence, i));
    const long long value = item ? PyLong_AsLongLong(item.get()) : -1;
    if (value == -1 && PyErr_Occurred() != nullptr) return -1;
    room.integers[room.used + i] = value;
  }
  room.used += static_cast<int>(count);
  return static_cast<int>(count);
}

bool ask(PyObject* tensor, trapline_tensor& out, Room& room) {
  const Ref layout(PyObject_GetAttr(tensor, g_names.layout));
  if (layout.get() != g_names.strided) return false;
  const Ref shape(PyObject_GetAttr(tensor, g_names.shape));
  const Ref stride(PyObject_CallMethodObjArgs(tensor, g_names.stride, nullptr));
  const Ref dtype(PyObject_GetAttr(tensor, g_names.dtype));
  const Ref is_cpu(PyObject_GetAttr(tensor, g_names.is_cpu));
  if (!shape || !stride || !dtype || !is_cpu) return false;
  out.sizes = room.integers + room.used;
  out.dim = integers_of(shape.get(), room);
  out.strides = room.integers + room.used;
  if (out.dim < 0 || integers_of(stride.get(), room) != out.dim) return false;
  out.dtype = TRAPLINE_OTHER_DTYPE;
  for (const DtypeRow& row : g_dtypes) {
    if (row.dtype == dtype.get()) out.dtype = row.number;
  }
  out.data = nullptr;
  if (is_cpu.get() != Py_True) return true;
  const Ref address(PyObject_CallMethodObjArgs(tensor, g_names.data_ptr, nullptr));
  if (!address) return false;
  out.data = PyLong_AsVoidPtr(address.get());
  return PyErr_Occurred() == nullptr;
}

bool describe_tensor(PyObject* tensor, trapline_tensor& out, Room& room) {
  if (g_exchange != nullptr) return borrow(tensor, out);
  if (ask(tensor, out, room)) return true;
  PyErr_Clear();
  return false;
}

bool describe_list(PyObject* list, Py_ssize_t count, PyObject* (*item)(PyObject*, Py_ssize_t),
                   trapline_arg& out, Room& room) {
  bool is_sizes = true;
  for (Py_ssize_t i = 0; i < count && is_sizes; ++i) is_sizes = PyLong_CheckExact(item(list, i)) != 0;
  if (is_sizes) {
    out.kind = TRAPLINE_ARG_SIZES;
    out.tensor.sizes = room.integers + room.used;
    out.tensor.dim = integers_of(list, room);
    if (out.tensor.dim >= 0) return true;
    PyErr_Clear();
    return false;
  }
  if (count > kMaxList) return false;
  out.kind = TRAPLINE_ARG_LIST;
  out.list = room.tensors;
  out.list_size = static_cast<std::int32_t>(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* one = item(list, i);
    if (one == Py_None) {
      room.tensors[i] = {};
      room.tensors[i].dim = -1;
    } else if (!is_tensor(one) || !describe_tensor(one, room.tensors[i], room)) {
      return false;
    }
  }
  return true;
}

bool intern(PyObject*& out, const char* name) {
  out = PyUnicode_InternFromString(name);
  return out != nullptr;
}

// Kept for good: torch's own objects outlive every kernel.
bool prepare_attributes(PyObject* torch) {
  for (DtypeRow& row : g_dtypes) {
    row.dtype = PyObject_GetAttrString(torch, row.name);
    if (row.dtype == nullptr) PyErr_Clear();
  }
  g_names.strided = PyObject_GetAttrString(torch, "strided");
  return g_names.strided != nullptr && intern(g_names.layout, "layout") && intern(g_names.shape, "shape") &&
         intern(g_names.stride, "stride") && intern(g_names.dtype, "dtype") &&
         intern(g_names.data_ptr, "data_ptr") && intern(g_names.is_cpu, "is_cpu");
}

// nullptr: this torch has none, or one of a later kind.
const DlExchange* find_exchange(PyObject* tensor_type) {
  const Ref capsule(PyObject_GetAttrString(tensor_type, "__dlpack_c_exchange_api__"));
  const void* found = capsule && PyCapsule_IsValid(capsule.get(), kDlCapsule) != 0
                          ? PyCapsule_GetPointer(capsule.get(), kDlCapsule)
                          : nullptr;
  PyErr_Clear();
  for (const auto* one = static_cast<const DlExchange*>(found); one != nullptr;
       one = static_cast<const DlExchange*>(one->previous)) {
    if (one->major == kDlMajor) return one->borrow != nullptr ? one : nullptr;
  }
  return nullptr;
}

// A number of 16 bits, `exponent` of them that of its exponent, as a double: bits moved to their places.
template <int exponent>
double of_bits(std::uint16_t bits) {
  constexpr int kFraction = 15 - exponent;
  constexpr std::uint64_t kOnes = (std::uint64_t{1} << exponent) - 1;
  const std::uint64_t power = (bits >> kFraction) & kOnes;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << kFraction) - 1);
  const std::uint64_t sign = std::uint64_t{bits & 0x8000U} << 48;
  constexpr std::uint64_t kBias = 1023 - (kOnes >> 1);
  // Below the smallest power the fraction counts that power's steps.
  constexpr std::uint64_t kStep = (kBias + 1 - kFraction) << 52;
  if (power == 0) {
    const double size = static_cast<double>(fraction) * std::bit_cast<double>(kStep);
    return sign == 0 ? size : -size;
  }
  const std::uint64_t wide = power == kOnes ? 0x7ff : power + kBias;
  return std::bit_cast<double>(sign | (wide << 52) | (fraction << (52 - kFraction)));
}

// `kExponent`: the bits that are all ones in NaN and in an infinity. Where they are, the lowest of them added
// to the number without its sign carries into the place of the sign: 64 bits of numbers at a time.
template <class Bits, Bits kExponent>
bool any_bad(const void* data, std::int64_t count) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  constexpr Bits kLowest = kExponent & static_cast<Bits>(~kExponent + 1U);
  constexpr std::uint64_t kEach = ~std::uint64_t{0} / static_cast<Bits>(~Bits{0});  // a 1 in each number
  constexpr std::int64_t kWords = 4, kStep = kWords * 8 / sizeof(Bits);
  const auto* bits = static_cast<const Bits*>(data);
  std::uint64_t carried[kWords] = {};
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    std::uint64_t words[kWords];
    __builtin_memcpy(words, bits + i, sizeof words);
    for (int lane = 0; lane < kWords; ++lane)
      carried[lane] |= (words[lane] & ~(kEach * kSign)) + kEach * kLowest;
  }
  bool is_bad = ((carried[0] | carried[1] | carried[2] | carried[3]) & (kEach * kSign)) != 0;
  for (; i < count; ++i) is_bad |= (bits[i] & kExponent) == kExponent;
  return is_bad;
}

}  // namespace

bool prepare_views(PyObject* torch) {
  Ref type(PyObject_GetAttrString(torch, "Tensor"));
  if (!type || !prepare_attributes(torch)) return false;
  g_exchange = find_exchange(type.get());
  g_tensor = reinterpret_cast<PyTypeObject*>(type.release());
  return true;
}

bool borrows_tensors() { return g_exchange != nullptr; }

bool is_tensor(PyObject* object) { return PyType_IsSubtype(Py_TYPE(object), g_tensor) != 0; }

bool describe(PyObject* value, trapline_arg& out, Room& room) {
  out.kind = TRAPLINE_ARG_NONE;
  if (is_tensor(value)) {
    out.kind = TRAPLINE_ARG_TENSOR;
    return describe_tensor(value, out.tensor, room);
  }
  if (PyLong_Check(value)) {
    out.kind = TRAPLINE_ARG_INT;
    out.integer = PyLong_AsLongLong(value);
    if (out.integer != -1 || PyErr_Occurred() == nullptr) return true;
    PyErr_Clear();
    return false;
  }
  if (PyList_Check(value)) return describe_list(value, PyList_Size(value), PyList_GetItem, out, room);
  if (PyTuple_Check(value)) return describe_list(value, PyTuple_Size(value), PyTuple_GetItem, out, room);
  return true;
}

bool holds_bad(PyObject* tensor, bool is_plain) {
  std::int64_t most = kMaxProbe;
  return holds_bad(tensor, is_plain, most);
}

bool holds_bad(PyObject* tensor, bool is_plain, std::int64_t& most) {
  if (!is_plain && Py_TYPE(tensor) != g_tensor) return false;
  Room room;
  trapline_tensor view;
  if (!describe_tensor(tensor, view, room) || view.data == nullptr) return false;
  std::int64_t count = 1;
  for (std::int64_t i = view.dim - 1; i >= 0; --i) {
    if (view.strides[i] != count && view.sizes[i] != 1) return false;
    count *= view.sizes[i];
    if (count > most) return false;
  }
  most -= count;
  switch (view.dtype) {
    case TRAPLINE_FLOAT32:
      return any_bad<std::uint32_t, 0x7f800000>(view.data, count);
    case TRAPLINE_FLOAT16:
      return any_bad<std::uint16_t, 0x7c00>(view.data, count);
    case TRAPLINE_BFLOAT16:
      return any_bad<std::uint16_t, 0x7f80>(view.data, count);
    case TRAPLINE_FLOAT64:
      return any_bad<std::uint64_t, 0x7ff0000000000000>(view.data, count);
    default:
      return false;
  }
}

bool read_number(PyObject* tensor, double& out) {
  if (Py_TYPE(tensor) != g_tensor) return false;
  Room room;
  trapline_tensor view;
  if (!describe_tensor(tensor, view, room) || view.data == nullptr) return false;
  for (std::int64_t i = 0; i < view.dim; ++i) {
    if (view.sizes[i] != 1) return false;
  }
  switch (view.dtype) {
    case TRAPLINE_FLOAT32:
      out = *static_cast<const float*>(view.data);
      return true;
    case TRAPLINE_FLOAT64:
      out = *static_cast<const double*>(view.data);
      return true;
    case TRAPLINE_BFLOAT16:
      out = of_bits<8>(*static_cast<const std::uint16_t*>(view.data));
      return true;
    case TRAPLINE_FLOAT16:
      out = of_bits<5>(*static_cast<const std::uint16_t*>(view.data));
      return true;
    default:
      return false;
  }
}

const char* dtype_name(PyObject* tensor, const trapline_tensor& described) {
  for (const DtypeRow& row : g_dtypes) {
    if (described.dtype != TRAPLINE_OTHER_DTYPE && row.number == described.dtype) return row.name;
  }
  const Ref dtype(PyObject_GetAttr(tensor, g_names.dtype));
  PyErr_Clear();
  for (const DtypeRow& row : g_dtypes) {
    if (dtype && row.dtype == dtype.get()) return row.name;
  }
  return "other";
}

}  // namespace trapline::kernel
