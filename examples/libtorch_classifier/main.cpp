// A small classifier in C++ whose data has one class more than its last layer has outputs.
//
//   trapline run -- build/classifier          dies of the label
//   trapline run -- build/classifier --fixed  trains
#include <torch/torch.h>

#include <cstdio>
#include <cstring>

namespace {

struct Net : torch::nn::Module {
  explicit Net(int64_t classes) : hidden(4, 16), out(16, classes) {
    register_module("hidden", hidden);
    register_module("out", out);
  }
  torch::Tensor forward(const torch::Tensor& x) { return out(torch::relu(hidden(x))); }

  torch::nn::Linear hidden, out;
};

// Flowers: four measurements, and a species from 1 to 3.
torch::Tensor measurements(int64_t count) { return torch::randn({count, 4}); }
torch::Tensor species(int64_t count) { return torch::arange(count) % 3 + 1; }

float train(Net& net, const torch::Tensor& x, const torch::Tensor& y) {
  torch::optim::SGD optimizer(net.parameters(), 0.1);
  float last = 0;
  for (int epoch = 0; epoch < 5; ++epoch) {
    optimizer.zero_grad();
    const auto loss = torch::nn::functional::cross_entropy(net.forward(x), y);  // <- here
    loss.backward();
    optimizer.step();
    last = loss.item<float>();
  }
  return last;
}

}  // namespace

int main(int argc, char** argv) {
  const bool fixed = argc > 1 && std::strcmp(argv[1], "--fixed") == 0;
  torch::manual_seed(0);
  Net net(3);
  const auto x = measurements(30);
  const auto y = fixed ? species(30) - 1 : species(30);
  try {
    std::printf("loss %.3f\n", train(net, x, y));
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "training failed: %s\n", error.what());
    return 1;
  }
  return 0;
}
