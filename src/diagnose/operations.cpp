#include "diagnose/operations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace trapline::diagnose {
namespace {

// Where an operation has no finite derivative, by its name in the graph.
constexpr std::array kPoints{
    Point{"sqrt", "at 0, and below it is NaN"},
    Point{"rsqrt", "at 0, and below it is NaN"},
    Point{"pow", "at 0 with an exponent below 1, nor below 0 where the exponent is trained"},
    Point{"log", "at 0"},
    Point{"log2", "at 0"},
    Point{"log10", "at 0"},
    Point{"log1p", "at -1"},
    Point{"acos", "at 1 and -1"},
    Point{"asin", "at 1 and -1"},
    Point{"atanh", "at 1 and -1"},
    Point{"acosh", "at 1"},
    Point{"div", "where the divisor is 0 or next to it"},
    Point{"reciprocal", "at 0"},
    Point{"logit", "at 0 and 1"},
    Point{"xlogy", "at 0"},
    Point{"hypot", "where both are 0"},
    Point{"exp", "where it overflows"},
    Point{"erfinv", "at 1 and -1"},
    Point{"lgamma", "at 0 and at negative whole numbers"},
    Point{"digamma", "at 0 and at negative whole numbers"},
    Point{"specialentr", "at 0"},
    Point{"logsumexp", "where every element is -inf"},
    Point{"logaddexp", "where both are -inf"},
    Point{"logcumsumexp", "where the first element is -inf"},
    Point{"linalg.eigh", "where two eigenvalues are the same"},
    Point{"linalg.eig", "where two eigenvalues are the same"},
    Point{"linalg.svd",
          "where two singular values are the same or, of a matrix that is not square, one is 0"},
};

// What keeps an operation's input where its result is finite: by its name in the graph or of its kernel.
constexpr std::string_view kNoRow =
    "a row of which every score is -inf, or one is inf, has none: find why a mask leaves nothing of it, and "
    "leave such a row out; where its result is not used, let one score stand";
// CTCLoss's own documentation names zero_infinity for it.
constexpr std::string_view kNoPath =
    "a target that is longer than its input has no path (repeated labels need a blank between them): leave "
    "it out, keep more time steps, or take zero_infinity=True";
// 1 / sqrt(running_var + eps), as the kernel has it.
constexpr std::string_view kNoVariance =
    "in evaluation it divides by the root of running_var: look for one below 0 (a momentum outside [0, 1], a "
    "checkpoint)";
constexpr std::string_view kSingular =
    "the matrix is singular, or next to it: look for rows that are the same or 0; a small multiple of the "
    "identity added to it keeps it away from there";
// A limit is right where rounding alone leaves the domain. What a parameter, a sign or the data took out of
// it is wrong before, and a limit hides that.
constexpr std::string_view kLog =
    "find why 0 or less goes into it: an epsilon, or a clamp to a small positive number, is right where 0 is "
    "to be expected, and hides it elsewhere";
constexpr std::string_view kDivisor =
    "find why its divisor is 0: an epsilon added to it is right where what it divides is 0 as well; "
    "a count that may be 0 is clamped to 1, or that step left out; elsewhere that hides it";
constexpr std::string_view kOverflow =
    "it overflowed: find why what goes into it is so large; a clamp from above hides that";
// The logarithm of a sum of it is finite all the same.
constexpr std::string_view kOverflowingExp =
    "it overflowed: where the logarithm of its sum is taken, torch.logsumexp gives that without it; else "
    "find "
    "why what goes into it is so large, as a clamp from above hides that";
constexpr std::string_view kBeyondOne =
    "find why a number beyond -1..1 goes into it: where only rounding takes it there, clamp it a little "
    "inside of them (at 1 and -1 its derivative is infinite); elsewhere a clamp hides that";
constexpr std::string_view kPoles =
    "it is infinite at 0 and at negative whole numbers: find why such a number goes into it (a rate or a "
    "count that is exactly 0, a softplus that has underflowed)";
constexpr std::string_view kProducts = "a sum of products overflowed: look at the size of both matrices";
constexpr std::array kDomains{
    Domain{"log", kLog},
    Domain{"log2", kLog},
    Domain{"log10", kLog},
    Domain{"log1p", "find why -1 or less goes into it: a clamp above -1 hides that"},
    Domain{"sqrt",
           "find why a number below 0 goes into it: where only rounding takes it there, clamp it to a small "
           "positive number; elsewhere a clamp hides that"},
    Domain{
        "rsqrt",
        "find why 0 or less goes into it: where only rounding takes it there, clamp it to a small positive "
        "number; elsewhere a clamp hides that"},
    Domain{"div", kDivisor},
    Domain{"addcdiv", "its divisor is 0 or overflowed: an `eps` above 0 keeps it away from 0"},
    Domain{"reciprocal",
           "find why 0 goes into it: a count that may be 0 is clamped to 1; an epsilon makes a huge number "
           "of it"},
    Domain{"pow",
           "look at its base: it overflowed, or is negative with a fraction as exponent, or 0 with a "
           "negative one"},
    Domain{"exp", kOverflowingExp},
    Domain{"expm1", kOverflow},
    Domain{"acos", kBeyondOne},
    Domain{"asin", kBeyondOne},
    Domain{"atanh",
           "find why a number outside -1..1, or 1 or -1 itself, goes into it: where only rounding takes it "
           "there, clamp it between them, without these; elsewhere a clamp hides that"},
    Domain{"logit",
           "find why a number outside 0..1, or 0 or 1 itself, goes into it: where only rounding takes it "
           "there, its `eps` keeps it inside; elsewhere that hides it"},
    Domain{"acosh",
           "find why a number below 1 goes into it: parameters or points that have left the range they are "
           "meant for, or rounding; a clamp hides the first, and at 1 itself its derivative is infinite"},
    Domain{"cosh", kOverflow},
    Domain{"sinh", kOverflow},
    Domain{"exp2", kOverflow},
    Domain{"lgamma", kPoles},
    Domain{"digamma", kPoles},
    Domain{"erfinv",
           "find why a number outside -1..1, or 1 or -1 itself, goes into it: where only rounding takes it "
           "there, clamp it between them, without these; elsewhere a clamp hides that"},
    Domain{"i0", kOverflow},
    Domain{"mean", "of no elements it is NaN (an empty mask, an empty group); else its sum overflowed"},
    Domain{"square", "it overflowed: look at the size of what is squared"},
    Domain{"mm", kProducts},
    Domain{"addmm", kProducts},
    Domain{"bmm", kProducts},
    Domain{"baddbmm", kProducts},
    Domain{"prod", "it overflowed: sum logarithms instead"},
    Domain{"cumprod", "it overflowed: take torch.cumsum of logarithms instead"},
    Domain{"sum",
           "it overflowed: a sum of exponentials wants its largest taken off first, as torch.logsumexp does"},
    Domain{"mse_loss",
           "a difference above 1.8e19 overflows when it is squared: look for a fill value in the data (1e20, "
           "9.97e36), and at outputs that grow from step to step"},
    Domain{"mul", "it overflowed: look at the size of both factors"},
    Domain{"cast",
           "a number is larger than the type holds (65504 in float16): scale it before, or use bfloat16"},
    Domain{"linalg.slogdet", kSingular},
    Domain{"logdet",
           "a determinant below 0 has no logarithm: where only its size counts, as in an invertible layer, "
           "take torch.linalg.slogdet()[1]; a covariance has none below 0: look at what made it"},
    Domain{"linalg.det", kSingular},
    Domain{"linalg.inv", kSingular},
    Domain{"linalg.solve", kSingular},
    Domain{"linalg.cholesky", kSingular},
    Domain{"native_batch_norm", kNoVariance},
    Domain{"_native_batch_norm_legit_no_training", kNoVariance},
    Domain{"_ctc_loss", kNoPath},
    Domain{"_use_cudnn_ctc_loss", kNoPath},
    Domain{"ctc_loss", kNoPath},
    Domain{"softmax", kNoRow, true},
    Domain{"logsoftmax", kNoRow, true},
    Domain{"_softmax", kNoRow, true},
    Domain{"_log_softmax", kNoRow, true},
    Domain{"var", "of one element it is NaN: take correction=0, or, where that is the batch, drop_last=True"},
    Domain{"std", "of one element it is NaN: take correction=0, or, where that is the batch, drop_last=True"},
    Domain{"var_mean",
           "of one element it is NaN: take correction=0, or, where that is the batch, drop_last=True"},
};

}  // namespace

const Point* point_of(std::string_view op) {
  const auto* found = std::ranges::find(kPoints, op, &Point::op);
  return found == kPoints.end() ? nullptr : found;
}

const Domain* domain_of(std::string_view op) {
  if (op.ends_with('_')) op.remove_suffix(1);  // in place
  const auto* found = std::ranges::find(kDomains, op, &Domain::op);
  return found == kDomains.end() ? nullptr : found;
}

std::string made_text(const BadPart& part) {
  if (part.at.empty() || part.bad >= part.total) return {};
  return fmt::format(", at [{}] of what it made ({} of {})", fmt::join(part.at, ", "), part.bad, part.total);
}

}  // namespace trapline::diagnose
