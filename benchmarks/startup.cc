// The shortest program with a result on a device: `startup add cuda:0` or `startup product cuda:0`
// prints one number and ends. Whoever starts it takes the time.
#include <rensa/array.h>

#include <cstdio>
#include <string_view>

using namespace rensa;

int main(int argc, char** argv) {
  bool product = argc > 1 && std::string_view(argv[1]) == "product";
  Device device = argc > 2 ? Device(argv[2]) : try_gpu();
  Array a = xp::ones({128, 128}, float32, device);
  Array result = product ? xp::matmul(a, a) : a + a;
  std::printf("%g\n", result[{0, 0}].item<double>());
}
