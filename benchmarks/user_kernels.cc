// Kernels compiled at run time beside the library's own: bytes a second of the fewest that the work
// must move, at 64 Mi float32 elements, and the host's cost of a small call.
#include <rensa/array.h>

#include <cstdio>
#include <exception>

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

void run(Device device) {
  ElementwiseKernel add("T x, T y", "T z", "z = x + y", "add");
  ElementwiseKernel softplus("T x", "T y", "y = max(T(0), x) + log1p(exp(-abs(x)))", "softplus");
  Array a = xp::ones({kSize}, float32, device), b = xp::ones({kSize}, float32, device);
  Array out = xp::empty({kSize}, float32, device);
  print_rate("a + b by xp", device, 3, [&] { xp::elementwise(Ufunc::add, {a, b}, &out); });
  print_rate("a + b by ElementwiseKernel", device, 3, [&] { add(a, b, out); });
  print_rate("softplus of the guide, eager", device, 2,
             [&] { xp::maximum(0, a) + xp::log1p(xp::exp(-xp::abs(a))); });
  print_rate("softplus by ElementwiseKernel", device, 2, [&] { softplus(a, out); });
  Array small = xp::ones({16}, float32, device);
  double seconds = benchmarks::median_seconds([&] { add(small, small); }, 3000, device);
  benchmarks::print_figure("host cost of a small ElementwiseKernel, " + device.str(), seconds * 1e6,
                           "us");
}

}  // namespace

int main(int argc, char** argv) try {
  run(argc > 1 ? Device(argv[1]) : try_gpu());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
