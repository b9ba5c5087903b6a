#include "kernels.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda/kernels/check_body.hpp"
#include "cuda/kernels/mask_body.hpp"

namespace fakecuda {
namespace {

using namespace trapline::cuda;

// Blocks run one after the other in any order, as they may on a device.
template <class Value, void (*kBody)(const Block&, const CheckArgs&, Shared<Value>&)>
void run(const CheckArgs& args, unsigned blocks, std::minstd_rand& order) {
  std::vector<unsigned> indices(blocks);
  for (unsigned b = 0; b < blocks; ++b) indices[b] = b;
  std::shuffle(indices.begin(), indices.end(), order);
  const auto shared = std::make_unique<Shared<Value>>();
  for (const unsigned index : indices) {
    std::memset(static_cast<void*>(shared.get()), 0xCD, sizeof(*shared));  // shared memory begins as garbage
    kBody(Block{index, blocks}, args, *shared);
  }
}

struct Entry {
  const char* name;
  HostKernel kernel;
};

constexpr Entry kEntries[] = {
    {"trapline_index", run<std::int64_t, check_index>},
    {"trapline_padded", run<std::int64_t, check_padded>},
    {"trapline_offsets", run<std::int64_t, check_offsets>},
    {"trapline_numbers", run<double, check_numbers>},
    {"trapline_rows", run<double, check_rows>},
    {"trapline_sequences", run<std::int64_t, check_sequences>},
    {"trapline_mask", run<std::int64_t, check_mask>},
    {"trapline_compressed", run<std::int64_t, check_compressed>},
};

}  // namespace

HostKernel find_kernel(const char* name) {
  for (const Entry& entry : kEntries) {
    if (std::strcmp(entry.name, name) == 0) return entry.kernel;
  }
  return nullptr;
}

}  // namespace fakecuda
