// The module that serves and asks, loaded as the supervisor loads it.
#include "supervise/http.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace trapline::supervise {
namespace {

// A port that nobody has: another suite may run beside this one.
std::uint16_t free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(probe, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(probe);
  return ntohs(address.sin_port);
}

TEST(Http, EndsAServerThatHasHardlyBegun) {
  const auto problem = load_http();
  ASSERT_FALSE(problem) << problem->line();
  const Address address{"127.0.0.1", free_port(), ""};
  for (int i = 0; i < 300; ++i) {
    auto server = serve_http(address, [](const std::string&) { return HttpResponse{}; });
    ASSERT_TRUE(server) << server.error().line();
  }
}

}  // namespace
}  // namespace trapline::supervise
