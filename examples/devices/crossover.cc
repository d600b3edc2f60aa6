// Exercise 1: from which size on does the GPU multiply matrices faster than the CPU?
#include <rensa/array.h>

#include <cstdio>

#include "arguments.h"
#include "timing.h"

using namespace rensa;

static double product_seconds(std::int64_t n, Device device) {
  Array a = xp::random::random({n, n}, float32, device);
  Array b = xp::random::random({n, n}, float32, device);
  return seconds({device}, [&] { (void)xp::matmul(a, b); });
}

int main(int argc, char** argv) {
  std::int64_t largest, crossover = 0;
  Device device = Arguments("From which size on a GPU multiplies matrices faster than the CPU")
                      .number("largest", &largest, 8192, 2048, "the largest order")
                      .parse(argc, argv)[0];
  std::printf("%8s %14s %14s %8s\n", "n", "CPU (ms)", device.str().c_str(), "ratio");
  for (std::int64_t n = 16; n <= largest; n *= 2) {
    double host = product_seconds(n, cpu());
    double gpu = device.is_cuda() ? product_seconds(n, device) : host;
    std::printf("%8lld %14.4f %14.4f %8.2f\n", static_cast<long long>(n), host * 1e3, gpu * 1e3,
                host / gpu);
    std::fflush(stdout);
    if (crossover == 0 && gpu < host) crossover = n;
  }
  if (device.is_cpu()) std::printf("no GPU here: nothing to cross over to\n");
  else if (crossover == 0) std::printf("the CPU was faster at every size\n");
  else std::printf("the GPU is faster from n = %lld on\n", static_cast<long long>(crossover));
}
