// Array routines at 64 Mi float32 elements (8192 x 8192): bytes a second of the fewest that the
// work must move. An argument names the device.
#include <rensa/array.h>

#include <cstdio>
#include <exception>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

constexpr std::int64_t kSide = 8192;

// `bytes` moved by a call of `work`.
template <class F> void print_rate(const char* name, Device device, double bytes, F&& work) {
  int calls = device.is_cpu() ? 1 : 20;
  double seconds = benchmarks::median_seconds(work, calls, device);
  benchmarks::print_figure(std::string(name) + ", " + device.str(), bytes / seconds * 1e-9, "GB/s");
}

void run_copies(Device device) {
  for (Dtype dtype : {uint8, bfloat16, float32, float64, complex128}) {
    Array a = xp::ones({kSide, kSide}, dtype, device), out = xp::empty_like(a);
    auto bytes = static_cast<double>(a.nbytes());
    std::string name = "transposed copy, " + std::string(dtype_name(dtype));
    print_rate(name.c_str(), device, 2 * bytes, [&] { out.assign(a.T()); });
  }
  Array batch = xp::ones({64, 1024, 1024}, float32, device), out = xp::empty_like(batch);
  print_rate("transposed copies of 64 matrices", device, 2.0 * static_cast<double>(batch.nbytes()),
             [&] { out.assign(batch.swapaxes(1, 2)); });
}

void run_reductions(Device device) {
  Array a = xp::ones({kSide, kSide}, float32, device);
  auto bytes = static_cast<double>(a.nbytes());
  print_rate("sum of all", device, bytes, [&] { xp::sum(a); });
  print_rate("sum over axis 0", device, bytes, [&] { xp::sum(a, 0); });
  print_rate("sum over axis 1", device, bytes, [&] { xp::sum(a, 1); });
  print_rate("nanmax over axis 1", device, bytes, [&] { xp::nanmax(a, 1); });
  print_rate("count_nonzero", device, bytes, [&] { xp::count_nonzero(a); });
  // Twice over the input is what a stable variance needs.
  print_rate("var of all", device, 2 * bytes, [&] { xp::var(a); });
  print_rate("var over axis 1", device, 2 * bytes, [&] { xp::var(a, 1); });
}

void run_elementwise(Device device) {
  Array a = xp::ones({kSide * kSide}, float32, device), out = xp::empty_like(a);
  auto bytes = static_cast<double>(a.nbytes());
  print_rate("add into an output", device, 3 * bytes, [&] { xp::add(a, a, {.out = out}); });
  print_rate("round to one digit", device, 2 * bytes, [&] { xp::round(a, 1); });
  print_rate("nan_to_num", device, 2 * bytes, [&] { xp::nan_to_num(a); });
  Array z = xp::ones({kSide * kSide / 2}, complex64, device), result = xp::empty_like(z);
  print_rate("exp of complex64", device, 2 * bytes, [&] { xp::exp(z, {.out = result}); });
}

}  // namespace

int main(int argc, char** argv) try {
  Device device = argc > 1 ? Device(argv[1]) : try_gpu();
  run_copies(device);
  run_reductions(device);
  run_elementwise(device);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
