// HTTP, out of a module that is loaded when somebody wants it: the library behind it brings OpenSSL and two
// compressors along, which would cost every `trapline` 2 ms at its start.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/result.hpp"
#include "supervise/sockets.hpp"

namespace trapline::supervise {

struct HttpResponse {
  int status = 404;
  std::string type = "text/plain; charset=utf-8";
  std::string body = "not found\n";
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;  // stops serving, and waits for the answers that are under way
};

// Loads the module; an error says what is missing.
std::optional<Error> load_http();

// Answers GET requests by `answer(path)`, called on other threads. Nothing else is served. To be called after
// load_http().
Result<std::unique_ptr<HttpServer>> serve_http(const Address& address,
                                               std::function<HttpResponse(const std::string& path)> answer);

// The status of a GET request; 0 when there was none within `timeout` seconds. To be called after
// load_http().
int get_http(const Url& url, double timeout);

}  // namespace trapline::supervise
