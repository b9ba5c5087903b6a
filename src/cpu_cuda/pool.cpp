#include "cpu_cuda/pool.hpp"

#include <c10/core/alignment.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "cpu_cuda/device.hpp"

namespace trapline::cpu_cuda {
namespace {

struct PoolBlock {
  void* address;
  std::size_t size;
  c10::StreamId stream;
  bool foreign;  // another stream has used it
};

struct Pooled {
  std::mutex mutex;
  std::map<std::pair<c10::StreamId, std::size_t>, std::vector<PoolBlock*>> free;
  std::map<const void*, PoolBlock*> used;
};

Pooled& pooled() {
  static auto* all = new Pooled;  // tensors may outlive static objects
  return *all;
}

std::size_t rounded_up(std::size_t size) {
  std::size_t out = c10::gAlignment;
  while (out < size) out *= 2;
  return out;
}

void give_block_back(void* context) {
  auto* block = static_cast<PoolBlock*>(context);
  const std::lock_guard<std::mutex> lock(pooled().mutex);
  pooled().used.erase(block->address);
  if (!block->foreign) pooled().free[{block->stream, block->size}].push_back(block);
}

PoolBlock* take_block(std::size_t size, c10::StreamId stream) {
  const std::lock_guard<std::mutex> lock(pooled().mutex);
  auto& free = pooled().free[{stream, size}];
  PoolBlock* block = nullptr;
  if (free.empty()) {
    void* address = std::aligned_alloc(c10::gAlignment, size);
    TORCH_CHECK(address != nullptr, "trapline: --cpu: out of memory: ", size, " bytes");
    block = new PoolBlock{address, size, stream, false};
  } else {
    block = free.back();
    free.pop_back();
  }
  pooled().used[block->address] = block;
  return block;
}

struct Pool final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::Device(c10::kCPU)};
    PoolBlock* block = take_block(rounded_up(bytes), current_stream(current_device()));
    return {block->address, block, &give_block_back, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
};

Pool g_pool;

}  // namespace

c10::Allocator* pool() { return &g_pool; }

void use_on_stream(const void* address, c10::StreamId stream) {
  const std::lock_guard<std::mutex> lock(pooled().mutex);
  const auto found = pooled().used.find(address);
  if (found != pooled().used.end() && found->second->stream != stream) found->second->foreign = true;
}

}  // namespace trapline::cpu_cuda
