// Exercise 3: many small products whose norms are logged. Bringing each norm to the host waits for
// the device each time; a log on the device is brought over once, and the whole loop can be
// recorded.
#include <rensa/rensa.h>

#include <cstdio>

#include "arguments.h"
#include "timing.h"

using namespace rensa;

int main(int argc, char** argv) {
  std::int64_t count = 1000;
  Device device = Arguments("Many small products whose norms are logged")
                      .number("count", &count, "products")
                      .parse(argc, argv)[0];
  Array a = xp::random::normal(0, 1, {count, 100, 100}, float32, device);
  Array b = xp::random::normal(0, 1, {100, 100}, float32, device);
  auto norm_of = [&](std::int64_t i) { return xp::linalg::norm(xp::matmul(a[i], b)); };

  std::vector<float> each(static_cast<std::size_t>(count));
  auto to_the_host = [&] {
    for (std::int64_t i = 0; i < count; ++i) {
      each[static_cast<std::size_t>(i)] = norm_of(i).item<float>();
    }
  };
  Array log = xp::zeros({count}, float32, device);
  auto on_the_device = [&] {
    for (std::int64_t i = 0; i < count; ++i) log[i] = norm_of(i);
  };
  auto recorded = capture([&](const Variable& whole) {
    Array norms = xp::empty({count}, float32, device);
    for (std::int64_t i = 0; i < count; ++i) {
      norms[i] = xp::linalg::norm(xp::matmul(whole.array()[i], b));
    }
    return Variable(norms);
  });
  Variable whole(a), norms;
  for (int i = 0; i < 3; ++i) norms = recorded(whole);  // runs, then records

  std::int64_t before = cuda::sync_count();
  double host_seconds = seconds({device}, to_the_host);
  std::int64_t host_waits = cuda::sync_count() - before;
  double log_seconds = seconds({device}, on_the_device);
  double recorded_seconds = seconds({device}, [&] { norms = recorded(whole); });
  std::printf("%lld products on %s\n", static_cast<long long>(count), device.str().c_str());
  std::printf("each norm to the host     %8.3f ms, %lld waits for the device in two runs\n",
              host_seconds * 1e3, static_cast<long long>(host_waits));
  std::printf("log kept on the device    %8.3f ms\n", log_seconds * 1e3);
  std::printf("the same, captured        %8.3f ms\n", recorded_seconds * 1e3);

  std::vector<float> kept = log.to_vector<float>(), replayed = norms.array().to_vector<float>();
  for (std::size_t i = 0; i < each.size(); ++i) {
    if (each[i] != kept[i] || each[i] != replayed[i]) {
      std::printf("norm %zu differs: %g, %g, %g\n", i, each[i], kept[i], replayed[i]);
      return 1;
    }
  }
}
