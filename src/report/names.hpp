// The words of the schema for the enumerations of core/finding.hpp, in their order.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "core/finding.hpp"

namespace trapline {

template <class E>
struct Names;

template <>
struct Names<Certainty> {
  static constexpr std::array<std::string_view, 4> kWords = {"proven", "determined", "likely", "unknown"};
};
template <>
struct Names<Role> {
  static constexpr std::array<std::string_view, 2> kWords = {"root", "consequence"};
};
template <>
struct Names<Verdict> {
  static constexpr std::array<std::string_view, 3> kWords = {"fault", "clean", "unknown"};
};
template <>
struct Names<Command> {
  static constexpr std::array<std::string_view, 4> kWords = {"run", "explain", "check", "supervise"};
};

template <class E>
constexpr std::string_view name_of(E value) {
  return Names<E>::kWords[static_cast<std::size_t>(value)];
}

template <class E>
constexpr std::optional<E> find_name(std::string_view word) {
  for (std::size_t i = 0; i < Names<E>::kWords.size(); ++i) {
    if (Names<E>::kWords[i] == word) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace trapline
