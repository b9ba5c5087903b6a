// The stack machine of pickle, for the few instructions that a checkpoint of tensors needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace trapline::inputs {

struct PickleValue {
  enum class Kind : std::uint8_t {
    kNone,
    kInteger,
    kOther,     // floats, booleans, bytes: allowed, without interest
    kText,      // texts[index]
    kFunction,  // index into the table of allowed globals
    kDType,     // texts[index]: a storage class or a dtype of torch
    kTuple,     // lists[index]
    kList,      // lists[index]
    kDict,      // lists[index]: key, value, key, value
    kStorage,   // lists[index]: dtype, key
    kTensor,    // lists[index]: dtype, key, offset, sizes, strides
    kGlobal,    // texts[index]: any other name, "numpy.ndarray"; never looked up
    kObject,    // lists[index]: what it would be made of; texts[integer]: by what
  };
  Kind kind = Kind::kNone;
  std::uint32_t index = 0;
  std::int64_t integer = 0;
};

class PickleMachine {
 public:
  using Kind = PickleValue::Kind;
  using Id = std::uint32_t;  // of a value

  explicit PickleMachine(std::span<const std::byte> pickle) : pickle_(pickle) {}

  // False: problem() and offset() say what is wrong and where.
  bool run();
  Id result() const { return result_; }
  const PickleValue& value(Id id) const { return values_[id]; }
  std::span<const Id> list(const PickleValue& value) const { return lists_[value.index]; }
  std::string_view text(const PickleValue& value) const { return texts_[value.index]; }
  const std::string& problem() const { return problem_; }
  std::size_t offset() const { return instruction_; }

 private:
  struct Popped {
    bool good = false;
    Id id = 0;
  };

  bool fail(std::string why) {
    if (problem_.empty()) problem_ = std::move(why);
    return false;
  }
  bool take(std::size_t count, std::span<const std::byte>& bytes);
  template <class T>
  bool take(T& value);
  bool push(PickleValue value);
  bool push_list(Kind kind, std::vector<Id> items);
  bool push_text(Kind kind, std::string_view text);
  bool pop(Id& id);
  bool pop_to_mark(std::vector<Id>& items);
  bool counted_text(std::uint64_t size, Kind kind);
  bool line(std::string_view& text);

  bool step(std::uint8_t opcode);
  bool step_value(std::uint8_t opcode, bool& known);
  bool step_container(std::uint8_t opcode, bool& known);
  bool remember(std::uint64_t key);
  bool recall(std::uint64_t key);
  bool global(std::string_view module, std::string_view name);
  bool reduce();
  bool call(Id callee, std::vector<Id> given);
  bool make_object(Id callee, std::vector<Id> parts);
  std::vector<Id>* parts_of_object();  // of the one on top of the stack; null: there is none
  bool build();
  bool persistent();
  bool tensor(std::span<const Id> arguments, bool typed);
  bool append(std::span<const Id> items);
  bool set(std::span<const Id> items);

  std::span<const std::byte> pickle_;
  std::size_t next_ = 0, instruction_ = 0;
  std::vector<PickleValue> values_;
  std::vector<std::vector<Id>> lists_;
  std::vector<std::string_view> texts_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::unordered_map<std::uint64_t, Id> memo_;
  std::unordered_set<std::string> names_;  // of globals: texts_ shows them
  Id result_ = 0;
  bool stopped_ = false;
  std::string problem_;
};

}  // namespace trapline::inputs
