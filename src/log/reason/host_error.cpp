#include "log/reason/host_error.hpp"

namespace trapline {

diagnose::HostError host_error_of(const Event& event, const EventContext& scene) {
  diagnose::HostError facts;
  const std::string_view last = std::string_view(event.exception).substr(event.exception.rfind('.') + 1);
  const bool is_known = !last.empty() && event.host->exceptions.find(last) != std::string_view::npos;
  facts.exception = is_known ? last : event.host->exceptions.substr(0, event.host->exceptions.find('|'));
  facts.message = event.host_message;
  if (scene.traceback == nullptr) return facts;
  if (const LogFrame* user = scene.traceback->deepest_user()) facts.call = user->frame.code;
  for (const LogFrame& frame : scene.traceback->frames) {
    facts.stack.push_back(frame.frame);
    facts.stack.back().user.reset();  // whose file it is is a guess in a log
  }
  return facts;
}

}  // namespace trapline
