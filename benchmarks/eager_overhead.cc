// What one small operation costs the host, queued and not waited for: an addition of 16 elements,
// and a product of 4 x 4 matrices.
#include <rensa/array.h>

#include "benchmarks/timing.h"

using namespace rensa;

int main(int argc, char** argv) {
  Device device = argc > 1 ? Device(argv[1]) : try_gpu();
  Array a = xp::ones({16}, float32, device);
  auto add = [&] { Array sum = a + a; };
  double seconds = benchmarks::median_seconds(add, 3000, device);
  benchmarks::print_figure("host cost of a small add, " + device.str() + " rensa", seconds * 1e6,
                           "us");
  Array matrix = a.reshape({4, 4});
  auto multiply = [&] { Array product = xp::matmul(matrix, matrix); };
  seconds = benchmarks::median_seconds(multiply, 3000, device);
  benchmarks::print_figure("host cost of a small product, " + device.str() + " rensa",
                           seconds * 1e6, "us");
}
