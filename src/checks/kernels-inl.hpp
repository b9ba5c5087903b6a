// Bodies of the kernels, for the instruction set that kernels.cpp is being compiled for. Per-target include
// guard: this file is read again for each of them.
#if defined(TRAPLINE_CHECKS_KERNELS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TRAPLINE_CHECKS_KERNELS_INL_HPP
#undef TRAPLINE_CHECKS_KERNELS_INL_HPP
#else
#define TRAPLINE_CHECKS_KERNELS_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace trapline::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Fills a whole vector from 1 <= n < Lanes(d) elements by repeating the first, which changes no extreme.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadFew(D d, const T* data, std::size_t n) {
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    std::memcpy(lanes + i, static_cast<const void*>(data + (i < n ? i : 0)), sizeof(T));
  }
  return hn::Load(d, lanes);
}

// Least and greatest of one lane set each. Not every instruction set reduces every type, and it happens once
// per run.
template <class D, class V, class T = hn::TFromD<D>>
HWY_INLINE Extremes<T> Reduce(D d, V min, V max, bool bad) {
  HWY_ALIGN T mins[hn::MaxLanes(d)];
  HWY_ALIGN T maxs[hn::MaxLanes(d)];
  hn::Store(min, d, mins);
  hn::Store(max, d, maxs);
  Extremes<T> result{mins[0], maxs[0], bad};
  for (std::size_t i = 1; i < hn::Lanes(d); ++i) {
    if (mins[i] < result.min) result.min = mins[i];
    if (maxs[i] > result.max) result.max = maxs[i];
  }
  return result;
}

// Visits n elements, four vectors at a time, so that an extreme need not wait for the one before it.
// The last vector overlaps the one before it; seeing an element twice does no harm.
template <class D, class T, class Step>
HWY_INLINE void ForEachVector(D d, const T* data, std::size_t n, Step&& step) {
  const std::size_t lanes = hn::Lanes(d);
  if (n < lanes) {
    const auto few = LoadFew(d, data, n);
    step(few, few, few, few);
    return;
  }
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    step(hn::LoadU(d, data + i), hn::LoadU(d, data + i + lanes), hn::LoadU(d, data + i + 2 * lanes),
         hn::LoadU(d, data + i + 3 * lanes));
  }
  const auto last = hn::LoadU(d, data + n - lanes);
  for (; i + lanes < n; i += lanes) {
    const auto v = hn::LoadU(d, data + i);
    step(v, last, v, last);
  }
  step(last, last, last, last);
}

template <class T>
HWY_INLINE Extremes<T> ExtremesOf(const T* data, std::size_t n) {
  const hn::ScalableTag<T> d;
  const auto first = n < hn::Lanes(d) ? LoadFew(d, data, n) : hn::LoadU(d, data);
  auto min0 = first, min1 = first, max0 = first, max1 = first;
  ForEachVector(d, data, n, [&](auto a, auto b, auto c, auto e) HWY_ATTR {
    min0 = hn::Min(min0, hn::Min(a, b));
    max0 = hn::Max(max0, hn::Max(a, b));
    min1 = hn::Min(min1, hn::Min(c, e));
    max1 = hn::Max(max1, hn::Max(c, e));
  });
  return Reduce(d, hn::Min(min0, min1), hn::Max(max0, max1), false);
}

// Sign and magnitude, without turning either into the other. Read as signed integers, the greatest is the
// greatest number if one is positive; as unsigned ones, it is the least number if one is negative. Where all
// have one sign, the other extreme is the least signed integer.
template <class T, class U = hwy::MakeUnsigned<T>>
HWY_INLINE Extremes<U> BitExtremes(const T* data, std::size_t n) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto first = n < hn::Lanes(d) ? LoadFew(d, data, n) : hn::LoadU(d, data);
  auto min0 = first, min1 = first, max0 = first, max1 = first;
  auto top0 = hn::BitCast(du, first), top1 = top0;
  ForEachVector(d, data, n, [&](auto a, auto b, auto c, auto e) HWY_ATTR {
    min0 = hn::Min(min0, hn::Min(a, b));
    max0 = hn::Max(max0, hn::Max(a, b));
    top0 = hn::Max(top0, hn::Max(hn::BitCast(du, a), hn::BitCast(du, b)));
    min1 = hn::Min(min1, hn::Min(c, e));
    max1 = hn::Max(max1, hn::Max(c, e));
    top1 = hn::Max(top1, hn::Max(hn::BitCast(du, c), hn::BitCast(du, e)));
  });
  const Extremes<T> as_signed = Reduce(d, hn::Min(min0, min1), hn::Max(max0, max1), false);
  const U top = Reduce(du, top0, hn::Max(top0, top1), false).max;
  const bool negative = top > static_cast<U>(hwy::LimitsMax<T>());
  const bool positive = as_signed.max >= 0;
  const U other = static_cast<U>(as_signed.min);
  return {negative ? top : other, positive ? static_cast<U>(as_signed.max) : other, false};
}

template <class T>
HWY_INLINE Extremes<T> ExtremesBut(const T* data, std::size_t n, T lo, T hi, T also) {
  const hn::ScalableTag<T> d;
  const auto vlo = hn::Set(d, lo);
  const auto vhi = hn::Set(d, hi);
  const auto valso = hn::Set(d, also);
  const auto rejected = [&](auto v) HWY_ATTR {
    return hn::And(hn::Ne(hn::Min(hn::Max(v, vlo), vhi), v), hn::Ne(v, valso));
  };
  const auto first = n < hn::Lanes(d) ? LoadFew(d, data, n) : hn::LoadU(d, data);
  auto min0 = first, min1 = first, max0 = first, max1 = first;
  auto bad = rejected(first);
  ForEachVector(d, data, n, [&](auto a, auto b, auto c, auto e) HWY_ATTR {
    bad = hn::Or(bad, hn::Or(hn::Or(rejected(a), rejected(b)), hn::Or(rejected(c), rejected(e))));
    min0 = hn::Min(min0, hn::Min(a, b));
    max0 = hn::Max(max0, hn::Max(a, b));
    min1 = hn::Min(min1, hn::Min(c, e));
    max1 = hn::Max(max1, hn::Max(c, e));
  });
  return Reduce(d, hn::Min(min0, min1), hn::Max(max0, max1), !hn::AllFalse(d, bad));
}

template <class T>
HWY_INLINE bool Ascending(const T* data, std::size_t n) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 1;
  for (; i + lanes <= n; i += lanes) {
    if (!hn::AllFalse(d, hn::Lt(hn::LoadU(d, data + i), hn::LoadU(d, data + i - 1)))) return false;
  }
  for (; i < n; ++i) {
    T previous, value;
    std::memcpy(&previous, static_cast<const void*>(data + i - 1), sizeof(T));
    std::memcpy(&value, static_cast<const void*>(data + i), sizeof(T));
    if (value < previous) return false;
  }
  return true;
}

}  // namespace trapline::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
