#include "core/finding.hpp"

namespace trapline {

std::string to_text(const Variable& variable) {
  std::string text = variable.name;
  for (std::size_t i = 0; i < variable.index.size(); ++i) {
    text += (i == 0 ? "[" : ", ") + std::to_string(variable.index[i]);
  }
  return variable.index.empty() ? text : text + "]";
}

}  // namespace trapline
