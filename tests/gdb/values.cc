// What tools/check_gdb.py looks at in gdb.
#include "rensa/rensa.h"

using namespace rensa;

void values_are_there() { asm volatile(""); }

int main() {
  Array undefined, matrix = xp::arange(6, float32).reshape(2, 3), transposed = matrix.T(),
                   half = xp::array({1.5, -2.}, float16), brain = xp::array({1.5}, bfloat16),
                   complex = xp::array({std::complex<float>(1, -2)}), flags = matrix > 4,
                   number = xp::array(7), empty = xp::zeros({2, 0}), many = xp::arange(1000);
  auto row = matrix[1];
  auto chosen = matrix[flags];
  Shape shape = {2, 3}, one = {5};
  Dtype dtype = complex64;
  Device host = cpu(), device = gpu(3);
  Variable variable(matrix), none;
  values_are_there();
  (void)undefined, (void)row, (void)shape, (void)one, (void)dtype, (void)host, (void)device;
  return transposed.ndim() + chosen.ndim() == 0;
}
