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

/// The activation in the middle of a step: what it reads is there, and what it makes, the result
/// and the gradient of x, stays there.
struct Middle {
  Array x, gy, y, gx;
  Middle(const Shape& shape, Device device)
      : x(xp::random::normal(0, 1, shape, float32, device)),
        gy(xp::random::normal(0, 1, shape, float32, device)),
        y(xp::empty(shape, float32, device)),
        gx(xp::empty(shape, float32, device)) {}

  void eager() {
    Variable in(x, true), out = gelu(in);
    out.set_grad(gy);
    out.backward();
    y = out.array();
    gx = in.grad();
  }
  Variables captured(const Variables& tick) {
    Variable in(x, true), out = gelu(in);
    out.set_grad(gy);
    out.backward();
    y.assign(out.array());
    gx.assign(in.grad());
    return {tick[0] + 1};
  }
};

void run(const Shape& shape, Device device) {
  Middle middle(shape, device);
  Variables tick{constant(xp::zeros({1}, float32, device))};
  int calls = shape.total() > 1 << 20 ? 10 : 200;
  std::string row = fmt::format("gelu and its gradient, {}", shape.str());
  double eager = benchmarks::median_seconds([&] { middle.eager(); }, calls, device);
  benchmarks::print_figure(row + " rensa eager", eager * 1e6, "us");
  for (bool rewrite : {false, true}) {
    CaptureOptions options;
    options.rewrite = rewrite;
    CaptureCache cache(options);
    CaptureCache::Step step = [&](const Variables& in) { return middle.captured(in); };
    double seconds = benchmarks::median_seconds([&] { cache.call(step, tick); }, calls, device);
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
