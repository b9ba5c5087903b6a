// A set of the enumerators of one enum (at most 64), as small as the flags that it replaces.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace trapline {

template <class E>
class EnumSet {
 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(E one) : bits_(bit(one)) {}  // NOLINT(google-explicit-constructor): one is a set
  constexpr EnumSet(std::initializer_list<E> all) {
    for (const E one : all) bits_ |= bit(one);
  }

  constexpr bool has(E one) const { return (bits_ & bit(one)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr EnumSet& operator|=(EnumSet other) {
    bits_ |= other.bits_;
    return *this;
  }
  friend constexpr EnumSet operator|(EnumSet a, EnumSet b) { return a |= b; }
  friend constexpr bool operator==(EnumSet, EnumSet) = default;

 private:
  static constexpr std::uint64_t bit(E one) { return std::uint64_t{1} << static_cast<unsigned>(one); }

  std::uint64_t bits_ = 0;
};

}  // namespace trapline
