// What the statement at which an error surfaced, and the names around it, say about the cause.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cause.hpp"
#include "log/events/event.hpp"

namespace trapline {

enum class Statement : std::uint8_t {
  kUnknown,
  kLaunches,    // starts an operation that can assert: `op` names it
  kCannotFail,  // a copy, a synchronization, a collective, a concatenation: no such assertion exists there
  kReadsLoss,   // reads the loss back, or runs backward from it
  kInLoss,      // inside a loss function
  kEmbeds,      // calls or combines embeddings
  kIndexes,     // handles an index
};

struct SurfaceStatement {
  Statement statement = Statement::kUnknown;
  std::string_view op, argument;
  bool labels = false;        // its names speak of labels or classes
  bool only_classes = false;  // of these only the number of classes is named
  bool reads_back = false;    // waits for the device: the launch lies before it
};

// `lone_code`: a source line whose frame was lost; used when the traceback has none.
SurfaceStatement surface_of(const Traceback* traceback, std::string_view lone_code);

// The public operation that PyTorch's own deepest frames name: "linear", "nll_loss", "binary_cross_entropy"
// ...
std::string op_of_frames(const Traceback& traceback);

}  // namespace trapline
