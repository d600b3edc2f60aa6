// What one small operation costs the host: an addition of 16 elements, queued and not waited for.
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
}
