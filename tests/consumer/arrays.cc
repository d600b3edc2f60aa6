// Arrays without networks, against an installed rensa::array.
#include <rensa/array.h>

#include <iostream>

using namespace rensa;

// The generic function of the Chainer guide: one source for any device.
Array softplus(const Array& x) { return xp::maximum(0, x) + xp::log1p(xp::exp(-xp::abs(x))); }

int main() {
  Array a = xp::arange(6, float32).reshape({2, 3});
  Array b = xp::array({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  Array c = (a + 2 * b).sum(1);       // NumPy's broadcasting, dtype and axis rules
  a[{Slice(0, 1), Slice(1, 3)}] = 7;  // writes through a view
  std::cout << a << "\n" << c << "\n" << softplus(b) << "\n";

  // A kernel of one's own, compiled now.
  ElementwiseKernel squared_diff("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_diff");
  std::cout << squared_diff(b, c.reshape({2, 1})) << "\n";
  ReductionKernel l2norm("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm");
  auto fast = fuse(softplus);  // one kernel instead of six
  std::cout << l2norm(b, {.axis = 1}) << "\n" << fast(b) << "\n";
  bool fine = xp::array_equal(fast(b), softplus(b)) && fast.kernels() == 1;
  fine &= squared_diff(b, c.reshape({2, 1})).max().item<float>() == 38 * 38;
  return fine && c[0].item<float>() == 15 && a.sum().item<float>() == 26 ? 0 : 1;
}
