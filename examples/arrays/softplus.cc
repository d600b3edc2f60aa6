// softplus, log(1 + exp(x)), in three ways: one generic function for any device, the same function
// fused into one kernel, and a kernel of one's own.
#include <rensa/array.h>

#include <chrono>
#include <cstdio>

#include "arguments.h"

using namespace rensa;

static Array softplus(const Array& x) {
  return xp::maximum(0, x) + xp::log1p(xp::exp(-xp::abs(x)));
}

template <class F> static double milliseconds(Device device, F&& work) {
  auto wait = [&] {
    if (device.is_cuda()) cuda::synchronize(device);
  };
  work();
  wait();
  auto start = std::chrono::steady_clock::now();
  work();
  wait();
  std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count();
}

int main(int argc, char** argv) {
  std::int64_t size;
  Device device = Arguments("softplus in three ways")
                      .number("size", &size, std::int64_t{64} << 20, std::int64_t{8} << 20,
                              "elements of the array")
                      .parse(argc, argv)[0];
  auto fused = fuse(softplus);
  ElementwiseKernel own("T x", "T y", "y = max(T(0), x) + log1p(exp(-abs(x)))", "softplus");

  // It stays finite where exp(x) does not.
  Array extremes = xp::array({-1000.f, -1.f, 0.f, 1.f, 1000.f}, device);
  std::printf("%s\n%s\n", extremes.str().c_str(), softplus(extremes).str().c_str());

  Array x = xp::random::normal(0, 3, {size}, float32, device);
  double generic_ms = milliseconds(device, [&] { (void)softplus(x); });
  double fused_ms = milliseconds(device, [&] { (void)fused(x); });
  double own_ms = milliseconds(device, [&] { (void)own(x); });
  std::printf("%lld elements on %s\n", static_cast<long long>(size), device.str().c_str());
  std::printf("generic %9.3f ms\nfused   %9.3f ms\nkernel  %9.3f ms\n", generic_ms, fused_ms,
              own_ms);

  Array y = softplus(x);
  bool equal = xp::allclose(y, fused(x)) && xp::allclose(y, own(x));
  std::printf("the three agree: %s\n", equal ? "yes" : "no");
  return equal ? 0 : 1;
}
