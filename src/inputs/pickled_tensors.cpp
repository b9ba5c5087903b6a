#include "inputs/pickled_tensors.hpp"

#include <functional>
#include <set>

#include "inputs/damage.hpp"
#include "inputs/pickle_machine.hpp"

namespace trapline::inputs {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxTold = 32;
constexpr std::size_t kMaxName = std::size_t{64} << 10U;

// Walks what the pickle has built. Values may be shared, so the walk is counted, not the values.
class Walk {
 public:
  using Kind = PickleValue::Kind;

  Walk(const PickleMachine& machine, const std::function<bool(const PickledTensor&)>& visit,
       const PassedOver& passed_over)
      : machine_(machine), visit_(visit), passed_over_(passed_over) {}

  // False: stopped, or problem() says why.
  bool go(PickleMachine::Id id, const std::string& name, int depth) {
    if (++visited_ > kMaxPickledValues) return fail("the pickle has more than 4 million values");
    if (depth > kMaxDepth) return fail("the pickle is nested more than 64 deep");
    if (name.size() > kMaxName) return fail("the pickle has a name of more than 64 KiB");
    const PickleValue& value = machine_.value(id);
    if (value.kind == Kind::kTensor) return tensor(value, name);
    if (value.kind == Kind::kGlobal) pass_over(name, machine_.text(value));
    if (value.kind == Kind::kObject) return object(value, name, depth);
    if (value.kind == Kind::kDict) {
      const std::span<const PickleMachine::Id> items = machine_.list(value);
      for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        const PickleValue& key = machine_.value(items[i]);
        const std::string part = key.kind == Kind::kText
                                     ? std::string(machine_.text(key).substr(0, kMaxName + 1))
                                 : key.kind == Kind::kInteger ? std::to_string(key.integer)
                                                              : "?";
        if (!go(items[i + 1], joined(name, part), depth + 1)) return false;
      }
    } else if (value.kind == Kind::kList || value.kind == Kind::kTuple) {
      std::size_t place = 0;
      for (const PickleMachine::Id item : machine_.list(value)) {
        if (!go(item, joined(name, std::to_string(place++)), depth + 1)) return false;
      }
    }
    return true;
  }
  const std::string& problem() const { return problem_; }

 private:
  static std::string joined(const std::string& name, const std::string& part) {
    return name.empty() ? part : name + "." + part;
  }
  bool fail(const char* why) {
    problem_ = why;
    return false;
  }
  // One of each class is told: a pickled model has hundreds of the same.
  void pass_over(const std::string& name, std::string_view type) {
    if (told_.size() < kMaxTold && told_.emplace(type).second) passed_over_(name, type);
  }
  bool object(const PickleValue& value, const std::string& name, int depth) {
    pass_over(name, machine_.text(PickleValue{Kind::kText, static_cast<std::uint32_t>(value.integer), 0}));
    for (const PickleMachine::Id part : machine_.list(value)) {
      if (!go(part, name, depth + 1)) return false;
    }
    return true;
  }
  bool tensor(const PickleValue& value, const std::string& name) {
    const std::span<const PickleMachine::Id> parts = machine_.list(value);
    PickledTensor tensor;
    tensor.name = name;
    tensor.dtype = machine_.text(machine_.value(parts[0]));
    tensor.storage = machine_.text(machine_.value(parts[1]));
    tensor.offset = machine_.value(parts[2]).integer;
    for (const PickleMachine::Id item : machine_.list(machine_.value(parts[3]))) {
      tensor.sizes.push_back(machine_.value(item).integer);
    }
    for (const PickleMachine::Id item : machine_.list(machine_.value(parts[4]))) {
      tensor.strides.push_back(machine_.value(item).integer);
    }
    return visit_(tensor);
  }

  const PickleMachine& machine_;
  const std::function<bool(const PickledTensor&)>& visit_;
  const PassedOver& passed_over_;
  std::set<std::string, std::less<>> told_;
  std::size_t visited_ = 0;
  std::string problem_;
};

}  // namespace

std::optional<Error> read_pickled_tensors(std::span<const std::byte> pickle, const std::string& path,
                                          std::uint64_t base,
                                          const std::function<bool(const PickledTensor&)>& visit,
                                          const PassedOver& passed_over) {
  if (pickle.size() > kMaxPickle) return damaged(path, base, "a pickle of more than 16 MiB");
  PickleMachine machine(pickle);
  if (!machine.run()) {
    return damaged(path, base + machine.offset(), machine.problem(),
                   "save a state_dict of tensors, or as .safetensors");
  }
  Walk walk(machine, visit, passed_over);
  if (!walk.go(machine.result(), "", 0) && !walk.problem().empty())
    return damaged(path, base, walk.problem());
  return std::nullopt;
}

}  // namespace trapline::inputs
