// Exercise 4: two products one after the other on one GPU, and at once on two. The host only queues
// them, so two GPUs work at the same time without threads.
//
//   two_products [N]
#include <rensa/array.h>

#include <cstdio>
#include <cstdlib>

#include "timing.h"

using namespace rensa;

int main(int argc, char** argv) {
  std::int64_t n = argc > 1 ? std::atoll(argv[1]) : 8192;
  Device first = try_gpu(0), second = num_gpus() > 1 ? gpu(1) : first;
  auto matrix = [&](Device device) { return xp::random::random({n, n}, float32, device); };
  Array a = matrix(first), b = matrix(first), c = matrix(second);
  double one = seconds({first}, [&] {
    xp::matmul(a, a);
    xp::matmul(b, b);
  });
  double two = seconds({first, second}, [&] {
    xp::matmul(a, a);
    xp::matmul(c, c);
  });
  std::printf("two products of order %lld: %.3f ms on %s\n", static_cast<long long>(n), one * 1e3,
              first.str().c_str());
  if (second == first) {
    std::printf("there is no second GPU to take one of them\n");
  } else {
    std::printf("%.3f ms on %s and %s: %.2f times as fast\n", two * 1e3, first.str().c_str(),
                second.str().c_str(), one / two);
  }
}
