#include "supervise/sockets.hpp"

#include <gtest/gtest.h>

namespace trapline::supervise {
namespace {

std::string read_back(const char* text) {
  const auto address = read_address(text, "--listen");
  return address ? to_text(*address) : address.error().line();
}

TEST(Sockets, Addresses) {
  EXPECT_EQ(read_back("8000"), "127.0.0.1:8000");
  EXPECT_EQ(read_back("0.0.0.0:80"), "0.0.0.0:80");
  EXPECT_EQ(read_back("localhost:65535"), "localhost:65535");
  EXPECT_EQ(read_back("[::1]:8000"), "[::1]:8000");
  EXPECT_EQ(read_back("unix:/run/app.sock"), "unix:/run/app.sock");
  for (const char* wrong :
       {"", "0", "65536", "8000x", ":8000", "::1:8000", "[::1]", "unix:", "host:", "-1"}) {
    EXPECT_FALSE(read_address(wrong, "--listen")) << wrong;
  }
  EXPECT_EQ(read_back("host:"),
            "--listen must be a port, HOST:PORT or unix:PATH, not 'host:': e.g. --listen 127.0.0.1:8000");
}

TEST(Sockets, Urls) {
  const auto url = read_url("http://127.0.0.1:8000/healthz?full=1", "--probe");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "127.0.0.1");
  EXPECT_EQ(url->port, 8000);
  EXPECT_EQ(url->path, "/healthz?full=1");
  EXPECT_EQ(read_url("http://localhost", "--probe")->port, 80);
  EXPECT_EQ(read_url("http://localhost", "--probe")->path, "/");
  for (const char* wrong :
       {"", "https://a/", "ftp://a", "http://", "http://:80/", "http://a:0/", "http://a/b c", "8000"}) {
    EXPECT_FALSE(read_url(wrong, "--probe")) << wrong;
  }
}

TEST(Sockets, APortIsHadOnce) {
  // A port that is free now; nobody promises that it stays so, but nobody here takes it either.
  Address address;
  for (address.port = 28731; address.port < 28831; ++address.port) {
    const auto first = listen_at(address);
    if (!first) continue;
    const auto second = listen_at(address);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().line(),
              "cannot listen at " + to_text(address) +
                  ": Address already in use: choose another port, or end the program that has it");
    return;
  }
  FAIL() << "no port is free";
}

}  // namespace
}  // namespace trapline::supervise
