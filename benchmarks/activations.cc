// Activation functions, forward and backward apart, eagerly: 64 Mi elements of float32 on a GPU, 4
// Mi on a CPU; softmax over rows of 1024 of them; and a cell of an LSTM with as many numbers in its
// gates.
// benchmarks/peers/activations.py does the same in PyTorch.
//
//   activations [DEVICE]
#include <rensa/rensa.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <span>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

struct Activation {
  const char* name;
  std::function<Variable(const Variable&)> call;
};

const Activation kActivations[] = {
    {"relu", [](const Variable& x) { return F::relu(x); }},
    {"sigmoid", [](const Variable& x) { return F::sigmoid(x); }},
    {"tanh", [](const Variable& x) { return F::tanh(x); }},
    {"gelu", [](const Variable& x) { return F::gelu(x); }},
    {"softplus", [](const Variable& x) { return F::softplus(x); }},
    {"leaky_relu", [](const Variable& x) { return F::leaky_relu(x, 0.01); }},
    {"elu", [](const Variable& x) { return F::elu(x); }},
    {"selu", [](const Variable& x) { return F::selu(x); }},
    {"silu", [](const Variable& x) { return F::silu(x); }},
    {"hard_sigmoid", [](const Variable& x) { return F::hard_sigmoid(x); }},
};

const Activation kOfRows[] = {
    {"softmax", [](const Variable& x) { return F::softmax(x); }},
    {"log_softmax", [](const Variable& x) { return F::log_softmax(x); }},
};

class Activations {
 public:
  Activations(Device device, std::int64_t size) : device_(device), size_(size) {}

  void run() {
    each(kActivations, {size_});
    each(kOfRows, {size_ / 1024, 1024});
    lstm();
  }

 private:
  void each(std::span<const Activation> activations, const Shape& shape) {
    Variable x(numbers(shape));
    Array gy = numbers(shape);
    for (const Activation& activation : activations) {
      print(activation.name, "forward", [&] {
        no_backprop_mode off;
        (void)activation.call(x);
      });
      Variable y = activation.call(x);
      print(activation.name, "backward", [&] { (void)grad({y}, {x}, {constant(gy)}); });
    }
  }

  Array numbers(const Shape& shape) { return xp::random::normal(0, 1, shape, float32, device_); }

  void lstm() {
    constexpr std::int64_t kUnits = 1024;
    std::int64_t rows = size_ / (4 * kUnits);
    Variable c(numbers({rows, kUnits})), x(numbers({rows, 4 * kUnits}));
    Variable gc = constant(numbers({rows, kUnits})), gh = constant(numbers({rows, kUnits}));
    print("lstm cell", "forward", [&] {
      no_backprop_mode off;
      (void)F::lstm(c, x);
    });
    auto [next, h] = F::lstm(c, x);
    Variables y{next, h};
    print("lstm cell", "backward", [&] { (void)grad(y, {c, x}, {gc, gh}); });
  }

  template <class F> void print(const std::string& name, const char* way, F&& work) {
    double seconds = benchmarks::median_seconds(work, 20, device_);
    benchmarks::print_figure(name + ", " + way + " rensa", seconds * 1e6, "us");
  }

  Device device_;
  std::int64_t size_;
};

}  // namespace

int main(int argc, char** argv) try {
  Device device = argc > 1 ? Device(argv[1]) : try_gpu();
  Activations(device, std::int64_t{device.is_cpu() ? 4 : 64} << 20).run();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
