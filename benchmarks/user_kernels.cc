// Kernels compiled at run time beside the library's own: bytes per second of the fewest that the
// work must move, at 64 Mi float32 elements, and the host's cost of a small call.
#include <rensa/array.h>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

constexpr std::int64_t kSize = std::int64_t{64} << 20;
constexpr double kArrayBytes = 4.0 * kSize;

template <class F> void print_rate(const char* name, Device device, int arrays, F&& work) {
  int calls = device.is_cpu() ? 1 : 20;
  double seconds = benchmarks::median_seconds(work, calls, device);
  benchmarks::print_figure(std::string(name) + ", " + device.str(),
                           arrays * kArrayBytes / seconds * 1e-9, "GB/s");
}

Array plain_softplus(const Array& x) { return xp::maximum(0, x) + xp::log1p(xp::exp(-xp::abs(x))); }

/// A matrix read once, by xp::sum and by a ReductionKernel of the same.
void run_reductions(Device device) {
  ReductionKernel sum("T x", "T y", "x", "a + b", "y = a", "0", "sum_kernel");
  Array a = xp::ones({8192, kSize / 8192}, float32, device);
  const std::pair<const char*, Axes> cases[] = {{"all", Axes()}, {"axis 0", 0}, {"axis 1", 1}};
  for (const auto& [name, axis] : cases) {
    print_rate((std::string("sum, ") + name + ", by xp").c_str(), device, 1,
               [&] { (void)a.sum(axis); });
    print_rate((std::string("sum, ") + name + ", by ReductionKernel").c_str(), device, 1,
               [&] { sum(a, {.axis = axis}); });
  }
  auto norm = [](const Array& x) { return xp::sqrt(xp::sum(x * x, 1)); };
  auto fused_norm = fuse(norm);
  print_rate("norm of rows, eager", device, 1, [&] { norm(a); });
  print_rate("norm of rows, fused", device, 1, [&] { fused_norm(a); });
}

void run(Device device) {
  ElementwiseKernel add("T x, T y", "T z", "z = x + y", "add");
  ElementwiseKernel softplus("T x", "T y", "y = max(T(0), x) + log1p(exp(-abs(x)))", "softplus");
  Array a = xp::ones({kSize}, float32, device), b = xp::ones({kSize}, float32, device);
  Array out = xp::empty({kSize}, float32, device);
  print_rate("a + b by xp", device, 3, [&] { xp::elementwise(ufunc::add, {a, b}, &out); });
  print_rate("a + b by ElementwiseKernel", device, 3, [&] { add(a, b, out); });
  auto fused_softplus = fuse(plain_softplus);
  print_rate("softplus of the guide, eager", device, 2, [&] { plain_softplus(a); });
  print_rate("softplus of the guide, fused", device, 2, [&] { fused_softplus(a); });
  print_rate("softplus by ElementwiseKernel", device, 2, [&] { softplus(a, out); });
  ElementwiseKernel normalize("T x, T mean, T scale", "T y", "y = (x - mean) * scale", "normalize");
  Array rows = a.reshape({8192, kSize / 8192}), mean = xp::ones({8192, 1}, float32, device);
  Array scale = xp::ones({kSize / 8192}, float32, device);
  print_rate("(x - mean of the row) * scale, eager", device, 2,
             [&] { (void)((rows - mean) * scale); });
  print_rate("(x - mean of the row) * scale by ElementwiseKernel", device, 2,
             [&] { normalize(rows, mean, scale); });
  Array small = xp::ones({16}, float32, device);
  double seconds = benchmarks::median_seconds([&] { add(small, small); }, 3000, device);
  benchmarks::print_figure("host cost of a small ElementwiseKernel, " + device.str(), seconds * 1e6,
                           "us");
  seconds = benchmarks::median_seconds([&] { fused_softplus(small); }, 3000, device);
  benchmarks::print_figure("host cost of a small fused softplus, " + device.str(), seconds * 1e6,
                           "us");
  seconds = benchmarks::median_seconds([&] { plain_softplus(small); }, 3000, device);
  benchmarks::print_figure("host cost of a small eager softplus, " + device.str(), seconds * 1e6,
                           "us");
  run_reductions(device);
}

}  // namespace

int main(int argc, char** argv) try {
  run(argc > 1 ? Device(argv[1]) : try_gpu());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
