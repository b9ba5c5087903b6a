// Which launches of a stream have run. After each launch one event is recorded; every 64 launches it is put
// aside as a mark and another one takes its place, so that the slots before it can be freed while the stream
// runs on.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "cuda/process.hpp"

namespace trapline::cuda {

// CU_STREAM_PER_THREAD: the handle that means another stream in every thread.
inline const Handle kPerThreadStream = reinterpret_cast<Handle>(2);

class Stream {
 public:
  Stream(Device& device, Handle handle) : device_(device), handle_(handle) {}

  // Held while a launch is enqueued and counted, so that both have the same order.
  std::mutex& mutex() { return mutex_; }

  // Right after a launch, with the mutex held.
  void count_launch(std::int64_t slot);

  // Frees what is known to have run. Does nothing when another thread has the mutex.
  void recycle();

  // Waits for the launches so far without the mutex. False: a driver error.
  bool wait();

  Device& device() { return device_; }

 private:
  struct Mark {
    Handle event;
    std::vector<std::int64_t> slots;
  };

  void free_marks();
  bool has_run(Handle event);

  Device& device_;
  const Handle handle_;
  std::mutex mutex_;
  Handle event_ = nullptr;           // recorded after the last of since_
  std::vector<std::int64_t> since_;  // slots launched since the last mark
  std::deque<Mark> marks_;           // oldest first
};

// The stream of a handle: the same one for as long as the process lives.
Stream& stream_of(Device& device, Handle handle);

// Null when nothing was launched on it yet.
Stream* find_stream(const Device& device, Handle handle);

// Every stream that something was launched on.
std::vector<Stream*> all_streams();

}  // namespace trapline::cuda
