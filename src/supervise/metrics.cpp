// The figures that Prometheus scrapes, in its library's own words.
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "supervise/board.hpp"

namespace trapline::supervise {
namespace {

constexpr State kStates[] = {State::kStarting, State::kReady,   State::kUnwell, State::kPoisoned,
                             State::kEnding,   State::kWaiting, State::kStopped};

void add_gauge(prometheus::Registry& registry, const char* name, const char* help, double value) {
  prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({}).Set(value);
}

void add_counter(prometheus::Registry& registry, const char* name, const char* help, double value) {
  prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({}).Increment(value);
}

void add_counters(prometheus::Registry& registry, const char* name, const char* help, const char* label,
                  const std::map<std::string, std::int64_t>& values) {
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  for (const auto& [word, value] : values) family.Add({{label, word}}).Increment(static_cast<double>(value));
}

}  // namespace

std::string metrics_of(const Snapshot& now) {
  prometheus::Registry registry;
  auto& states = prometheus::BuildGauge()
                     .Name("trapline_state")
                     .Help("1 for the state that the program is in, 0 for the others.")
                     .Register(registry);
  for (const State state : kStates)
    states.Add({{"state", std::string(name_of(state))}}).Set(state == now.state ? 1 : 0);
  add_gauge(registry, "trapline_ready", "1 when requests should be sent to the program.",
            now.state == State::kReady ? 1 : 0);
  add_gauge(registry, "trapline_standby_ready", "1 when a second process waits for its turn.",
            now.standby_ready ? 1 : 0);
  add_gauge(registry, "trapline_refused_requests", "Requests that are refused because they caused a fault.",
            static_cast<double>(now.refused));
  add_gauge(registry, "trapline_start_time_seconds", "Unix time at which the supervisor was started.",
            now.started);
  if (now.last_to_ready)
    add_gauge(registry, "trapline_seconds_to_ready",
              "From the last fault to the next time that the program was ready.", *now.last_to_ready);
  add_counter(registry, "trapline_starts_total", "How often the program was started.",
              static_cast<double>(now.starts));
  add_counter(registry, "trapline_poisoned_seconds_total", "Time alive with a lost CUDA context.",
              now.poisoned_seconds);
  add_counter(registry, "trapline_unready_seconds_total", "Time not ready, whatever the reason.",
              now.unready_seconds);
  add_counter(registry, "trapline_output_bytes_total", "Output of the program that was passed through.",
              static_cast<double>(now.output_bytes));
  add_counters(registry, "trapline_faults_total", "Faults by cause (trapline why CODE).", "code", now.faults);
  add_counters(registry, "trapline_decisions_total", "What was decided after a fault.", "action",
               now.decisions);
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

}  // namespace trapline::supervise
