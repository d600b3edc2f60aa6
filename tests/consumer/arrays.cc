// Arrays without networks.
#include <rensa/array.h>

#include <iostream>

using namespace rensa;

// One source for any device.
Array softplus(const Array& x) { return xp::maximum(0, x) + xp::log1p(xp::exp(-xp::abs(x))); }

int main() {
  Array a = xp::arange(6, float32).reshape({2, 3});
  Array b = xp::array({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  Array c = (a + 2 * b).sum(1);       // NumPy's broadcasting, dtype and axis rules
  a[{Slice(0, 1), Slice(1, 3)}] = 7;  // writes through a view
  std::cout << a << "\n" << c << "\n" << softplus(b) << "\n";

  Device device = try_gpu();  // the first GPU, or the CPU where there is none
  std::cout << softplus(b.to(device)).sum() << "\n";
  return c[0].item<float>() == 15 && a.sum().item<float>() == 26 ? 0 : 1;
}
