// A log as bytes, taken the whole way: reader, prefilter, reasoner.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string_view>

#include "log/read/reader.hpp"
#include "log/reason/reasoner.hpp"

namespace trapline {

inline Report explain_bytes(std::string_view bytes) {
  const int file = ::memfd_create("log", MFD_CLOEXEC);
  EXPECT_EQ(::write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ::lseek(file, 0, SEEK_SET);
  Reasoner reasoner;
  LogReader reader(reasoner);
  reader.read_stream(file, "job.log");
  ::close(file);
  return reasoner.finish();
}

// The root; a case without one fails where it is used.
inline Finding root_of(std::string_view bytes) {
  const Report report = explain_bytes(bytes);
  return report.findings.empty() ? Finding{} : report.findings.front();
}

}  // namespace trapline
