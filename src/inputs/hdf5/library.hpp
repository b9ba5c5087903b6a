// What of libhdf5 is used everywhere: identifiers that are given back, and its last error in words.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

namespace trapline::inputs {

// A file, a group, a data set, a type: whatever it is, one reference to it.
class Id {
 public:
  Id() = default;
  explicit Id(hid_t id) : id_(id) {}
  ~Id() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, hid_t{-1})) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  explicit operator bool() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_ = -1;
};

// Its last error, in its innermost words: `libhdf5 1.10.8 says: "bad object header version number"`.
std::string library_says();

}  // namespace trapline::inputs
