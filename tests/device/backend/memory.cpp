// Device memory is host memory, handed out as PyTorch's caching allocator does: a freed block is reused at
// once, by the stream that it was allocated for; that stream runs its work in order. Blocks that another
// stream used (record_stream) are not reused at all.
#include <c10/core/Allocator.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "backend.hpp"

namespace fakedev {
namespace {

struct Block {
  void* address;
  std::size_t size;
  void* stream;
  bool foreign;
};

struct Pool {
  std::mutex mutex;
  std::map<std::pair<void*, std::size_t>, std::vector<Block*>> free;
  std::map<void*, Block*> used;
};

Pool& pool() {
  static auto* all = new Pool;
  return *all;
}

std::size_t rounded(std::size_t size) {
  std::size_t out = 64;
  while (out < size) out *= 2;
  return out;
}

void give_back(void* context) {
  auto* block = static_cast<Block*>(context);
  const std::lock_guard<std::mutex> lock(pool().mutex);
  pool().used.erase(block->address);
  if (!block->foreign) pool().free[{block->stream, block->size}].push_back(block);
}

Block* take(std::size_t size, void* stream) {
  const std::lock_guard<std::mutex> lock(pool().mutex);
  auto& list = pool().free[{stream, size}];
  Block* block = nullptr;
  if (!list.empty()) {
    block = list.back();
    list.pop_back();
  } else {
    block = new Block{std::aligned_alloc(64, size), size, stream, false};
  }
  pool().used[block->address] = block;
  return block;
}

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t size) override {
    check_context();
    Block* block = take(rounded(size), current_handle());
    return {block->address, block, &give_back, c10::Device(kDevice, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override { TORCH_CHECK(false, "not supported"); }
};

Memory g_memory;

}  // namespace

void use_on(const void* address, void* stream) {
  const std::lock_guard<std::mutex> lock(pool().mutex);
  const auto found = pool().used.find(const_cast<void*>(address));
  if (found != pool().used.end() && found->second->stream != stream) found->second->foreign = true;
}

c10::Allocator* memory() { return &g_memory; }

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &g_memory);

}  // namespace fakedev
