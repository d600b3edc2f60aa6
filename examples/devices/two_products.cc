// Exercise 4: two products one after the other on one GPU, and at once on two. The host only queues
// them, so two GPUs work at the same time without threads.
#include <rensa/array.h>

#include <cstdio>

#include "arguments.h"
#include "timing.h"

using namespace rensa;

int main(int argc, char** argv) {
  std::int64_t n;
  std::vector<Device> devices = Arguments("Two products on one device and on two", 2)
                                    .number("n", &n, 8192, 1024, "the order of the matrices")
                                    .parse(argc, argv);
  Device first = devices[0], second = devices[1];
  auto matrix = [&](Device device) { return xp::random::random({n, n}, float32, device); };
  Array a = matrix(first), b = matrix(first), c = matrix(second);
  double one = seconds({first}, [&] {
    (void)xp::matmul(a, a);
    (void)xp::matmul(b, b);
  });
  double two = seconds({first, second}, [&] {
    (void)xp::matmul(a, a);
    (void)xp::matmul(c, c);
  });
  std::printf("two products of order %lld: %.3f ms on %s\n", static_cast<long long>(n), one * 1e3,
              first.str().c_str());
  if (second == first) {
    std::printf("no second device was given to take one of them\n");
  } else {
    std::printf("%.3f ms on %s and %s: %.2f times as fast\n", two * 1e3, first.str().c_str(),
                second.str().c_str(), one / two);
  }
}
