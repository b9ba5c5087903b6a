// Passes lines to the reasoner, and tells what is known while a live input stays open.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "log/line.hpp"
#include "log/reason/reasoner.hpp"

namespace trapline::cli {

// "so far TL101, likely: ..."; empty while there is nothing to say.
std::string first_word(const Report& report);

class LiveSink : public LineSink {
 public:
  // `say` gets a line each time the root cause, or how sure it is, has changed.
  // `grown` gets each report with findings, whether or not it says something new.
  LiveSink(
      Reasoner& reasoner, std::function<void(const std::string&)> say,
      std::function<void(const Report&)> grown = [](const Report&) {})
      : reasoner_(reasoner), say_(std::move(say)), grown_(std::move(grown)) {}

  void line(const Line& line) override;
  void end_of_source(std::string_view source, const SourceEnd& end) override;
  void quiet() override;

  const std::vector<std::string>& empty_sources() const { return empty_; }

 private:
  Reasoner& reasoner_;
  std::function<void(const std::string&)> say_;
  std::function<void(const Report&)> grown_;
  bool changed_ = false;
  std::string told_;
  std::vector<std::string> empty_;  // at most a few
};

}  // namespace trapline::cli
