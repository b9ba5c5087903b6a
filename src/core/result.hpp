// Result<T>: a value, or an Error whose one line says what failed, why, and what to do.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace trapline {

struct Error {
  std::string what, why, fix;
  // "what: why: what to do"; commands print it after "trapline: ".
  std::string line() const {
    std::string text = what;
    if (!why.empty()) text += ": " + why;
    if (!fix.empty()) text += ": " + fix;
    return text;
  }
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  const T& operator*() const& { return value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<Error>(state_); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace trapline
