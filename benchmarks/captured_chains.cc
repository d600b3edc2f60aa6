// An activation made of elementwise operations (GELU by tanh), forward and backward: eager,
// captured as it was recorded, and captured with its chains as joint kernels.
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <cstdio>
#include <exception>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

Variable gelu(const Variable& x) {
  return 0.5f * x * (1 + F::tanh(0.7978846f * (x + 0.044715f * x * x * x)));
}

/// The result and the gradient of x, for a given gradient of the result.
Variables step(const Variables& in) {
  Variable x(in[0].array(), true);
  Variable y = gelu(x);
  y.set_grad(in[1].array());
  y.backward();
  return {constant(y.array()), constant(x.grad())};
}

void run(const Shape& shape, Device device) {
  Variables inputs{constant(xp::random::normal(0, 1, shape, float32, device)),
                   constant(xp::random::normal(0, 1, shape, float32, device))};
  int calls = shape.total() > 1 << 20 ? 10 : 200;
  std::string row = fmt::format("gelu and its gradient, {}", shape.str());
  double eager = benchmarks::median_seconds([&] { step(inputs); }, calls, device);
  benchmarks::print_figure(row + " rensa eager", eager * 1e6, "us");
  for (bool rewrite : {false, true}) {
    CaptureOptions options;
    options.rewrite = rewrite;
    CaptureCache cache(options);
    double seconds = benchmarks::median_seconds([&] { cache.call(step, inputs); }, calls, device);
    const CaptureStats& stats = cache.stats();
    benchmarks::print_figure(
        row + (rewrite ? " rensa captured, joined" : " rensa captured, apart"), seconds * 1e6, "us",
        fmt::format(", \"replays\": {}, \"operations\": {}, \"joined_operations\": {}, "
                    "\"rewritten_operations\": {}",
                    stats.replays, stats.operations, stats.joined_operations,
                    stats.rewritten_operations));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  Device device = argc > 1 ? Device(argv[1]) : try_gpu();
  xp::random::seed(1);
  for (const Shape& shape : {Shape{8192, 8192}, Shape{1024, 1000}, Shape{100, 1000}}) {
    run(shape, device);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
