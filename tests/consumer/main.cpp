// The same library from C++, with the C++ runtime of the consumer.
#include <trapline/capi.h>

#include <iostream>
#include <string>

int main() {
  std::cout << std::string(trapline_version()) << '\n';
  return 0;
}
