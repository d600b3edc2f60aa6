// What one small operation costs the host, queued and not waited for: an addition of 16 elements,
// a product of 4 x 4 matrices, and views, which queue nothing.
#include <rensa/array.h>

#include <string>

#include "benchmarks/timing.h"

using namespace rensa;

int main(int argc, char** argv) {
  Device device = argc > 1 ? Device(argv[1]) : try_gpu();
  Array a = xp::ones({16}, float32, device), matrix = a.reshape({4, 4});
  auto time = [&](const char* what, int calls, auto&& call) {
    double seconds = benchmarks::median_seconds(call, calls, device);
    std::string name = std::string("host cost of ") + what + ", " + device.str() + " rensa";
    benchmarks::print_figure(name, seconds * 1e6, "us");
  };
  time("a small add", 3000, [&] { Array sum = a + a; });
  time("a small product", 3000, [&] { Array product = xp::matmul(matrix, matrix); });
  time("a slice", 100000, [&] { Array view = a[Slice(1, 5)]; });
  time("a row", 100000, [&] { Array view = matrix[1]; });
  time("a transposed view", 100000, [&] { Array view = matrix.T(); });
  time("a reshaped view", 100000, [&] { Array view = matrix.reshape({2, 8}); });
}
