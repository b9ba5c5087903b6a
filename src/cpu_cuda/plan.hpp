// What is known of one operation before it is called: from its schema, its registrations, and PyTorch's
// table.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cpu_cuda/asserts.hpp"
#include "cpu_cuda/dtypes.hpp"

namespace trapline::cpu_cuda {

// One row of PyTorch's native_functions.yaml, as _cpu/operations.py writes them into operations.inc.
struct Row {
  const char* name;  // "add.Tensor"
  std::uint8_t flags;
};
enum RowFlag : std::uint8_t {
  kOnDevice = 1,         // CUDA has it
  kChecksDevices = 2,    // and its wrapper wants all tensors on one device
  kNamedByOverload = 4,  // the wrapper's name holds the overload
};
const Row* find_row(const std::string& name);

enum class Kind : std::uint8_t { kTensor, kTensors, kDevice, kGenerator, kPinMemory };

struct Argument {
  std::uint8_t at;
  Kind kind;
  bool optional_list;  // of indices
};

struct Plan {
  std::string name;    // "aten::add.Tensor"
  std::string method;  // "wrapper_CUDA_add", in messages of PyTorch's
  std::uint8_t arguments = 0, returns = 0;
  std::vector<Argument> looked_at;
  std::int8_t device_at = -1;         // the argument that names the device of the result
  std::vector<std::int8_t> returned;  // per return: the argument that it is; -1: a new one
  bool checks_devices = false;
  bool is_composite = false;   // written in terms of other operations
  bool draws = false;          // random numbers
  bool is_collective = false;  // goes on after it has returned, in other threads
  AssertCheck asserts = nullptr;
  Adapter adapt = nullptr;
};

// What is to be done with an operation on the device's key.
enum class Way {
  kLeave,   // PyTorch's own: a composition, a view, or its own words that there is none
  kHost,    // the CPU's operation on the same memory
  kRefuse,  // CUDA has it, and the CPU has not
};
Way way_of(const c10::OperatorHandle& op);
Plan plan_of(const c10::OperatorHandle& op);

// No backend of this process has kernels on it: the dispatcher's entry is the operation's composition.
constexpr c10::DispatchKey kNobody = c10::DispatchKey::VE;

// Boxed kernels (run.cpp).
void register_host(torch::Library& library, const c10::OperatorHandle& op);
void register_refusal(torch::Library& library, const c10::OperatorHandle& op);

}  // namespace trapline::cpu_cuda
