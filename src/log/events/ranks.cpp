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
  static const RE2* const named = new RE2(R"re((?:\brank[ :=#]{0,12}|\[rank)(\d{1,6})(?:\b|\]))re", quiet());
  // torch.multiprocessing counts its processes as ranks; anywhere else the number behind "process" is a pid:
  // "Process 393 has 22.05 GiB memory in use", "Killing subprocess 13266".
  static const RE2* const spawned = new RE2(R"re(\bprocess (\d{1,6}) terminated with)re", quiet());
  const bool names = text.find("ank") != std::string_view::npos || text.find("ANK") != std::string_view::npos;
  const bool spawns = text.find(" terminated with") != std::string_view::npos;
  int rank = -1;
  const re2::StringPiece piece(text.data(), text.size());
  const bool found = (names && RE2::PartialMatch(piece, *named, &rank)) ||
                     (spawns && RE2::PartialMatch(piece, *spawned, &rank));
  return found && rank < kMaxRanks ? rank : -1;
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
