// Wrong dtypes of ids, indices and masks.
#include <fmt/format.h>

#include "diagnose/host/case.hpp"
#include "diagnose/host/dtypes.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kDtype = Cause::kDtypeMismatch;

// Ids as floats are whole numbers. Where they are not, a cast would make ids of what is none.
bool explain_not_whole(const Operand* ids, std::string_view what, std::string_view trial, Finding& f) {
  if (ids == nullptr || ids->whole.value_or(true)) return false;
  std::string shape;
  for (const std::int64_t size : ids->shape) shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  if (ids->shape.size() == 1) shape += ",";
  f.fix.push_back(
      fmt::format("{} holds numbers that are not whole, so it holds no {}: give the call the tensor that "
                  "does (a trial input: "
                  "torch.randint(0, n, ({})), n {})",
                  ids->name, what, shape, trial));
  return true;
}

void indices_dtype(const HostCase& c, Finding& f) {
  f.op = c.capture(2).empty() ? "embedding" : c.capture(2);
  const Operand* ids = operand_of_dtype(c, c.capture(1));
  const std::string name = ids ? ids->name : "indices";
  f.argument = "input";
  set_tensor(f, ids);
  f.summary = fmt::format("{}: {} holds ids as {}; they must be int64 or int32", f.op, name,
                          dtype_name(c.capture(1)));
  f.valid = Valid{"int64 or int32", {}, {}, {}};
  if (explain_not_whole(ids, "ids", "the rows of the table", f)) return;
  f.fix.push_back(fmt::format("use `{}.long()`", name));
}

bool is_index(const Operand& operand) {
  return operand.dtype == "int64" || operand.dtype == "int32" || operand.dtype == "bool" ||
         operand.dtype == "uint8";
}

void index_tensor(const HostCase& c, Finding& f) {
  // What stands in the brackets where it raised; else the one that cannot be an index, when there is one.
  const Operand* index = nullptr;
  std::size_t candidates = 0;
  for (const Operand& operand : c.operands()) {
    if (is_index(operand) || operand.role == "indexed") continue;
    ++candidates;
    if (index == nullptr || operand.role == "index") index = &operand;
  }
  if (candidates > 1 && index->role != "index") index = nullptr;
  set_tensor(f, index);
  f.summary = fmt::format("{}: {}{} cannot be used as an index; it must be int64, int32 or bool", f.op,
                          index ? index->name : "a tensor that is not of integers",
                          index ? " (" + index->dtype + ")" : "");
  if (index == nullptr) {
    f.fix.push_back(
        "print the dtypes of what stands in the brackets; `.long()` makes positions, `.bool()` a mask");
  } else if (!explain_not_whole(index, "positions", "the size of the dimension", f)) {
    f.fix.push_back(fmt::format("use `{}.long()` for positions, `.bool()` for a mask", index->name));
  }
}

void integer_index(const HostCase& c, Finding& f) {
  if (!c.capture(1).empty()) f.op = c.capture(1);
  const Operand* index = c.by_role("index");
  for (const Operand& operand : c.operands()) {
    if (index == nullptr && (operand.name == "index" || operand.name.find("idx") != std::string::npos))
      index = &operand;
  }
  const std::string name = index ? index->name : "index";
  set_tensor(f, index);
  f.summary =
      fmt::format("{}: {} must be an integer tensor{}", f.op, name, index ? ", not " + index->dtype : "");
  if (explain_not_whole(index, "positions", "the size of the dimension", f)) return;
  f.fix.push_back(fmt::format("use `{}.long()`", name));
}

void python_index(const HostCase& c, Finding& f) {
  f.summary = fmt::format("x[index]: a {} is not an index", c.capture(1));
  f.fix.push_back("use integers: `int(i)`, `//` instead of `/`, or a tensor of int64");
}

void same_dtype(const HostCase& c, Finding& f) {
  if (!c.capture(1).empty()) f.op = c.capture(1);
  const std::string& want = c.capture(2);
  const std::string& got = c.capture(3);
  f.summary = want.empty()
                  ? fmt::format("{}: the source must have the dtype of the tensor it is written to", f.op)
                  : fmt::format("{}: the source is {} but the tensor it is written to is {}", f.op,
                                dtype_name(got), dtype_name(want));
  f.fix.push_back(want.empty() ? std::string("use `src.to(x.dtype)`")
                               : fmt::format("use `src.{}` (or `src.to(x.dtype)`)", dtype_cast(want)));
}

void one_hot(const HostCase& c, Finding& f) {
  const Operand* labels = c.operands().empty() ? nullptr : &c.operands().front();
  const std::string name = labels ? labels->name : "labels";
  set_tensor(f, labels);
  f.summary = fmt::format("one_hot: {}{} must be int64", name, labels ? " is " + labels->dtype + " and" : "");
  if (explain_not_whole(labels, "labels", "num_classes", f)) return;
  f.fix.push_back(fmt::format("use `F.one_hot({}.long(), num_classes)`", name));
}

void mask_dtype(const HostCase& c, Finding& f) {
  f.summary = fmt::format("{}: the {} is {}; it must be bool", f.op, f.argument, dtype_name(c.capture(1)));
  const Operand* mask = operand_of_dtype(c, c.capture(1));
  set_tensor(f, mask);
  f.fix.push_back(fmt::format("use `{}.bool()`", mask ? mask->name : "mask"));
}

}  // namespace

std::span<const HostErrorRow> index_dtype_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"dtype.indices",
       "RuntimeError",
       R"(Expected tensor for argument #\d+ '\w+' to have (?:one of the following scalar types: Long, Int; but got|scalar type Long; but got) (torch\.[\w.]+) instead(?: \(while checking arguments for (\w+)\))?)",
       "to have one of the following scalar types: Long, Int|to have scalar type Long; but got",
       kDtype,
       "embedding",
       "input",
       indices_dtype,
       {"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
        "Int; but got torch.FloatTensor instead "
        "(while checking arguments for embedding)",
        "Expected tensor for argument #1 'indices' to have scalar type Long; but got "
        "torch.cuda.IntTensor instead (while checking arguments for "
        "embedding)"}},
      {"dtype.index_tensor",
       "IndexError",
       R"(tensors used as indices must be long,(?: int,)? byte or bool tensors)",
       "tensors used as indices must be long",
       kDtype,
       "x[index]",
       "index",
       index_tensor,
       {"tensors used as indices must be long, int, byte or bool tensors",
        "tensors used as indices must be long, byte or bool tensors"}},
      {"dtype.index_python",
       "IndexError",
       R"(only integers, slices \(`:`\), ellipsis \(`\.\.\.`\), None and long or byte Variables are valid indices \(got (\w+)\))",
       "and long or byte Variables are valid indices",
       kDtype,
       "x[index]",
       "index",
       python_index,
       {"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
        "indices (got float)"}},
      {"dtype.index_int",
       "RuntimeError",
       R"((\w+?)_?\(\): Expected (?:dtype int32/int64|dtype int64|dtype int32 or int64|a long tensor) for index)",
       "Expected dtype int64 for index|Expected dtype int32/int64 for index|Expected dtype int32 or int64 "
       "for index|Expected a long tensor for index",
       kDtype,
       "gather",
       "index",
       integer_index,
       {"gather(): Expected dtype int32/int64 for index", "gather(): Expected dtype int64 for index",
        "index_select(): Expected dtype int32 or int64 for index",
        "take(): Expected a long tensor for index, but got Float"}},
      {"dtype.source",
       "RuntimeError",
       R"((?:(\w+?)_?\(\): (?:Expected self\.dtype to be equal to src\.dtype|self and source expected to have the same dtype, but got \(self\) (\w+) and \(source\) (\w+))))",
       "Expected self.dtype to be equal to src.dtype|self and source expected to have the same dtype",
       kDtype,
       "scatter",
       "src",
       same_dtype,
       {"scatter(): Expected self.dtype to be equal to src.dtype",
        "index_copy_(): self and source expected to have the same dtype, but got (self) Float and "
        "(source) Double"}},
      {"dtype.index_put",
       "RuntimeError",
       R"((Index put) requires the source and destination dtypes match, got (\w+) for the destination and (\w+) for the source)",
       "requires the source and destination dtypes match",
       kDtype,
       "x[index] = value",
       "value",
       [](const HostCase& c, Finding& f) {
         f.summary = fmt::format("x[index] = value: the value is {} but x is {}", dtype_name(c.capture(3)),
                                 dtype_name(c.capture(2)));
         f.fix.push_back(fmt::format(
             "use `value.{}` (or `value.to(x.dtype)`; under autocast x may be the one that is wider)",
             dtype_cast(c.capture(2))));
       },
       {"Index put requires the source and destination dtypes match, got Float for the destination "
        "and Double for the source."}},
      {"dtype.one_hot",
       "RuntimeError",
       R"(one_hot is only applicable to index tensor)",
       "one_hot is only applicable to index tensor",
       kDtype,
       "one_hot",
       "input",
       one_hot,
       {"one_hot is only applicable to index tensor of type LongTensor.",
        "one_hot is only applicable to index tensor."}},
      {"dtype.masked_fill",
       "RuntimeError",
       R"(masked_fill_? only supports boolean masks, but got (?:mask with )?dtype ([\w ]+))",
       "only supports boolean masks",
       kDtype,
       "masked_fill",
       "mask",
       mask_dtype,
       {"masked_fill_ only supports boolean masks, but got mask with dtype long int"}},
      {"dtype.where",
       "RuntimeError",
       R"(where expected condition to be a boolean tensor, but got a tensor with dtype (\w+))",
       "expected condition to be a boolean tensor",
       kDtype,
       "where",
       "condition",
       mask_dtype,
       {"where expected condition to be a boolean tensor, but got a tensor with dtype Long"}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
