#include "supervise/options.hpp"

namespace trapline::supervise {

Result<Settings> settings_of(const Wishes& wishes) {
  Settings out;
  for (const std::string& text : wishes.listen) {
    const auto address = read_address(text, "--listen");
    if (!address) return address.error();
    out.listen.push_back(*address);
  }
  if (wishes.status) {
    const auto address = read_address(*wishes.status, "--status");
    if (!address) return address.error();
    out.status = *address;
  }
  if (wishes.probe) {
    const auto url = read_url(*wishes.probe, "--probe");
    if (!url) return url.error();
    out.probe = *url;
  }
  out.probe_interval = wishes.probe_interval.value_or(out.probe_interval);
  out.probe_timeout = wishes.probe_timeout.value_or(out.probe_timeout);
  out.probe_failures = wishes.probe_failures.value_or(out.probe_failures);
  out.stall = wishes.stall;
  out.grace = wishes.grace.value_or(out.grace);
  out.standby = wishes.standby;
  out.replaces_process = wishes.replace == "process";
  Policy& policy = out.policy;
  policy.restarts = wishes.restarts.value_or(policy.restarts);
  policy.window = wishes.window.value_or(policy.window);
  policy.delay = wishes.delay.value_or(policy.delay);
  policy.max_delay = std::max(policy.delay, wishes.max_delay.value_or(policy.max_delay));
  policy.is_service = !out.listen.empty() || out.probe.has_value();
  policy.decisions = wishes.decisions;
  return out;
}

}  // namespace trapline::supervise
