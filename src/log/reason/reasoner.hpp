// The reasoner: lines in, a report out. Pure: no I/O; its memory does not grow with the size of the input.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/finding.hpp"
#include "log/events/command.hpp"
#include "log/events/event_stream.hpp"
#include "log/line.hpp"

namespace trapline {

class Reasoner : public LineSink {
 public:
  Reasoner();
  ~Reasoner() override;
  Reasoner(const Reasoner&) = delete;
  Reasoner& operator=(const Reasoner&) = delete;

  void line(const Line& line) override;
  void end_of_source(std::string_view source, const SourceEnd& end) override;

  // What is known now. Lines may follow and finish() be called again. `at_end`: none will, so that the last
  // line tells how the log ends.
  Report finish(bool at_end = true);

 private:
  using Key = std::tuple<std::string, int, std::int64_t, std::string>;  // source, rank, pid, host

  EventStream& stream_of(const Line& line);
  void forget_lone_number();

  std::map<Key, std::unique_ptr<EventStream>> streams_;
  EventStream* latest_ = nullptr;
  CommandFinder commands_;
  std::vector<std::string> notes_;
  std::int64_t order_ = 0;
};

}  // namespace trapline
