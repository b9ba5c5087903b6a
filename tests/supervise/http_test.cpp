// The module that serves and asks, loaded as the supervisor loads it.
#include "supervise/http.hpp"

#include <gtest/gtest.h>

namespace trapline::supervise {
namespace {

TEST(Http, EndsAServerThatHasHardlyBegun) {
  const auto problem = load_http();
  ASSERT_FALSE(problem) << problem->line();
  const Address address{"127.0.0.1", 18931, ""};
  for (int i = 0; i < 300; ++i) {
    auto server = serve_http(address, [](const std::string&) { return HttpResponse{}; });
    ASSERT_TRUE(server) << server.error().line();
  }
}

}  // namespace
}  // namespace trapline::supervise
