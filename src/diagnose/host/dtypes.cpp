#include "diagnose/host/dtypes.hpp"

#include <fmt/format.h>

#include <array>

namespace trapline::diagnose {
namespace {

struct DTypeName {
  std::string_view spelling;  // in messages: "Long", "c10::Half", "unsigned char", "torch.float64"
  std::string_view dtype;     // torch's attribute
  std::string_view cast;      // the call
};

constexpr std::array<DTypeName, 45> kDTypes{{
    {"Long", "int64", "long()"},
    {"Int", "int32", "int()"},
    {"Short", "int16", "short()"},
    {"Char", "int8", "char()"},
    {"Byte", "uint8", "byte()"},
    {"Bool", "bool", "bool()"},
    {"Float", "float32", "float()"},
    {"Double", "float64", "double()"},
    {"Half", "float16", "half()"},
    {"BFloat16", "bfloat16", "bfloat16()"},
    {"long int", "int64", "long()"},
    {"long", "int64", "long()"},
    {"int", "int32", "int()"},
    {"short int", "int16", "short()"},
    {"short", "int16", "short()"},
    {"signed char", "int8", "char()"},
    {"unsigned char", "uint8", "byte()"},
    {"bool", "bool", "bool()"},
    {"float", "float32", "float()"},
    {"double", "float64", "double()"},
    {"c10::Half", "float16", "half()"},
    {"c10::BFloat16", "bfloat16", "bfloat16()"},
    {"int64", "int64", "long()"},
    {"int32", "int32", "int()"},
    {"float16", "float16", "half()"},
    {"bfloat16", "bfloat16", "bfloat16()"},
    {"float32", "float32", "float()"},
    {"float64", "float64", "double()"},
    {"ComplexFloat", "complex64", "to(torch.complex64)"},
    {"ComplexDouble", "complex128", "to(torch.complex128)"},
    // c10/core/ScalarType.h: the rest of its names that a tensor can have.
    {"ComplexHalf", "complex32", "to(torch.complex32)"},
    {"UInt16", "uint16", "to(torch.uint16)"},
    {"UInt32", "uint32", "to(torch.uint32)"},
    {"UInt64", "uint64", "to(torch.uint64)"},
    {"QInt8", "qint8", "dequantize()"},
    {"QUInt8", "quint8", "dequantize()"},
    {"QInt32", "qint32", "dequantize()"},
    {"QUInt4x2", "quint4x2", "dequantize()"},
    {"QUInt2x4", "quint2x4", "dequantize()"},
    {"Float8_e5m2", "float8_e5m2", "to(torch.float8_e5m2)"},
    {"Float8_e4m3fn", "float8_e4m3fn", "to(torch.float8_e4m3fn)"},
    {"Float8_e5m2fnuz", "float8_e5m2fnuz", "to(torch.float8_e5m2fnuz)"},
    {"Float8_e4m3fnuz", "float8_e4m3fnuz", "to(torch.float8_e4m3fnuz)"},
    {"Float8_e8m0fnu", "float8_e8m0fnu", "to(torch.float8_e8m0fnu)"},
    {"Float4_e2m1fn_x2", "float4_e2m1fn_x2", "to(torch.float4_e2m1fn_x2)"},
}};

// Accepts "Long", "torch.FloatTensor", "torch.cuda.HalfTensor", "torch.float64"; LibTorch's "CPUFloatType",
// "Variable[CUDAHalfType]".
const DTypeName* dtype_of(std::string_view text) {
  for (const std::string_view prefix : {"torch.", "cuda."}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  if (text.size() > 6 && text.ends_with("Tensor")) text.remove_suffix(6);
  if (text.starts_with("Variable[")) text.remove_prefix(9);
  if (text.ends_with("]")) text.remove_suffix(1);
  if (text.ends_with("Type")) {
    for (const std::string_view backend : {"CPU", "CUDA"}) {
      if (!text.starts_with(backend)) continue;
      text.remove_prefix(backend.size());
      text.remove_suffix(4);
      break;
    }
  }
  for (const DTypeName& entry : kDTypes) {
    if (entry.spelling == text) return &entry;
  }
  return nullptr;
}

}  // namespace

std::string dtype_name(std::string_view text) {
  const DTypeName* dtype = dtype_of(text);
  return std::string(dtype ? dtype->dtype : text);
}

std::string dtype_cast(std::string_view text) {
  const DTypeName* dtype = dtype_of(text);
  return dtype ? std::string(dtype->cast) : fmt::format("to(torch.{})", text);
}

bool is_storage_only(std::string_view text) {
  const std::string name = dtype_name(text);
  return name.starts_with("float8_") || name.starts_with("float4_");
}

const Operand* operand_of_dtype(const HostCase& c, std::string_view text) {
  const DTypeName* dtype = dtype_of(text);
  const Operand* found = nullptr;
  for (const Operand& operand : c.operands()) {
    if (dtype && operand.dtype == dtype->dtype && (found == nullptr || (operand.user && !found->user)))
      found = &operand;
  }
  return found;
}

void set_tensor(Finding& f, const Operand* operand) {
  if (operand) f.tensor = TensorInfo{operand->shape, operand->dtype, operand->device};
}

bool is_floating_name(std::string_view text) {
  const std::string name = dtype_name(text);
  return name.find("float") != std::string::npos;
}

// Labels of a classification loss must be int64.
void explain_label_dtype(const HostCase& c, Finding& f, std::string_view got) {
  const Operand* target = c.by_role("target");
  if (target == nullptr) target = operand_of_dtype(c, got);
  const std::string name = target ? target->name : "target";
  f.op = "cross_entropy";
  f.argument = "target";
  f.summary =
      fmt::format("cross_entropy: {} holds class numbers as {}; they must be int64", name, dtype_name(got));
  set_tensor(f, target);
  f.valid = Valid{"int64", {}, {}, {}};
  f.fix.push_back(fmt::format("use `{}.long()`, best once in the data set", name));
  if (is_floating_name(got))
    f.fix.push_back(
        "floating point targets mean class probabilities: then the shape must be the one of the scores");
}

}  // namespace trapline::diagnose
