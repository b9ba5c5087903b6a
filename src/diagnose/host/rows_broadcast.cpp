// Broadcasting and expand: shapes that do not fit.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kShape = Cause::kShapeMismatch;

// Size of `shape` at dimension `d` of a broadcast result with `dims` dimensions; 1 where it has none.
std::int64_t aligned(const Shape& shape, std::size_t dims, std::size_t d) {
  const std::size_t missing = dims - shape.size();
  return d < missing ? 1 : shape[d - missing];
}

bool broadcasts(const Shape& a, const Shape& b) {
  const std::size_t dims = std::max(a.size(), b.size());
  for (std::size_t d = 0; d < dims; ++d) {
    const std::int64_t x = aligned(a, dims, d), y = aligned(b, dims, d);
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

// The two operands whose sizes at the failing dimension are those of the message.
std::pair<const Operand*, const Operand*> failing_pair(const HostCase& c, std::int64_t a, std::int64_t b,
                                                       std::size_t d) {
  for (const Operand& first : c.operands()) {
    for (const Operand& second : c.operands()) {
      const std::size_t dims = std::max(first.shape.size(), second.shape.size());
      if (&first == &second || d >= dims) continue;
      if (aligned(first.shape, dims, d) == a && aligned(second.shape, dims, d) == b) return {&first, &second};
    }
  }
  return {nullptr, nullptr};
}

// A call on the shorter operand that makes the pair broadcast without copying data: unsqueeze or squeeze.
std::string broadcast_fix(const Operand& a, const Operand& b) {
  for (const auto& [shorter, longer] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    if (shorter->shape.size() >= longer->shape.size()) continue;
    for (std::size_t d = shorter->shape.size() + 1; d-- > 0;) {
      Shape grown = shorter->shape;
      grown.insert(grown.begin() + static_cast<std::ptrdiff_t>(d), 1);
      if (broadcasts(grown, longer->shape)) return fmt::format("{}.unsqueeze({})", shorter->name, d);
    }
  }
  if (std::string call = call_that_fits(b.name, b.shape, a.shape);
      !call.empty() && a.shape.size() == b.shape.size()) {
    return call;
  }
  return {};
}

bool pointwise_loss(const std::string& function) {
  for (const char* loss : {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div",
                           "poisson_nll_loss", "soft_margin_loss", "gaussian_nll_loss"}) {
    if (function == loss) return true;
  }
  return false;
}

// "`self.positional_embedding`"; empty: the line adds no table of positions.
std::string position_table(const std::string& code) {
  std::string word;
  for (const char ch : code + " ") {
    const auto c = static_cast<unsigned char>(ch);
    if (std::isalnum(c) != 0 || ch == '_' || ch == '.') {
      word += ch;
      continue;
    }
    if (ch == '(') {  // a method of it; else a function
      const std::size_t dot = word.rfind('.');
      word.resize(dot == std::string::npos ? 0 : dot);
    }
    const bool table = word.find("pos") != std::string::npos &&
                       (word.find("emb") != std::string::npos || word.find("enc") != std::string::npos);
    if (table) return word;
    word.clear();
  }
  return {};
}

// Nobody reshapes a tensor that is inside a library: there only the arguments of the call can be others.
std::string equal_or_one(const HostCase& c, std::int64_t d, const char* how) {
  if (const std::string table = position_table(c.call_or("")); !table.empty())
    return fmt::format(
        "`{}` has one row for each position, and what goes in is of another length: cut or pad it (a "
        "tokenizer's max_length, the size of the images), or interpolate the table",
        table);
  if (!c.raised_in_library())
    return fmt::format("make dimension {} equal in both, or 1 in one of them{}", d, how);
  return fmt::format("both tensors are a library's: check the sizes that `{}` is given{}",
                     clip(c.call_or("the call"), 60), c.given());
}

void broadcast(const HostCase& c, Finding& f) {
  const std::int64_t a = c.number(1), b = c.number(2), d = c.number(3);
  if (pointwise_loss(c.functional())) {
    const Operand* in = c.by_role("input");
    const Operand* target = c.by_role("target");
    f.op = c.functional();
    if (in != nullptr && target != nullptr) {
      f.argument = "target";
      return explain_same_shape(c, f, in->shape, target->shape);
    }
  }
  const auto [first, second] = failing_pair(c, a, b, static_cast<std::size_t>(std::max<std::int64_t>(0, d)));
  if (first == nullptr) {
    const bool stands_below = c.call().empty() || c.call().size() > 60;  // the line itself does
    f.summary =
        fmt::format("{}one operand has size {} and the other {} in dimension {}, which cannot be broadcast",
                    stands_below ? "" : fmt::format("`{}`: ", c.call()), a, b, d);
    const std::string strides = d < 2 ? std::string() : strides_advice(c, a, b);
    f.fix.push_back(!strides.empty() ? strides : equal_or_one(c, d, " (`unsqueeze`)"));
    return;
  }
  f.argument = second->name;
  f.tensor = TensorInfo{second->shape, second->dtype, second->device};
  f.summary = fmt::format("{} {} and {} {} cannot be broadcast: {} against {} in dimension {}", first->name,
                          to_text(first->shape), second->name, to_text(second->shape), a, b, d);
  if (const std::string fix = broadcast_fix(*first, *second); !fix.empty())
    f.fix.push_back(fmt::format("use `{}`", fix));
  const std::string strides = d < 2 ? std::string() : strides_advice(c, a, b);
  f.fix.push_back(!strides.empty() ? strides : equal_or_one(c, d, ""));
}

void broadcast_output(const HostCase& c, Finding& f) {
  const Shape out = c.shape(1), needed = c.shape(2);
  f.op = "in-place operation";
  f.summary = fmt::format("an in-place operation would need shape {} but the tensor it writes to has {}",
                          to_text(needed), to_text(out));
  f.fix.push_back("write the result to a new tensor: `x = x + y` instead of `x += y`");
  f.fix.push_back(fmt::format("or bring the other operand to {}", to_text(out)));
}

void broadcast_shapes(const HostCase& c, Finding& f) {
  f.summary = fmt::format("shapes {} and {} cannot be broadcast", to_text(c.shape(1)), to_text(c.shape(2)));
  f.fix.push_back("each dimension, from the last, must be equal in both or 1 in one of them");
}

void expand(const HostCase& c, Finding& f) {
  const Shape target = c.shape(4), have = c.shape(5);
  const std::string name = c.name("", have, "the tensor");
  f.summary =
      fmt::format("expand: {} {} cannot become {}: dimension {} has {}, and only size 1 can be expanded",
                  name, to_text(have), to_text(target), c.number(3), c.number(2));
  f.tensor = TensorInfo{have, "", ""};
  const Operand tensor{name == "the tensor" ? "x" : name, "", have, "", "", true},
      wanted{"", "", target, "", "", true};
  if (have.size() < target.size()) {
    for (std::size_t d = have.size() + 1; d-- > 0;) {
      Shape grown = have;
      grown.insert(grown.begin() + static_cast<std::ptrdiff_t>(d), 1);
      if (broadcasts(grown, target)) {
        f.fix.push_back(fmt::format("use `{}.unsqueeze({})` first", tensor.name, d));
        break;
      }
    }
  } else if (const std::string call = call_that_fits(tensor.name, have, target); !call.empty()) {
    f.fix.push_back(fmt::format("use `{}`", call));
  }
  f.fix.push_back(fmt::format("give it size {} or 1 in dimension {}", c.number(1), c.number(3)));
}

void expand_dims(const HostCase& c, Finding& f) {
  f.summary = fmt::format("expand: {} sizes for a tensor {} of {} dimensions", c.number(3),
                          to_text(c.shape(1)), c.number(4));
  f.fix.push_back(fmt::format("name at least {} sizes; -1 keeps a dimension", c.number(4)));
}

}  // namespace

std::span<const HostErrorRow> broadcast_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"broadcast.sizes",
       "RuntimeError",
       R"(The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+))",
       "at non-singleton dimension",
       kShape,
       "broadcast",
       "",
       broadcast,
       {"The size of tensor a (4) must match the size of tensor b (3) at non-singleton dimension 0"},
       nullptr,
       {.refine = Refine::kOperatorInCode}},
      {"broadcast.output",
       "RuntimeError",
       R"(output with shape \[([\d, ]*)\] doesn't match the broadcast shape \[([\d, ]*)\])",
       "doesn't match the broadcast shape",
       kShape,
       "",
       "self",
       broadcast_output,
       {"output with shape [4] doesn't match the broadcast shape [3, 4]"}},
      {"broadcast.shapes",
       "RuntimeError",
       R"(Attempting to broadcast a dimension of length \d+ at -?\d+! Mismatching argument at index \d+ had (\(.*?\)|torch\.Size\(.*?\)); but expected shape should be broadcastable to (\[[\d, ]*\]))",
       "Attempting to broadcast a dimension of length",
       kShape,
       "broadcast_shapes",
       "",
       broadcast_shapes,
       {"Attempting to broadcast a dimension of length 4 at -1! Mismatching argument at index 1 had (4,); "
        "but expected shape should be "
        "broadcastable to [3]"}},
      {"expand.sizes",
       "RuntimeError",
       R"(The expanded size of the tensor \((-?\d+)\) must match the existing size \((\d+)\) at non-singleton dimension (\d+)\.\s+Target sizes: \[([-\d, ]*)\]\.\s+Tensor sizes: \[([\d, ]*)\])",
       "The expanded size of the tensor",
       kShape,
       "expand",
       "size",
       expand,
       {"The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 0.  "
        "Target sizes: [4].  Tensor "
        "sizes: [3]"}},
      {"expand.dims",
       "RuntimeError",
       R"(expand\(torch\.[\w.]*Tensor\{\[([\d, ]*)\]\}, size=\[([-\d, ]*)\]\): the number of sizes provided \((\d+)\) must be greater or equal to the number of dimensions in the tensor \((\d+)\))",
       "must be greater or equal to the number of dimensions in the tensor",
       kShape,
       "expand",
       "size",
       expand_dims,
       {"expand(torch.FloatTensor{[3, 4]}, size=[2]): the number of sizes provided (1) must be greater or "
        "equal to the number of "
        "dimensions in the tensor (2)"}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
