// The border between `trapline` and libtrapline_http.so: C, so that nothing of the library behind it shows.
#pragma once

#include <cstddef>

extern "C" {

// To be called once, with the parts of the answer, before the handler returns. `type` and `body` are copied.
using TraplineHttpAnswer = void (*)(void* response, int status, const char* type, const char* body,
                                    std::size_t size);
using TraplineHttpHandler = void (*)(void* context, const char* path, void* response,
                                     TraplineHttpAnswer answer);

struct TraplineHttp {
  // A server that runs, or nullptr when the address could not be had.
  void* (*serve)(const char* host, int port, TraplineHttpHandler handler, void* context);
  void (*stop)(void* server);
  // The status, or 0.
  int (*get)(const char* host, int port, const char* path, double timeout);
};

// The module's only symbol.
using TraplineHttpEntry = const TraplineHttp* (*)();
}
