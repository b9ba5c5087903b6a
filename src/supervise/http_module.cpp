// The only file that sees cpp-httplib.
#include "supervise/http_module.h"

#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace {

// Whoever holds a connection open holds one of these; probes must get through all the same.
constexpr std::size_t kThreads = 8;
constexpr time_t kTimeout = 2;                            // seconds
constexpr std::size_t kMaxBody = std::size_t{64} * 1024;  // of an answer to a probe

// Nothing of a page may load or run anything.
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

struct Server {
  httplib::Server http;
  std::thread thread;
  std::atomic<bool> ended{false};
};

void answer(void* response, int status, const char* type, const char* body, std::size_t size) {
  auto& out = *static_cast<httplib::Response*>(response);
  out.status = status;
  out.set_content(std::string(body, size), type);
}

void* serve(const char* host, int port, TraplineHttpHandler handler, void* context) {
  auto server = std::make_unique<Server>();
  httplib::Server& http = server->http;
  http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };  // the library owns it
  http.set_keep_alive_max_count(1);
  http.set_read_timeout(kTimeout, 0);
  http.set_write_timeout(kTimeout, 0);
  http.set_payload_max_length(1024);
  http.set_default_headers({{"Cache-Control", "no-store"},
                            {"X-Content-Type-Options", "nosniff"},
                            {"Content-Security-Policy", kPolicy}});
  http.Get(".*", [handler, context](const httplib::Request& request, httplib::Response& response) {
    handler(context, request.path.c_str(), &response, answer);
  });
  // The library would share the port with another server (SO_REUSEPORT); a port that is taken is an error.
  http.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  if (!http.bind_to_port(host, port)) return nullptr;
  server->thread = std::thread([raw = server.get()] {
    raw->http.listen_after_bind();
    raw->ended = true;
  });
  // A server that does not listen yet takes no notice of stop(), which would then wait for it for ever.
  while (!http.is_running() && !server->ended) std::this_thread::sleep_for(std::chrono::microseconds(100));
  return server.release();
}

void stop(void* handle) {
  const std::unique_ptr<Server> server(static_cast<Server*>(handle));
  server->http.stop();
  if (server->thread.joinable()) server->thread.join();
}

int get(const char* host, int port, const char* path, double timeout) {
  httplib::Client client(host, port);
  const auto seconds = static_cast<time_t>(timeout);
  const auto microseconds = static_cast<time_t>((timeout - static_cast<double>(seconds)) * 1e6);
  client.set_connection_timeout(seconds, microseconds);
  client.set_read_timeout(seconds, microseconds);
  client.set_write_timeout(seconds, microseconds);
  int status = 0;
  std::size_t left = kMaxBody;  // of a body without end no more is read
  client.Get(
      path,
      [&status](const httplib::Response& response) {
        status = response.status;
        return true;
      },
      [&left](const char*, std::size_t size) {
        left -= std::min(left, size);
        return left > 0;
      });
  return status;
}

constexpr TraplineHttp kHttp{serve, stop, get};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TraplineHttp* trapline_http() { return &kHttp; }
