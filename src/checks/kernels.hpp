// The vector kernels behind scan.hpp: each runs once over contiguous elements, with the best instructions of
// this processor, and answers for the run as a whole. Where the answer is "something is bad", scan.cpp lets
// the scalar reference find the element; so a kernel never has to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trapline::simd {

template <class T>
struct Extremes {
  T min, max;
  bool bad;  // an element was rejected
};

// All of them need n > 0 and take pointers of any alignment.
Extremes<std::uint8_t> extremes(const std::uint8_t* data, std::size_t n);
Extremes<std::int8_t> extremes(const std::int8_t* data, std::size_t n);
Extremes<std::int16_t> extremes(const std::int16_t* data, std::size_t n);
Extremes<std::int32_t> extremes(const std::int32_t* data, std::size_t n);
Extremes<std::int64_t> extremes(const std::int64_t* data, std::size_t n);

// The bits of the least and the greatest of floating point numbers of that width. All formats are sign and
// magnitude, so integers order their bits; no rounding mode or flush-to-zero of the user's
// process plays a part. NaN lies beyond the infinities: if there is one, it is an extreme. -0.0 is less than
// 0.0.
Extremes<std::uint16_t> bit_extremes(const std::uint16_t* bits, std::size_t n);
Extremes<std::uint32_t> bit_extremes(const std::uint32_t* bits, std::size_t n);
Extremes<std::uint64_t> bit_extremes(const std::uint64_t* bits, std::size_t n);

// Rejects what is neither in [lo, hi] nor equal to `also`; min and max are of all elements.
Extremes<std::uint8_t> extremes_but(const std::uint8_t* data, std::size_t n, std::uint8_t lo, std::uint8_t hi,
                                    std::uint8_t also);
Extremes<std::int8_t> extremes_but(const std::int8_t* data, std::size_t n, std::int8_t lo, std::int8_t hi,
                                   std::int8_t also);
Extremes<std::int16_t> extremes_but(const std::int16_t* data, std::size_t n, std::int16_t lo, std::int16_t hi,
                                    std::int16_t also);
Extremes<std::int32_t> extremes_but(const std::int32_t* data, std::size_t n, std::int32_t lo, std::int32_t hi,
                                    std::int32_t also);
Extremes<std::int64_t> extremes_but(const std::int64_t* data, std::size_t n, std::int64_t lo, std::int64_t hi,
                                    std::int64_t also);

// No element is less than the one before it.
bool ascending(const std::int32_t* data, std::size_t n);
bool ascending(const std::int64_t* data, std::size_t n);

}  // namespace trapline::simd
