#include "log/events/ranks.hpp"

#include <re2/re2.h>

#include <array>

namespace trapline {
namespace {

constexpr int kMaxRanks = 1'000'000;

RE2::Options quiet() {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  options.set_case_sensitive(false);
  return options;
}

struct Collective {
  std::string_view type, op;
};

// Longest names first: ALLREDUCE is the beginning of none, but REDUCE is the end of many.
constexpr std::array kCollectives = {
    Collective{"ALLREDUCE_COALESCED", "allreduce"},
    Collective{"ALLREDUCE", "allreduce"},
    Collective{"_ALLGATHER_BASE", "allgather"},
    Collective{"ALLGATHER", "allgather"},
    Collective{"_REDUCE_SCATTER_BASE", "reduce_scatter"},
    Collective{"REDUCE_SCATTER", "reduce_scatter"},
    Collective{"ALLTOALL_BASE", "alltoall"},
    Collective{"ALLTOALL", "alltoall"},
    Collective{"BROADCAST", "broadcast"},
    Collective{"BARRIER", "barrier"},
    Collective{"REDUCE", "reduce"},
    Collective{"GATHER", "gather"},
    Collective{"SCATTER", "scatter"},
    Collective{"SEND", "send"},
    Collective{"RECV", "recv"},
};

}  // namespace

int rank_in(std::string_view text) {
  static const RE2* const pattern =
      new RE2(R"re((?:\brank[ :=#]{0,12}|\[rank|process (?:group )?)(\d{1,6})(?:\b|\]))re", quiet());
  if (text.find("ank") == std::string_view::npos && text.find("ANK") == std::string_view::npos &&
      text.find("rocess ") == std::string_view::npos)
    return -1;
  int rank = -1;
  const re2::StringPiece piece(text.data(), text.size());
  return RE2::PartialMatch(piece, *pattern, &rank) && rank < kMaxRanks ? rank : -1;
}

std::string_view collective_in(std::string_view text) {
  const std::size_t at = text.find("OpType=");
  if (at == std::string_view::npos) return {};
  const std::string_view type = text.substr(at + 7);
  for (const Collective& collective : kCollectives) {
    if (type.starts_with(collective.type)) return collective.op;
  }
  return {};
}

}  // namespace trapline
