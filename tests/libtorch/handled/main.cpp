// A program that catches its fault after it has done, to itself, what its argument says.
#include <ATen/ATen.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

int main(int, char** argv) {
  const at::Tensor weight = at::zeros({3, 2});
  const std::string what = argv[1];
  const rlimit none{0, 0};
  if (what == "no bytes") ::setrlimit(RLIMIT_FSIZE, &none);
  if (what == "no descriptors") ::setrlimit(RLIMIT_NOFILE, &none);
  if (what == "no environment") ::clearenv();
  try {
    at::embedding(weight, at::full({1}, 7, at::kLong));  // <- here
  } catch (const std::exception&) {
    std::fputs("caught\n", stdout);
  }
  return 0;
}
