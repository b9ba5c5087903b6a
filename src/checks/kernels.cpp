#include "checks/kernels.hpp"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "checks/kernels.cpp"  // compiled once per instruction set
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "checks/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace trapline::simd::HWY_NAMESPACE {

#define TRAPLINE_EXTREMES(name, T) \
  Extremes<T> name(const T* data, std::size_t n) { return ExtremesOf(AsIs{}, data, n); }
TRAPLINE_EXTREMES(ExtremesU8, std::uint8_t)
TRAPLINE_EXTREMES(ExtremesI8, std::int8_t)
TRAPLINE_EXTREMES(ExtremesI16, std::int16_t)
TRAPLINE_EXTREMES(ExtremesI32, std::int32_t)
TRAPLINE_EXTREMES(ExtremesI64, std::int64_t)
#undef TRAPLINE_EXTREMES

#define TRAPLINE_ORDERED(name, T) \
  Extremes<T> name(const T* data, std::size_t n) { return ExtremesOf(Ordered{}, data, n); }
TRAPLINE_ORDERED(Ordered16, std::int16_t)
TRAPLINE_ORDERED(Ordered32, std::int32_t)
TRAPLINE_ORDERED(Ordered64, std::int64_t)
#undef TRAPLINE_ORDERED

#define TRAPLINE_EXTREMES_BUT(name, T)                                 \
  Extremes<T> name(const T* data, std::size_t n, T lo, T hi, T also) { \
    return ExtremesBut(data, n, lo, hi, also);                         \
  }
TRAPLINE_EXTREMES_BUT(ExtremesButU8, std::uint8_t)
TRAPLINE_EXTREMES_BUT(ExtremesButI8, std::int8_t)
TRAPLINE_EXTREMES_BUT(ExtremesButI16, std::int16_t)
TRAPLINE_EXTREMES_BUT(ExtremesButI32, std::int32_t)
TRAPLINE_EXTREMES_BUT(ExtremesButI64, std::int64_t)
#undef TRAPLINE_EXTREMES_BUT

bool AscendingI32(const std::int32_t* data, std::size_t n) { return Ascending(data, n); }
bool AscendingI64(const std::int64_t* data, std::size_t n) { return Ascending(data, n); }

}  // namespace trapline::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trapline::simd {

#define TRAPLINE_DISPATCH(name, T) \
  HWY_EXPORT(name);                \
  Extremes<T> extremes(const T* data, std::size_t n) { return HWY_DYNAMIC_DISPATCH(name)(data, n); }
TRAPLINE_DISPATCH(ExtremesU8, std::uint8_t)
TRAPLINE_DISPATCH(ExtremesI8, std::int8_t)
TRAPLINE_DISPATCH(ExtremesI16, std::int16_t)
TRAPLINE_DISPATCH(ExtremesI32, std::int32_t)
TRAPLINE_DISPATCH(ExtremesI64, std::int64_t)
#undef TRAPLINE_DISPATCH

#define TRAPLINE_DISPATCH_BUT(name, T)                                         \
  HWY_EXPORT(name);                                                            \
  Extremes<T> extremes_but(const T* data, std::size_t n, T lo, T hi, T also) { \
    return HWY_DYNAMIC_DISPATCH(name)(data, n, lo, hi, also);                  \
  }
TRAPLINE_DISPATCH_BUT(ExtremesButU8, std::uint8_t)
TRAPLINE_DISPATCH_BUT(ExtremesButI8, std::int8_t)
TRAPLINE_DISPATCH_BUT(ExtremesButI16, std::int16_t)
TRAPLINE_DISPATCH_BUT(ExtremesButI32, std::int32_t)
TRAPLINE_DISPATCH_BUT(ExtremesButI64, std::int64_t)
#undef TRAPLINE_DISPATCH_BUT

// Back from the order to the bits: the key is its own inverse.
template <class Bits, class Key>
Extremes<Bits> bits_of(const Extremes<Key>& keys) {
  const auto back = [](Key key) {
    return static_cast<Bits>(key < 0 ? key ^ std::numeric_limits<Key>::max() : key);
  };
  return {back(keys.min), back(keys.max), false};
}

HWY_EXPORT(Ordered16);
Extremes<std::uint16_t> bit_extremes(const std::uint16_t* bits, std::size_t n) {
  return bits_of<std::uint16_t>(
      HWY_DYNAMIC_DISPATCH(Ordered16)(reinterpret_cast<const std::int16_t*>(bits), n));
}
HWY_EXPORT(Ordered32);
Extremes<std::uint32_t> bit_extremes(const std::uint32_t* bits, std::size_t n) {
  return bits_of<std::uint32_t>(
      HWY_DYNAMIC_DISPATCH(Ordered32)(reinterpret_cast<const std::int32_t*>(bits), n));
}
HWY_EXPORT(Ordered64);
Extremes<std::uint64_t> bit_extremes(const std::uint64_t* bits, std::size_t n) {
  return bits_of<std::uint64_t>(
      HWY_DYNAMIC_DISPATCH(Ordered64)(reinterpret_cast<const std::int64_t*>(bits), n));
}

HWY_EXPORT(AscendingI32);
bool ascending(const std::int32_t* data, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(AscendingI32)(data, n);
}
HWY_EXPORT(AscendingI64);
bool ascending(const std::int64_t* data, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(AscendingI64)(data, n);
}

}  // namespace trapline::simd
#endif  // HWY_ONCE
