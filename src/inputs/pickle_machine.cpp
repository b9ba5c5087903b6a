#include "inputs/pickle_machine.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "inputs/damage.hpp"
#include "inputs/pickled_tensors.hpp"

namespace trapline::inputs {
namespace {

using Kind = PickleValue::Kind;

enum class Function : std::uint8_t { kTensor, kTypedTensor, kParameter, kFromType, kOrderedDict, kSize };

struct GlobalRow {
  std::string_view module, name;
  Kind kind;
  Function function = Function::kTensor;
};
// What is understood. Any other name is kept as a name, and what is made by it as an object of unknown
// inside.
constexpr GlobalRow kGlobals[] = {
    {"torch._utils", "_rebuild_tensor", Kind::kFunction, Function::kTensor},
    {"torch._utils", "_rebuild_tensor_v2", Kind::kFunction, Function::kTensor},
    {"torch._utils", "_rebuild_tensor_v3", Kind::kFunction, Function::kTypedTensor},
    {"torch._utils", "_rebuild_parameter", Kind::kFunction, Function::kParameter},
    {"torch._utils", "_rebuild_parameter_with_state", Kind::kFunction, Function::kParameter},
    {"torch._tensor", "_rebuild_from_type_v2", Kind::kFunction, Function::kFromType},
    {"collections", "OrderedDict", Kind::kFunction, Function::kOrderedDict},
    {"torch", "Size", Kind::kFunction, Function::kSize},
    {"torch", "DoubleStorage", Kind::kDType},
    {"torch", "FloatStorage", Kind::kDType},
    {"torch", "HalfStorage", Kind::kDType},
    {"torch", "BFloat16Storage", Kind::kDType},
    {"torch", "LongStorage", Kind::kDType},
    {"torch", "IntStorage", Kind::kDType},
    {"torch", "ShortStorage", Kind::kDType},
    {"torch", "CharStorage", Kind::kDType},
    {"torch", "ByteStorage", Kind::kDType},
    {"torch", "BoolStorage", Kind::kDType},
    {"torch", "ComplexFloatStorage", Kind::kDType},
    {"torch", "ComplexDoubleStorage", Kind::kDType},
    {"torch.storage", "UntypedStorage", Kind::kDType},
    {"torch", "UntypedStorage", Kind::kDType},
    {"torch", "uint16", Kind::kDType},
    {"torch", "uint32", Kind::kDType},
    {"torch", "uint64", Kind::kDType},
    {"torch", "float8_e4m3fn", Kind::kDType},
    {"torch", "float8_e5m2", Kind::kDType},
    {"torch", "float8_e8m0fnu", Kind::kDType},
    {"torch", "float8_e4m3fnuz", Kind::kDType},
    {"torch", "float8_e5m2fnuz", Kind::kDType},
};

// Modules by which a pickle runs programs, opens files or connections: a file that names one is no
// checkpoint. The list is for people's sake: nothing at all is run here, whatever it is called.
constexpr std::string_view kRefusedModules[] = {
    "os",    "posix",     "nt",     "subprocess",       "sys",    "shutil",     "socket",
    "runpy", "importlib", "pty",    "_posixsubprocess", "ctypes", "webbrowser", "code",
    "io",    "_io",       "pickle", "marshal",
};
constexpr std::string_view kRefusedBuiltins[] = {"eval", "exec",       "compile",
                                                 "open", "__import__", "breakpoint"};

bool is_refused(std::string_view module, std::string_view name) {
  const std::string_view top = module.substr(0, module.find('.'));
  if (top == "builtins" || top == "__builtin__") {
    return std::ranges::find(kRefusedBuiltins, name) != std::end(kRefusedBuiltins);
  }
  return std::ranges::find(kRefusedModules, top) != std::end(kRefusedModules);
}

constexpr std::size_t kMaxLine = 256;  // the name of a global

}  // namespace

bool PickleMachine::take(std::size_t count, std::span<const std::byte>& bytes) {
  if (pickle_.size() - next_ < count) return fail("the pickle ends too early");
  bytes = pickle_.subspan(next_, count);
  next_ += count;
  return true;
}

template <class T>
bool PickleMachine::take(T& value) {
  std::span<const std::byte> bytes;
  if (!take(sizeof(T), bytes)) return false;
  value = load_le<T>(bytes, 0);
  return true;
}

bool PickleMachine::push(PickleValue value) {
  if (values_.size() == kMaxPickledValues) return fail("the pickle has more than 4 million values");
  stack_.push_back(static_cast<Id>(values_.size()));
  values_.push_back(value);
  return true;
}

bool PickleMachine::push_list(Kind kind, std::vector<Id> items) {
  lists_.push_back(std::move(items));
  return push({kind, static_cast<std::uint32_t>(lists_.size() - 1), 0});
}

bool PickleMachine::push_text(Kind kind, std::string_view text) {
  texts_.push_back(text);
  return push({kind, static_cast<std::uint32_t>(texts_.size() - 1), 0});
}

bool PickleMachine::pop(Id& id) {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) return fail("the pickle takes a value that is not there");
  id = stack_.back();
  stack_.pop_back();
  return true;
}

bool PickleMachine::pop_to_mark(std::vector<Id>& items) {
  if (marks_.empty()) return fail("the pickle takes a mark that is not there");
  items.assign(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return true;
}

bool PickleMachine::counted_text(std::uint64_t size, Kind kind) {
  std::span<const std::byte> bytes;
  if (size > pickle_.size() || !take(static_cast<std::size_t>(size), bytes))
    return fail("the pickle ends too early");
  return kind == Kind::kText ? push_text(kind, as_text(bytes)) : push({kind, 0, 0});
}

bool PickleMachine::line(std::string_view& text) {
  const std::string_view rest = as_text(pickle_.subspan(next_));
  const std::size_t end = rest.substr(0, kMaxLine).find('\n');
  if (end == rest.npos) return fail("the pickle ends too early");
  text = rest.substr(0, end);
  next_ += end + 1;
  return true;
}

bool PickleMachine::run() {
  while (!stopped_) {
    instruction_ = next_;
    std::uint8_t opcode = 0;
    if (!take(opcode) || !step(opcode)) return false;
  }
  return true;
}

bool PickleMachine::step(std::uint8_t opcode) {
  bool known = true;
  const bool good = step_value(opcode, known);
  if (known) return good;
  known = true;
  const bool done = step_container(opcode, known);
  if (known) return done;
  static constexpr char kDigits[] = "0123456789abcdef";
  return fail(std::string("the pickle has the instruction 0x") + kDigits[opcode >> 4U] +
              kDigits[opcode & 15U] + ", which no checkpoint of tensors needs; nothing of it was run");
}

// Instructions that push one plain value.
bool PickleMachine::step_value(std::uint8_t opcode, bool& known) {
  const auto integer = [this](std::int64_t number) { return push({Kind::kInteger, 0, number}); };
  std::uint8_t small = 0;
  std::uint16_t medium = 0;
  std::int32_t number = 0;
  std::uint32_t size = 0;
  std::uint64_t large = 0;
  std::span<const std::byte> bytes;
  switch (opcode) {
    case 'N':
      return push({});
    case 0x88:  // True
    case 0x89:
      return push({Kind::kOther, 0, 0});
    case 'G':
      return take(large) && push({Kind::kOther, 0, 0});
    case 'J':
      return take(number) && integer(number);
    case 'K':
      return take(small) && integer(small);
    case 'M':
      return take(medium) && integer(medium);
    case 0x8a: {  // an integer of `small` bytes
      if (!take(small) || !take(small, bytes)) return false;
      if (small > 8) return push({Kind::kOther, 0, 0});
      std::uint64_t bits =
          small > 0 && (static_cast<unsigned>(bytes.back()) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
      for (std::size_t i = bytes.size(); i-- > 0;) bits = (bits << 8U) | static_cast<std::uint64_t>(bytes[i]);
      return integer(static_cast<std::int64_t>(bits));
    }
    case 'X':
    case 'T':
      return take(size) && counted_text(size, Kind::kText);
    case 0x8c:
    case 'U':
      return take(small) && counted_text(small, Kind::kText);
    case 0x8d:
      return take(large) && counted_text(large, Kind::kText);
    case 'B':
      return take(size) && counted_text(size, Kind::kOther);
    case 'C':
      return take(small) && counted_text(small, Kind::kOther);
    case 0x8e:
    case 0x96:
      return take(large) && counted_text(large, Kind::kOther);
    case 0x8b:  // an integer of more bytes than any of interest
      return take(size) && counted_text(size, Kind::kOther);
    default:
      known = false;
      return false;
  }
}

// Instructions that put values together, and those about the stack itself.
bool PickleMachine::step_container(std::uint8_t opcode, bool& known) {
  std::uint8_t small = 0;
  std::uint32_t size = 0;
  std::uint64_t large = 0;
  std::vector<Id> items;
  Id id = 0;
  switch (opcode) {
    case 0x80:  // protocol
      return take(small) && (small <= 5 || fail("the pickle has an unknown protocol"));
    case 0x95:  // frame
      return take(large);
    case '.':
      stopped_ = true;
      return pop(result_);
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case '0':
      return pop(id);
    case '1':
      return pop_to_mark(items);
    case '2':
      if (stack_.empty()) return fail("the pickle takes a value that is not there");
      stack_.push_back(stack_.back());
      return stack_.size() < kMaxPickledValues || fail("the pickle has more than 4 million values");
    case 0x8f:  // a set
      return push_list(Kind::kList, {});
    case 0x90:
      return pop_to_mark(items) && append(items);
    case 0x91:
      return pop_to_mark(items) && push_list(Kind::kTuple, std::move(items));
    case '}':
      return push_list(Kind::kDict, {});
    case ']':
      return push_list(Kind::kList, {});
    case ')':
      return push_list(Kind::kTuple, {});
    case 't':
      return pop_to_mark(items) && push_list(Kind::kTuple, std::move(items));
    case 0x85:
    case 0x86:
    case 0x87:
      items.resize(opcode - 0x84U);
      for (std::size_t i = items.size(); i-- > 0;) {
        if (!pop(items[i])) return false;
      }
      return push_list(Kind::kTuple, std::move(items));
    case 'a':
      items.resize(1);
      return pop(items[0]) && append(items);
    case 'e':
      return pop_to_mark(items) && append(items);
    case 's':
      items.resize(2);
      return pop(items[1]) && pop(items[0]) && set(items);
    case 'u':
      return pop_to_mark(items) && set(items);
    case 'q':
      return take(small) && remember(small);
    case 'r':
      return take(size) && remember(size);
    case 0x94:
      return remember(memo_.size());
    case 'h':
      return take(small) && recall(small);
    case 'j':
      return take(size) && recall(size);
    case 'c': {
      std::string_view module;
      std::string_view name;
      return line(module) && line(name) && global(module, name);
    }
    case 0x93: {
      Id module = 0;
      if (!pop(id) || !pop(module)) return false;
      if (values_[id].kind != Kind::kText || values_[module].kind != Kind::kText) {
        return fail("the pickle names a global by no text");
      }
      return global(text(values_[module]), text(values_[id]));
    }
    case 'R':
    case 0x81:
      return reduce();
    case 0x92:  // with arguments by name, which are kept as one more
      return pop(id) && reduce() &&
             (parts_of_object() == nullptr || (parts_of_object()->push_back(id), true));
    case 'b':
      return build();
    case 'Q':
      return persistent();
    default:
      known = false;
      return false;
  }
}

bool PickleMachine::remember(std::uint64_t key) {
  if (stack_.empty()) return fail("the pickle takes a value that is not there");
  memo_[key] = stack_.back();
  return true;
}

bool PickleMachine::recall(std::uint64_t key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) return fail("the pickle recalls a value that it has not remembered");
  if (stack_.size() >= kMaxPickledValues) return fail("the pickle has more than 4 million values");
  stack_.push_back(found->second);
  return true;
}

bool PickleMachine::global(std::string_view module, std::string_view name) {
  const auto* row = std::find_if(std::begin(kGlobals), std::end(kGlobals), [&](const GlobalRow& candidate) {
    return candidate.module == module && candidate.name == name;
  });
  if (row != std::end(kGlobals)) {
    if (row->kind == Kind::kDType) return push_text(Kind::kDType, row->name);
    return push({Kind::kFunction, static_cast<std::uint32_t>(row->function), 0});
  }
  const std::string full = std::string(module.substr(0, 120)) + "." + std::string(name.substr(0, 120));
  if (is_refused(module, name)) {
    return fail(
        "the pickle wants " + in_quotes(full, 160) +
        ", which has no place in a checkpoint: it would run when the file is loaded; nothing of it was run");
  }
  return push_text(Kind::kGlobal, *names_.insert(full).first);
}

bool PickleMachine::reduce() {
  Id arguments = 0;
  Id callee = 0;
  if (!pop(arguments) || !pop(callee)) return false;
  const Kind kind = values_[callee].kind;
  if (kind != Kind::kFunction && kind != Kind::kGlobal && kind != Kind::kObject) {
    return fail("the pickle calls something that is not a function");
  }
  if (values_[arguments].kind != Kind::kTuple) {
    return kind == Kind::kFunction ? fail("the pickle calls something that is not a function")
                                   : make_object(callee, {arguments});
  }
  if (kind != Kind::kFunction) return make_object(callee, {arguments});
  return call(callee, lists_[values_[arguments].index]);
}

bool PickleMachine::make_object(Id callee, std::vector<Id> parts) {
  const PickleValue by = values_[callee];
  const std::int64_t name = by.kind == Kind::kGlobal ? by.index : by.integer;
  lists_.push_back(std::move(parts));
  return push({Kind::kObject, static_cast<std::uint32_t>(lists_.size() - 1), name});
}

std::vector<PickleMachine::Id>* PickleMachine::parts_of_object() {
  if (stack_.empty() || values_[stack_.back()].kind != Kind::kObject) return nullptr;
  return &lists_[values_[stack_.back()].index];
}

bool PickleMachine::call(Id callee, std::vector<Id> given) {
  switch (static_cast<Function>(values_[callee].index)) {
    case Function::kTensor:
      return tensor(given, false);
    case Function::kTypedTensor:
      return tensor(given, true);
    case Function::kParameter: {  // (data, requires_grad, hooks)
      const bool holds = !given.empty() &&
                         (values_[given[0]].kind == Kind::kTensor || values_[given[0]].kind == Kind::kObject);
      if (!holds) return fail("a parameter has no tensor");
      stack_.push_back(given[0]);
      return true;
    }
    case Function::kFromType: {  // (function, class, arguments, state): a tensor of a class of its own
      const bool good = given.size() >= 3 && values_[given[0]].kind == Kind::kFunction &&
                        static_cast<Function>(values_[given[0]].index) != Function::kFromType &&
                        values_[given[2]].kind == Kind::kTuple;
      if (!good) return push_list(Kind::kTuple, std::move(given));
      return call(given[0], lists_[values_[given[2]].index]);
    }
    case Function::kOrderedDict:
      if (!given.empty()) return fail("an OrderedDict with arguments");
      return push_list(Kind::kDict, {});
    case Function::kSize:
      if (given.size() != 1) return fail("a torch.Size without its sizes");
      stack_.push_back(given[0]);
      return true;
  }
  return false;
}

// The attributes of an OrderedDict (the _metadata of a state_dict) are left out; those of an object of
// unknown inside may be tensors.
bool PickleMachine::build() {
  Id state = 0;
  if (!pop(state)) return false;
  if (std::vector<Id>* parts = parts_of_object()) {
    parts->push_back(state);
    return true;
  }
  const bool plain = !stack_.empty() && (values_[stack_.back()].kind == Kind::kDict ||
                                         values_[stack_.back()].kind == Kind::kTensor);
  return plain || fail("the pickle sets attributes of no dictionary");
}

// ("storage", class, key, location, elements)
bool PickleMachine::persistent() {
  Id id = 0;
  if (!pop(id)) return false;
  const PickleValue tuple = values_[id];
  if (tuple.kind != Kind::kTuple || lists_[tuple.index].size() != 5)
    return fail("a storage is not described");
  const std::span<const Id> parts = lists_[tuple.index];
  if (values_[parts[1]].kind == Kind::kGlobal)
    return make_object(parts[1], {});  // of a kind that is not known
  const bool good = values_[parts[0]].kind == Kind::kText && text(values_[parts[0]]) == "storage" &&
                    values_[parts[1]].kind == Kind::kDType && values_[parts[2]].kind == Kind::kText;
  if (!good) return fail("a storage is not described");
  return push_list(Kind::kStorage, {parts[1], parts[2]});
}

// (storage, offset, sizes, strides, ...); typed: with the dtype at 6.
bool PickleMachine::tensor(std::span<const Id> arguments, bool typed) {
  const auto integers = [this](Id id) {
    const PickleValue& tuple = values_[id];
    if (tuple.kind != Kind::kTuple || lists_[tuple.index].size() > 64) return false;
    return std::all_of(lists_[tuple.index].begin(), lists_[tuple.index].end(), [this](Id item) {
      return values_[item].kind == Kind::kInteger && values_[item].integer >= 0;
    });
  };
  if (!arguments.empty() && values_[arguments[0]].kind == Kind::kObject) {
    stack_.push_back(arguments[0]);
    return true;
  }
  if (typed && arguments.size() >= 7 && values_[arguments[6]].kind == Kind::kGlobal) {
    return make_object(arguments[6], {});
  }
  const bool good =
      arguments.size() >= (typed ? 7U : 4U) && values_[arguments[0]].kind == Kind::kStorage &&
      values_[arguments[1]].kind == Kind::kInteger && values_[arguments[1]].integer >= 0 &&
      integers(arguments[2]) && integers(arguments[3]) &&
      lists_[values_[arguments[2]].index].size() == lists_[values_[arguments[3]].index].size() &&
      (!typed || values_[arguments[6]].kind == Kind::kDType);
  if (!good) return fail("a tensor is not described as torch describes it");
  const std::vector<Id> storage = lists_[values_[arguments[0]].index];
  return push_list(Kind::kTensor,
                   {typed ? arguments[6] : storage[0], storage[1], arguments[1], arguments[2], arguments[3]});
}

bool PickleMachine::append(std::span<const Id> items) {
  std::vector<Id>* list = parts_of_object();
  if (list == nullptr && !stack_.empty() && values_[stack_.back()].kind == Kind::kList) {
    list = &lists_[values_[stack_.back()].index];
  }
  if (list == nullptr) return fail("the pickle appends to no list");
  list->insert(list->end(), items.begin(), items.end());
  return true;
}

bool PickleMachine::set(std::span<const Id> items) {
  const Kind kind = stack_.empty() ? Kind::kNone : values_[stack_.back()].kind;
  if ((kind != Kind::kDict && kind != Kind::kObject) || items.size() % 2 != 0) {
    return fail("the pickle sets keys of no dictionary");
  }
  if (kind == Kind::kObject) {  // a dictionary of a class of its own: its keys are kept as one of its parts
    if (!push_list(Kind::kDict, {items.begin(), items.end()})) return false;
    const Id dictionary = stack_.back();
    stack_.pop_back();
    parts_of_object()->push_back(dictionary);
    return true;
  }
  std::vector<Id>& dict = lists_[values_[stack_.back()].index];
  dict.insert(dict.end(), items.begin(), items.end());
  return true;
}

}  // namespace trapline::inputs
