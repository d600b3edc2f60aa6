// Many small operations and copies against one large: what each call costs besides its work.
#include <rensa/array.h>

#include <cstdio>
#include <functional>

#include "arguments.h"
#include "timing.h"

using namespace rensa;

int main(int argc, char** argv) {
  std::int64_t count = 1000, length = 1000;
  Device device = Arguments("Many small operations and copies against one large")
                      .number("count", &count, "operations")
                      .number("length", &length, "elements of each")
                      .parse(argc, argv)[0];
  Array a = xp::random::random({count, length}, float32, device);
  Array b = xp::random::random({count, length}, float32, device);
  Array host = a.to(cpu()), out = xp::empty_like(a);
  auto rows = [&](const std::function<void(std::int64_t)>& row) {
    return [&count, row] {
      for (std::int64_t i = 0; i < count; ++i) row(i);
    };
  };
  auto print = [&](const char* what, double many, double one) {
    std::printf("%-34s %9.3f ms  at once %9.3f ms  %6.1f times\n", what, many * 1e3, one * 1e3,
                many / one);
  };

  std::printf("%lld rows of %lld elements on %s\n", static_cast<long long>(count),
              static_cast<long long>(length), device.str().c_str());
  double many =
      seconds({device}, rows([&](std::int64_t i) { xp::add(a[i], b[i], {.out = out[i]}); }));
  print("sums of two rows", many, seconds({device}, [&] { xp::add(a, b, {.out = out}); }));
  bool equal = xp::array_equal(out, a + b);

  many = seconds({device}, rows([&](std::int64_t i) { out[i] = host[i].to(device); }));
  print("rows from main memory", many, seconds({device}, [&] { out.set(host); }));

  many = seconds({device}, rows([&](std::int64_t i) { (void)a[i].sum().item<float>(); }));
  print("each row's sum to the host", many,
        seconds({device}, [&] { (void)a.sum(1).to_vector<float>(); }));

  // Several operations on the same elements are grouped by fuse(), which makes one kernel of them.
  auto softplus = [](const Array& x) {
    return xp::maximum(0, x) + xp::log1p(xp::exp(-xp::abs(x)));
  };
  auto fused = fuse(softplus);
  print("softplus, operation by operation", seconds({device}, [&] { (void)softplus(a); }),
        seconds({device}, [&] { (void)fused(a); }));
  return equal && xp::allclose(fused(a), softplus(a)) ? 0 : 1;
}
