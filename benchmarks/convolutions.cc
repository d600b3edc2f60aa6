// Convolutions of two axes, eagerly: forward, and each gradient apart, in C order and with the
// channels last; and forward with a bias and relu, eagerly and captured.
// benchmarks/peers/convolutions.py does the same in PyTorch.
//
//   convolutions [DEVICE [autotune]]
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <cstdio>
#include <exception>
#include <string>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

/// peers/convolutions.py has the same ones.
struct Work {
  std::int64_t channels, extent, filters, kernel, stride, pad, groups;
};
const Work kWorks[] = {
    {3, 224, 64, 7, 2, 3, 1},    {64, 56, 64, 3, 1, 1, 1},  {128, 28, 128, 3, 1, 1, 1},
    {256, 14, 256, 3, 1, 1, 1},  {512, 7, 512, 3, 1, 1, 1}, {64, 56, 128, 3, 2, 1, 1},
    {256, 56, 64, 1, 1, 0, 1},   {64, 56, 128, 1, 2, 0, 1}, {256, 28, 256, 3, 1, 1, 256},
    {128, 28, 128, 3, 1, 1, 32}, {20, 12, 50, 5, 1, 0, 1},
};

void measure(const Work& work, bool last, Device device) {
  const std::int64_t batch = device.is_cpu() ? 8 : 128;
  auto numbers = [&](const Shape& shape) {
    Array a = xp::random::normal(0, 1, shape, float32, device);
    return last ? F::channels_last(a) : a;
  };
  Array x = numbers({batch, work.channels, work.extent, work.extent});
  Array W = numbers({work.filters, work.channels / work.groups, work.kernel, work.kernel});
  Variable b(xp::random::normal(0, 1, {work.filters}, float32, device));
  auto y_of = [&](const Variable& vx, const Variable& vW, const Variable& vb) {
    return F::convolution_2d(vx, vW, vb,
                             {.stride = work.stride, .pad = work.pad, .groups = work.groups});
  };
  auto print = [&](const char* way, auto&& call) {
    double seconds = benchmarks::median_seconds(call, device.is_cpu() ? 10 : 50, device);
    benchmarks::print_figure(
        fmt::format("convolution {} x {}^2, {} of {}^2{}{}, {}, {} rensa", work.channels,
                    work.extent, work.filters, work.kernel, work.stride == 1 ? "" : " by 2",
                    work.groups == 1 ? "" : fmt::format(" in {} groups", work.groups),
                    last ? "channels last" : "C order", way),
        seconds * 1e6, "us");
  };
  print("forward", [&] {
    no_backprop_mode off;
    (void)y_of(x, W, {});
  });
  print("forward with bias and relu", [&] {
    no_backprop_mode off;
    (void)F::relu(y_of(x, W, b));
  });
  auto step = capture([&](const Variable& in) { return F::relu(y_of(in, constant(W), b)); });
  print("captured forward with bias and relu", [&] {
    no_backprop_mode off;
    (void)step(x);
  });
  Variable gy = constant(numbers(y_of(x, W, {}).shape()));
  Variable of_x(x), of_W(W), y = y_of(of_x, constant(W), {}), z = y_of(constant(x), of_W, {});
  print("input gradient", [&] { (void)grad({y}, {of_x}, {gy}); });
  print("weight gradient", [&] { (void)grad({z}, {of_W}, {gy}); });
}

}  // namespace

int main(int argc, char** argv) try {
  Device device(argc > 1 ? argv[1] : "cuda:0");
  if (device.is_cuda()) device.use();
  config().autotune = argc > 2 && std::string(argv[2]) == "autotune";
  for (const Work& work : kWorks) {
    for (bool last : {false, true}) measure(work, last, device);
  }
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
