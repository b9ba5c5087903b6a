#include "guard/trial.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "guard/healed.hpp"

namespace trapline::guard {
namespace {

using torch::jit::Stack;

template <class Visit>
void each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor() && value.toTensor().defined()) visit(value.toTensor());
  if (!value.isList()) return;
  for (const c10::IValue& element : value.toListRef()) {
    if (element.isTensor() && element.toTensor().defined()) visit(element.toTensor());
  }
}

// The storages that a call writes to, and copies of them.
class Copies {
 public:
  // False: too much to copy just to ask.
  bool make(const Plan& plan, c10::ArrayRef<c10::IValue> arguments) {
    bool small = true;
    for (const std::int8_t at : plan.written)
      each_tensor(arguments[at], [&](const at::Tensor& tensor) { small = small && add(tensor); });
    return small;
  }

  // The arguments with each tensor in a written storage replaced by the same view of the copy: what overlaps
  // still does, and strides stay what they are.
  Stack views(c10::ArrayRef<c10::IValue> arguments) const {
    Stack out(arguments.begin(), arguments.end());
    if (pairs_.empty()) return out;
    for (c10::IValue& value : out) {
      if (value.isTensor()) {
        value = view(value.toTensor());
      } else if (value.isList() && any_tensor(value)) {
        c10::List<c10::IValue> list = value.toList().copy();
        for (std::size_t i = 0; i < list.size(); ++i) {
          const c10::IValue element = list.get(i);
          if (element.isTensor()) list.set(i, view(element.toTensor()));
        }
        value = std::move(list);
      }
    }
    return out;
  }

 private:
  static bool any_tensor(const c10::IValue& value) {
    bool any = false;
    each_tensor(value, [&](const at::Tensor&) { any = true; });
    return any;
  }

  bool add(const at::Tensor& tensor) {
    const c10::Storage& storage = tensor.storage();
    if (!storage || !tensor.device().is_cpu()) return false;
    for (const auto& pair : pairs_) {
      if (pair.first == storage.unsafeGetStorageImpl()) return true;
    }
    const std::size_t bytes = storage.nbytes();
    bytes_ += bytes;
    if (bytes_ > static_cast<std::size_t>(kMaxCopied)) return false;
    c10::Allocator* allocator = c10::GetCPUAllocator();
    c10::DataPtr memory = allocator->allocate(bytes);
    if (bytes != 0) std::memcpy(memory.get(), storage.data(), bytes);
    pairs_.emplace_back(storage.unsafeGetStorageImpl(), c10::Storage(c10::Storage::use_byte_size_t(), bytes,
                                                                     std::move(memory), allocator, true));
    return true;
  }

  at::Tensor view(const at::Tensor& tensor) const {
    if (!tensor.defined() || !tensor.has_storage()) return tensor;
    for (const auto& [old, copy] : pairs_) {
      if (tensor.storage().unsafeGetStorageImpl() != old) continue;
      at::Tensor out(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
      out.unsafeGetTensorImpl()->set_storage_keep_dtype(copy);
      return out;
    }
    return tensor;
  }

  std::vector<std::pair<c10::StorageImpl*, c10::Storage>> pairs_;
  std::size_t bytes_ = 0;
};

// Puts the random numbers back that a run draws.
class KeepRandom {
 public:
  KeepRandom(const Plan& plan, c10::ArrayRef<c10::IValue> arguments) {
    if (plan.generator < 0) return;
    const c10::IValue& given = arguments[plan.generator];
    generator_ = given.isGenerator() ? given.toGenerator() : at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    state_ = generator_.get_state();
  }

  void restore() {
    if (!generator_.defined()) return;
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(state_);
  }

 private:
  at::Generator generator_;
  at::Tensor state_;
};

struct Thrown {
  std::exception_ptr error;  // null: nothing was thrown
  std::string text;
};

void strip(std::string& text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
}

Thrown run_once(ThreadState& state, Run run, Stack stack, KeepRandom& random) {
  Thrown thrown;
  try {
    const DepthScope depth(state);  // what it calls is not checked
    const c10::AutoGradMode no_gradients(false);
    run(stack);
  } catch (const c10::Error& error) {
    thrown = {std::current_exception(), error.what_without_backtrace()};
  } catch (const std::exception& error) {
    thrown = {std::current_exception(), error.what()};
  } catch (...) {
    thrown = {std::current_exception(), "unknown exception"};
  }
  random.restore();
  strip(thrown.text);
  return thrown;
}

// What all rows of the call say of its arguments together, and the arguments healed.
struct Judged {
  bool harmless = true;  // the operation may be run as it was called
  bool refuses = true;   // and looks at every value that it reads
  bool healed = true;
  Stack arguments;
};

bool is_harmless(const trapline_contract& row, const trapline_scan& scan) {
  if (row.on_cpu != TRAPLINE_ON_CPU_AT_ENDS) return row.on_cpu != TRAPLINE_ON_CPU_SILENT;
  return scan.first == 0 || (scan.first == scan.total - 1 && scan.ivalue >= scan.hi);
}

bool heal(c10::IValue& argument, const RowPlan& row, const trapline_scan& scan) {
  if (!argument.isList()) {
    at::Tensor healed = healed_copy(*row.row, scan, argument.toTensor());
    if (!healed.defined()) return false;
    argument = std::move(healed);
    return true;
  }
  const auto at = static_cast<std::size_t>(scan.list_position);
  if (scan.list_position < 0 || at >= argument.toListRef().size()) return false;
  at::Tensor healed = healed_copy(*row.row, scan, argument.toListRef()[at].toTensor());
  if (!healed.defined()) return false;
  c10::List<c10::IValue> list = argument.toList().copy();  // the list itself is the program's
  list.set(at, std::move(healed));
  argument = std::move(list);
  return true;
}

Judged judge(const Plan& plan, c10::ArrayRef<c10::IValue> given) {
  Judged judged;
  judged.arguments.assign(given.begin(), given.end());
  for (const RowPlan& row : plan.rows) {
    if (row.row->remember != 0) continue;
    for (int round = 0; round < kMaxList; ++round) {
      Argument arguments[kMaxArguments];
      for (const std::int8_t at : plan.needed) arguments[at] = view_of(judged.arguments[at]);
      trapline_scan scan;
      if (apply_row(row, arguments, scan) != TRAPLINE_VIOLATED) break;
      judged.harmless &= is_harmless(*row.row, scan);
      judged.refuses &= row.row->on_cpu == TRAPLINE_ON_CPU_REFUSES;
      if (heal(judged.arguments[row.argument], row, scan)) continue;
      judged.healed = false;
      break;
    }
  }
  return judged;
}

// All that must be ready before the first run; nullopt: the operation cannot be asked.
struct Trial {
  Judged judged;
  Copies copies;
  KeepRandom random;
};

std::optional<Trial> prepare(ThreadState& state, const Plan& plan, c10::ArrayRef<c10::IValue> arguments) {
  // An operation of the device alone can only say that.
  if (!plan.handle.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) return std::nullopt;
  const BusyScope busy(state);
  try {
    const c10::impl::ExcludeDispatchKeyGuard no_python(c10::python_ks);
    const c10::AutoGradMode no_gradients(false);
    Copies copies;
    if (!copies.make(plan, arguments)) return std::nullopt;
    return Trial{judge(plan, arguments), std::move(copies), KeepRandom(plan, arguments)};
  } catch (const std::exception& error) {
    stepped_aside(plan.op.c_str(), error.what());
  }
  return std::nullopt;
}

}  // namespace

Saying ask_operation(ThreadState& state, const Plan& plan, c10::ArrayRef<c10::IValue> given,
                     Run run_as_given) {
  // On a device in host memory the CPU's kernel is asked: the device's own would lose its context.
  const bool there = g_host_key != c10::DispatchKey::Undefined;
  const Stack faces = there ? on_cpu(given) : Stack();
  const c10::ArrayRef<c10::IValue> arguments = there ? c10::ArrayRef<c10::IValue>(faces) : given;
  const auto run_on_cpu = [&](Stack& stack) {
    plan.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  };
  const Run run = there ? Run(run_on_cpu) : run_as_given;
  std::optional<Trial> trial = prepare(state, plan, arguments);
  if (!trial) return {};
  const Judged& judged = trial->judged;
  Thrown as_called;
  if (judged.harmless) {
    as_called = run_once(state, run, trial->copies.views(arguments), trial->random);
    if (!as_called.error) return {!judged.refuses, ""};
  }
  if (!judged.healed) return {true, as_called.text};
  const Thrown healed = run_once(state, run, trial->copies.views(judged.arguments), trial->random);
  if (!healed.error) return {true, as_called.text};
  std::rethrow_exception(as_called.error ? as_called.error : healed.error);
}

}  // namespace trapline::guard
