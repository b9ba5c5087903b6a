#include "supervise/http.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "run/locate.hpp"
#include "supervise/http_module.h"

namespace trapline::supervise {
namespace {

const TraplineHttp* g_http = nullptr;  // set once, before there are threads

class Server : public HttpServer {
 public:
  explicit Server(std::function<HttpResponse(const std::string&)> answer) : answer_(std::move(answer)) {}
  ~Server() override {
    if (handle_ != nullptr) g_http->stop(handle_);
  }
  bool open(const Address& address) {
    handle_ = g_http->serve(address.host.c_str(), address.port, handle, this);
    return handle_ != nullptr;
  }

 private:
  static void handle(void* self, const char* path, void* response, TraplineHttpAnswer answer) {
    const HttpResponse out = static_cast<Server*>(self)->answer_(path);
    answer(response, out.status, out.type.c_str(), out.body.data(), out.body.size());
  }

  std::function<HttpResponse(const std::string&)> answer_;
  void* handle_ = nullptr;
};

}  // namespace

std::optional<Error> load_http() {
  if (g_http != nullptr) return std::nullopt;
  const auto installation = locate(this_executable());
  if (!installation) return installation.error();
  const auto file = installation->library.parent_path() / "libtrapline_http.so";
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{"--status and --probe need " + file.string(), ::dlerror(), "install it"};
  const auto entry = reinterpret_cast<TraplineHttpEntry>(::dlsym(library, "trapline_http"));
  if (entry == nullptr) return Error{file.string() + " is of another version", "", "install Trapline anew"};
  g_http = entry();
  return std::nullopt;
}

Result<std::unique_ptr<HttpServer>> serve_http(const Address& address,
                                               std::function<HttpResponse(const std::string&)> answer) {
  auto server = std::make_unique<Server>(std::move(answer));
  if (!server->open(address)) {
    return Error{fmt::format("cannot listen at {}", to_text(address)),
                 "the port is taken, or the address is not this machine's", "choose another"};
  }
  return std::unique_ptr<HttpServer>(std::move(server));
}

int get_http(const Url& url, double timeout) {
  return g_http->get(url.host.c_str(), url.port, url.path.c_str(), timeout);
}

}  // namespace trapline::supervise
