// The letters of random names: files of the report folder, tokens of its socket.
#pragma once

#include <cstdint>
#include <string_view>

namespace trapline {

// Small ones and digits that look like no letter: 32, so that each is as likely as any other.
constexpr std::string_view kNameLetters = "abcdefghijklmnopqrstuvwxyz234567";
static_assert(kNameLetters.size() == 32);

constexpr char name_letter(std::uint64_t random) { return kNameLetters[random % kNameLetters.size()]; }

}  // namespace trapline
