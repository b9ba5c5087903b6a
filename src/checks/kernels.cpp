#include "checks/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "checks/kernels.cpp"  // compiled once per instruction set
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "checks/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace trapline::simd::HWY_NAMESPACE {

#define TRAPLINE_EXTREMES(name, T) \
  Extremes<T> name(const T* data, std::size_t n) { return ExtremesOf(data, n); }
TRAPLINE_EXTREMES(ExtremesU8, std::uint8_t)
TRAPLINE_EXTREMES(ExtremesI8, std::int8_t)
TRAPLINE_EXTREMES(ExtremesI16, std::int16_t)
TRAPLINE_EXTREMES(ExtremesI32, std::int32_t)
TRAPLINE_EXTREMES(ExtremesI64, std::int64_t)
#undef TRAPLINE_EXTREMES

#define TRAPLINE_BITS(name, T) \
  Extremes<hwy::MakeUnsigned<T>> name(const T* bits, std::size_t n) { return BitExtremes(bits, n); }
TRAPLINE_BITS(Bits16, std::int16_t)
TRAPLINE_BITS(Bits32, std::int32_t)
TRAPLINE_BITS(Bits64, std::int64_t)
#undef TRAPLINE_BITS

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

#define TRAPLINE_DISPATCH_BITS(name, T)                                                      \
  HWY_EXPORT(name);                                                                          \
  Extremes<T> bit_extremes(const T* bits, std::size_t n) {                                   \
    return HWY_DYNAMIC_DISPATCH(name)(reinterpret_cast<const hwy::MakeSigned<T>*>(bits), n); \
  }
TRAPLINE_DISPATCH_BITS(Bits16, std::uint16_t)
TRAPLINE_DISPATCH_BITS(Bits32, std::uint32_t)
TRAPLINE_DISPATCH_BITS(Bits64, std::uint64_t)
#undef TRAPLINE_DISPATCH_BITS

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
