// The fake driver's streams, events, graphs and memory: everything behind the entry points.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace fakecuda {

using Operation = std::function<void()>;

enum : int {
  kOk = 0,
  kInvalidValue = 1,
  kInvalidContext = 201,
  kNotFound = 500,
  kNotReady = 600,
  kAssert = 710,
  kCaptureUnsupported = 900,
  kCapturedEvent = 907
};

// One line on stderr, and the end of the process.
[[noreturn]] void die(const char* format, ...) __attribute__((format(printf, 1, 2)));

struct Graph {
  std::vector<Operation> operations;
  // How its capture was begun: which threads' calls it forbids. As cudaStreamCaptureMode.
  int mode = 0;
  std::thread::id owner;
};

// A thread and its queue.
class Stream {
 public:
  explicit Stream(std::uint64_t number);
  void run();  // the body of its thread
  // While the stream captures, the operation goes into the graph. An operation that `runs_when_lost` is run
  // even after the context is lost: the end of an event must come.
  void enqueue(Operation operation, bool runs_when_lost = false);
  void wait_idle();
  bool is_idle();
  void retire();  // the thread ends when the queue is empty; it must not be used any more
  std::uint64_t number() const { return number_; }

  std::shared_ptr<Graph> graph;  // not null: captures. Guarded by Machine::mutex

 private:
  struct Item {
    Operation operation;
    bool runs_when_lost;
  };

  const std::uint64_t number_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  bool busy_ = false;
  bool retired_ = false;
};

struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0, completed = 0;
  bool captured = false;
};

struct Block {
  std::size_t bytes;
  bool mapped;  // host memory that the device sees
};

// One per process, leaked.
struct Machine {
  std::mutex mutex;
  std::map<void*, std::shared_ptr<Stream>> streams;  // by handle; null: the default stream
  std::map<void*, std::shared_ptr<Event>> events;
  std::map<std::uintptr_t, Block> memory;  // by address
  std::map<std::uintptr_t, std::size_t> freed;
  std::vector<std::shared_ptr<Graph>> graphs;
  std::vector<std::unique_ptr<const std::string>> modules;  // their PTX; they live as long as the context
  std::uint64_t next_number = 0;
  bool spoiled = false;  // a capture met a forbidden call

  std::atomic<std::uint64_t> seed{0};
  std::atomic<bool> lost{false};
  std::atomic<long> launches{0};

  // They die when there is no such thing.
  std::shared_ptr<Stream> stream(void* handle);
  std::shared_ptr<Event> event(void* handle);
  void* add_stream();
  std::vector<std::shared_ptr<Stream>> all_streams();
  void wait_idle();
};

Machine& machine();

// Dies when [address, address + bytes) touches memory that was freed.
void must_live(const void* address, std::size_t bytes, const char* what);
// Dies when it is not inside mapped memory.
void must_be_mapped(const void* address, std::size_t bytes, const char* what);

// The calling thread's capture mode, and whether it may now make a call that a capture forbids. If it may
// not, every capture is spoiled, as by the real driver in the mode GLOBAL.
int& capture_mode();
bool may_call_unsafe();

}  // namespace fakecuda
