// A call of one row with random arguments, what the host says of it, and how a device's answer differs. Used
// with the driver without a device and with a real one.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "../checks/random_view.hpp"
#include "trapline/device.h"

namespace trapline::cuda_test {

using trapline::testing::between;
using trapline::testing::one_of;
using trapline::testing::Random;
using trapline::testing::RandomView;

// Null: there is no such row.
inline const trapline_contract* find_row(const std::string& id) {
  std::size_t count = 0;
  const trapline_contract* rows = trapline_contracts(&count);
  for (std::size_t i = 0; i < count; ++i) {
    if (rows[i].id == id) return &rows[i];
  }
  return nullptr;
}

inline trapline_arg tensor_arg(const TensorView& view) {
  trapline_arg arg{};
  arg.kind = TRAPLINE_ARG_TENSOR;
  arg.tensor = {view.data, view.sizes.data(), view.strides.data(), static_cast<std::int32_t>(view.dim()),
                static_cast<std::int32_t>(view.dtype)};
  return arg;
}

inline trapline_arg int_arg(std::int64_t value) {
  trapline_arg arg{};
  arg.kind = TRAPLINE_ARG_INT;
  arg.integer = value;
  return arg;
}

// The bits of a number in a floating point dtype, rounded towards zero.
inline std::uint64_t number_bits(DType dtype, double value) {
  if (dtype == DType::kFloat64) return std::bit_cast<std::uint64_t>(value);
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (dtype == DType::kFloat32) return bits;
  if (dtype == DType::kBFloat16) return bits >> 16;
  if (std::isnan(value)) return 0x7E01;
  if (std::isinf(value)) return value > 0 ? 0x7C00 : 0xFC00;
  const auto sign = static_cast<std::uint64_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::fabs(value) < 1e-4) return sign | (value == 0 ? 0 : 1);  // the least subnormal
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(value), &exponent);  // [0.5, 1)
  return sign | static_cast<std::uint64_t>((exponent + 14) << 10) |
         static_cast<std::uint64_t>((mantissa * 2 - 1) * 1024);
}

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

struct Spec {
  const char* id;
  std::vector<DType> dtypes;
  std::int64_t min_dim, max_dim;
  std::int64_t longest_row = std::numeric_limits<std::int64_t>::max();

  bool takes(const TensorView& view) const {
    return view.dim() >= min_dim && view.dim() <= max_dim &&
           (view.dim() == 0 || view.sizes.back() <= longest_row);
  }
};

inline const std::vector<DType> kInts{DType::kInt64, DType::kInt32};
inline const std::vector<DType> kAllInts{DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8,
                                         DType::kUInt8};
inline const std::vector<DType> kFloats{DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};

inline const Spec kSpecs[] = {
    {"nll_loss_forward.target", {DType::kInt64, DType::kUInt8}, 0, 4},
    {"embedding.indices", kInts, 0, 4},
    {"take.index", {DType::kInt64}, 0, 4},
    {"bincount.self", kAllInts, 1, 1},
    {"_embedding_bag.offsets", kInts, 1, 1},
    {"_ctc_loss.targets", kAllInts, 1, 2},
    {"binary_cross_entropy.self", kFloats, 0, 4},
    {"poisson.self", kFloats, 0, 4},
    {"copy_.src", kFloats, 0, 4},
    {"multinomial.self", kFloats, 1, 2},
    // One thread looks at a row of these, so longer ones are only checked element by element.
    {"multilabel_margin_loss_forward.target", {DType::kInt64}, 0, 4, 4096},
    {"repeat_interleave.repeats", kInts, 1, 1, 4096},
    {"segment_reduce.lengths", kInts, 1, 4, 4096},
    {"segment_reduce.offsets", kInts, 1, 4, 4096},
    {"masked_scatter.mask", {DType::kBool}, 0, 4},
    {"_validate_compressed_sparse_indices.compressed_idx", kInts, 1, 4},
};

struct Case {
  const Spec& spec;
  RandomView view;
  trapline_arg argument{}, bound{}, dim{}, also{};
  std::vector<std::int64_t> bound_sizes, bound_strides, lengths, filled_sizes;
  std::int64_t lengths_size = 0, one = 1, sum = 0;

  Case(Random& random, const Spec& of, RandomView made) : spec(of), view(std::move(made)) {
    argument = tensor_arg(view.view());
    const std::string id = spec.id;
    const std::int64_t limit = one_of<std::int64_t>(random, {1, 5, 100, 300, 0});
    if (id == "nll_loss_forward.target") {
      bound_sizes.assign(argument.tensor.sizes, argument.tensor.sizes + argument.tensor.dim);
      bound_sizes.insert(bound_sizes.begin() + (bound_sizes.empty() ? 0 : 1), limit);
      if (between(random, 0, 1) == 0) also = int_arg(one_of<std::int64_t>(random, {-100, 255, 7}));
    } else if (id == "copy_.src") {
      bound_sizes = {1};
    } else if (id == "_ctc_loss.targets") {
      bound_sizes = {50, 1, std::max<std::int64_t>(limit, 1)};
      choose_lengths(random);
    } else if (id == "segment_reduce.lengths" || id == "segment_reduce.offsets") {
      bound_sizes.assign(argument.tensor.sizes, argument.tensor.sizes + argument.tensor.dim);
      bound_sizes.back() = limit;
      dim = int_arg(argument.tensor.dim - 1);
    } else if (id == "masked_scatter.mask") {
      bound_sizes = {broadcast(random)};
    } else if (id == "multilabel_margin_loss_forward.target") {
      bound_sizes = {std::max<std::int64_t>(limit, 1)};
    } else {
      bound_sizes = {limit};
    }
    bound_strides.assign(bound_sizes.size(), 1);
    const bool has_bound = id != "multinomial.self" && id != "poisson.self" &&
                           id != "binary_cross_entropy.self" && id != "bincount.self";
    if (has_bound) bound = tensor_arg({nullptr, DType::kInt64, bound_sizes, bound_strides});
    fill(random, limit);
    if (id == "_validate_compressed_sparse_indices.compressed_idx") {
      // `sum` is the last one of the good rows; a width of 1 is what they ascend by.
      bound = int_arg(sum + one_of<std::int64_t>(random, {0, 0, 0, 1, -sum}));
      also = int_arg(one_of<std::int64_t>(random, {0, 1, 1, 1, 9}));
    }
    if (id == "repeat_interleave.repeats")
      bound = int_arg(sum + one_of<std::int64_t>(random, {0, 0, 0, 1, -1}));
  }

  // The tensor that a mask fills: of its shape, longer, or with other sizes where the mask has one element.
  // Returns how many elements there are to fill it with.
  std::int64_t broadcast(Random& random) {
    filled_sizes.assign(argument.tensor.sizes, argument.tensor.sizes + argument.tensor.dim);
    std::int64_t all = 1;
    for (std::int64_t& size : filled_sizes) {
      all *= size;
      if (size == 1) size = one_of<std::int64_t>(random, {1, 2, 3});
      all *= argument.tensor.sizes[&size - filled_sizes.data()] == 1 ? size : 1;
      if (between(random, 0, 9) == 0) size = 1;
    }
    if (between(random, 0, 3) == 0) {
      filled_sizes.insert(filled_sizes.begin(), between(random, 1, 3));
      all *= filled_sizes[0];
    }
    also = tensor_arg({nullptr, DType::kFloat32, filled_sizes, filled_sizes});
    return one_of<std::int64_t>(random, {0, 1, all / 4, all / 2, all / 2 + 1, all - all / 5, all});
  }

  void choose_lengths(Random& random) {
    const trapline_tensor& targets = argument.tensor;
    const std::int64_t rows = targets.dim == 2 ? targets.sizes[0] : 1;
    const std::int64_t width = targets.sizes[targets.dim - 1];
    for (std::int64_t r = 0; r < rows; ++r) {
      lengths.push_back(targets.dim == 2 ? between(random, 0, width) : width);
    }
    if (between(random, 0, 9) == 0 && rows > 0)
      lengths[0] += one_of<std::int64_t>(random, {-99999, 99999, 1});
    lengths_size = rows;
    also = tensor_arg({lengths.data(), DType::kInt64, {&lengths_size, 1}, {&one, 1}});
  }

  void fill(Random& random, std::int64_t limit) {
    const std::int64_t total = view.view().numel();
    std::vector<std::int64_t> bad;
    if (total > 0 && between(random, 0, 2) != 0) {
      for (std::int64_t i = between(random, 0, 3); i-- > 0;) bad.push_back(between(random, 0, total - 1));
    }
    if (between(random, 0, 30) == 0) bad.clear(), bad.push_back(-1);  // all of them
    const bool all = !bad.empty() && bad[0] == -1;
    const DType dtype = view.view().dtype;
    const std::string id = spec.id;
    const bool offsets = id == "_embedding_bag.offsets" || id == "segment_reduce.offsets";
    const bool counts = id == "segment_reduce.lengths" || id == "repeat_interleave.repeats";
    const bool compressed = id == "_validate_compressed_sparse_indices.compressed_idx";
    const bool ended = id == "multilabel_margin_loss_forward.target";
    const std::int64_t row = view.view().dim() == 0 ? 1 : view.view().sizes.back();
    const double zero = between(random, 0, 20) == 0 ? 1 : 0;  // rows without a sum
    std::int64_t at = 0, last = 0;
    view.fill(0xBBBBBBBBBBBBBBBBULL, [&]() -> std::uint64_t {
      const bool is_bad = all || std::find(bad.begin(), bad.end(), at) != bad.end();
      const bool is_first = at++ == 0;
      if (id == "segment_reduce.offsets" && (at - 1) % row == 0) last = 0;
      if (is_floating(dtype)) {
        const double good = zero != 0 ? 0.0 : one_of(random, {0.0, -0.0, 0.5, 1.0, 1e-6, 0.25});
        return number_bits(dtype, is_bad ? one_of(random, {kNan, kInf, -kInf, 2.0, -1.0, -0.5}) : good);
      }
      if (compressed && !is_bad) {  // every row ascends in the same places
        const std::int64_t in_row = (at - 1) % row;
        last = in_row == 0 ? 0 : last + (in_row % 3 == 1 ? 1 : 0);
        sum = std::max(sum, last);
        return static_cast<std::uint64_t>(last);
      }
      if (counts && !is_bad) {
        const std::int64_t value = between(random, 0, row > 50 ? 30 : 2) == 1 ? 1 : 0;
        sum += value;
        return static_cast<std::uint64_t>(value);
      }
      if (dtype == DType::kBool) return between(random, 0, 2) == 0 || all ? 1 : 0;
      if (ended && between(random, 0, 15) == 0) return static_cast<std::uint64_t>(-1);
      if (is_bad) {
        return static_cast<std::uint64_t>(one_of<std::int64_t>(
            random, {limit, limit + 3, -1, -limit - 1, std::numeric_limits<std::int64_t>::min(),
                     std::numeric_limits<std::int64_t>::max(), 200}));
      }
      if (offsets) {
        if (!is_first && last < limit && between(random, 0, 9) == 0) ++last;
        return static_cast<std::uint64_t>(last);
      }
      return static_cast<std::uint64_t>(limit == 0 ? 0 : between(random, 0, limit - 1));
    });
  }

  const trapline_contract* contract() const { return find_row(spec.id); }
  int check_on_host(const trapline_arg& checked, trapline_scan& scan) const {
    return trapline_check(contract(), &checked, &bound, &dim, &also, &scan);
  }
};

inline bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// "" when both say the same.
inline std::string difference(const trapline_scan& found, const trapline_scan& expected) {
  std::ostringstream text;
  const auto compare = [&](const char* name, auto a, auto b) {
    if (a != b) text << name << " is " << a << ", not " << b << "; ";
  };
  const auto compare_numbers = [&](const char* name, double a, double b) {
    if (!same(a, b)) text << name << " is " << a << ", not " << b << "; ";
  };
  compare("bad", found.bad, expected.bad);
  compare("total", found.total, expected.total);
  compare("first", found.first, expected.first);
  compare("is_float", found.is_float, expected.is_float);
  compare("list_position", found.list_position, expected.list_position);
  compare("ivalue", found.ivalue, expected.ivalue);
  compare("imin", found.imin, expected.imin);
  compare("imax", found.imax, expected.imax);
  compare_numbers("fvalue", found.fvalue, expected.fvalue);
  compare_numbers("fmin", found.fmin, expected.fmin);
  compare_numbers("fmax", found.fmax, expected.fmax);
  compare("lo", found.lo, expected.lo);
  compare("hi", found.hi, expected.hi);
  compare("has_also", found.has_also, expected.has_also);
  compare("also", found.also, expected.also);
  compare("reason", found.reason, expected.reason);
  return text.str();
}

// "" when the copy is good, and differs from the original only where that was bad, or in a row or list that
// was.
inline std::string healed_problem(const Case& one, const trapline_device_check& check,
                                  const trapline_scan& expected, const void* healed) {
  const TensorView view = one.view.view();
  const std::size_t width = size_of(view.dtype);
  std::vector<std::int64_t> strides(view.sizes.size());
  std::int64_t next = 1;
  for (std::size_t d = strides.size(); d-- > 0;) {
    strides[d] = next;
    next *= view.sizes[d];
  }
  const trapline_arg copy = tensor_arg({healed, view.dtype, view.sizes, strides});
  trapline_scan again{};
  if (one.check_on_host(copy, again) == TRAPLINE_VIOLATED) {
    return "element " + std::to_string(again.first) + " of the copy is still bad";
  }
  std::int64_t changed = 0, position = 0, first = -1;
  const Layout layout = row_major_layout(view, view.sizes.size());
  const bool has_padding = std::string(one.spec.id) == "multilabel_margin_loss_forward.target";
  bool ended = false;
  for_each_offset(layout, layout.dims, [&](std::int64_t offset) {
    const auto* from = static_cast<const char*>(view.data) + offset * static_cast<std::int64_t>(width);
    const auto* to = static_cast<const char*>(healed) + position * static_cast<std::int64_t>(width);
    if (has_padding && position % check.last_dim == 0) ended = false;
    // Behind the first -1 of a row nothing is read, and what is out of range there becomes -1, too.
    ended =
        ended || (has_padding && std::all_of(from, from + width, [](char byte) { return byte == '\xFF'; }));
    if (!ended && std::memcmp(from, to, width) != 0 && changed++ == 0) first = position;
    ++position;
    return true;
  });
  bool right = true;
  if (expected.bad == 0) {
    right = changed == 0;
  } else if (check.heal == TRAPLINE_HEAL_ROW) {
    right =
        changed <= expected.bad * check.last_dim && first / check.last_dim == expected.first / check.last_dim;
  } else if (check.heal != TRAPLINE_HEAL_ALL) {
    right = changed == expected.bad && first == expected.first;
  }
  return right ? ""
               : std::to_string(changed) + " elements of the copy differ, the first is " +
                     std::to_string(first);
}

}  // namespace trapline::cuda_test
