// Conjugate gradients for Poisson's equation on a square, -u'' = f with u = 0 at the border: the
// matrix is never formed, its product is a five-point stencil of views. The scalars of the
// iteration stay on the device; the host reads the residual every 50 iterations.
#include <rensa/array.h>

#include <chrono>
#include <cstdio>

#include "arguments.h"

using namespace rensa;

/// The stencil over the inside of `u`, whose outermost rows and columns are zero.
static Array laplacian(const Array& u) {
  Slice inside(1, -1), before(none, -2), after(2, none);
  Array out = xp::zeros_like(u);
  out[{inside, inside}] = 4 * u[{inside, inside}] - u[{before, inside}] - u[{after, inside}] -
                          u[{inside, before}] - u[{inside, after}];
  return out;
}

static Array product(const Array& a, const Array& b) { return (a * b).sum(); }

int main(int argc, char** argv) {
  std::int64_t n;
  Device device = Arguments("Conjugate gradients for Poisson's equation on a square")
                      .number("n", &n, 1024, 256, "points along a side")
                      .parse(argc, argv)[0];
  DeviceScope on(device);
  double h = 1.0 / static_cast<double>(n + 1);

  // f is chosen so that the solution is x (1 - x) y (1 - y), for which the stencil is exact.
  Array x = xp::linspace(0, 1, n + 2), bump = x * (1 - x);
  Array exact = bump.expand_dims(1) * bump;
  Array rhs = 2 * h * h * (bump.expand_dims(1) + bump);
  rhs[0] = 0;
  rhs[-1] = 0;
  rhs[{Slice(), 0}] = 0;
  rhs[{Slice(), -1}] = 0;

  auto start = std::chrono::steady_clock::now();
  Array u = xp::zeros_like(rhs), r = rhs.copy(), p = r.copy(), rr = product(r, r);
  double goal = 1e-20 * rr.item<double>();
  int iterations = 0;
  for (double residual = 2 * goal; residual > goal && iterations < 20000;) {
    for (int i = 0; i < 50; ++i, ++iterations) {
      Array ap = laplacian(p);
      Array alpha = rr / xp::maximum(product(p, ap), 1e-300);
      u += alpha * p;
      r -= alpha * ap;
      Array next = product(r, r);
      p = r + (next / xp::maximum(rr, 1e-300)) * p;
      rr = next;
    }
    residual = rr.item<double>();
    if (iterations % 500 == 0) std::printf("%6d iterations, residual %.1e\n", iterations, residual);
  }
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  double error = xp::abs(u - exact).max().item<double>();
  std::printf("%lld x %lld points on %s: %d iterations, %.3f s, greatest error %.2e\n",
              static_cast<long long>(n), static_cast<long long>(n), device.str().c_str(),
              iterations, elapsed.count(), error);
  return error < 1e-8 ? 0 : 1;
}
