// Array work that is bound by memory, by the bus or by the host, on one GPU: float32, 64 Mi
// elements unless said. GB/s are of the fewest bytes that the work must move.
// benchmarks/peers/arrays.py does the same in PyTorch and CuPy.
//
//   arrays [DEVICE]
#include <rensa/rensa.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

constexpr std::int64_t kSize = std::int64_t{64} << 20, kSide = 8192;
constexpr std::pair<const char*, UseTf32> kPrecisions[] = {
    {"float32", false}, {"TF32", true}, {"TF32 x 3", UseTf32::x3()}};

class ArrayWork {
 public:
  explicit ArrayWork(Device device) : device_(device) {}

  void run() {
    memory_bound();
    compute_bound();
    bus();
    many_small_products();
  }

 private:
  template <class F> double seconds(F&& work, int calls = 20) {
    return benchmarks::median_seconds(work, calls, device_);
  }
  // `arrays` times 64 Mi float32 elements pass through the memory.
  template <class F> void rate(const char* name, int arrays, F&& work, int calls = 20) {
    double bytes = 4.0 * static_cast<double>(kSize) * arrays;
    print(name, bytes / seconds(work, calls) * 1e-9, "GB/s");
  }
  void print(const std::string& name, double value, const char* unit) {
    benchmarks::print_figure(name + " rensa", value, unit);
  }

  void memory_bound() {
    Array a = xp::random::random({kSize}, float32, device_);
    Array b = xp::random::random({kSize}, float32, device_), out = xp::empty_like(a);
    Array square = a.reshape({kSide, kSide});
    rate("device copy", 2, [&] { out.assign(a); });
    rate("a + b", 3, [&] { xp::elementwise(ufunc::add, {a, b}, &out); });
    auto softplus = [](const Array& x) {
      return xp::maximum(0, x) + xp::log1p(xp::exp(-xp::abs(x)));
    };
    rate("softplus, eager", 2, [&] { softplus(a); });
    auto fused = fuse(softplus);
    rate("softplus, fused", 2, [&] { fused(a); });
    rate("sum of all", 1, [&] { (void)a.sum(); });
    rate("sum over axis 0", 1, [&] { (void)square.sum(0); });
    rate("sum over axis 1", 1, [&] { (void)square.sum(1); });
    rate("transposed copy", 2, [&] { (void)square.T().copy(); });
    rate("softmax over rows", 2, [&] { (void)xp::softmax(square); });
    rate("cumsum", 2, [&] { (void)xp::cumsum(a); });
    rate("normal random numbers", 1,
         [&] { (void)xp::random::normal(0, 1, {kSize}, float32, device_); });
    print("sort", static_cast<double>(kSize) / seconds([&] { (void)xp::sort(a); }, 3) * 1e-9,
          "Gkeys/s");
  }

  void compute_bound() {
    Array a = xp::random::normal(0, 1, {kSide, kSide}, float32, device_);
    double tera = 2e-12 * static_cast<double>(kSide) * static_cast<double>(kSide * kSide);
    for (auto [name, tf32] : kPrecisions) {
      UsingConfig how(&Config::tf32, tf32);
      print(std::string("matmul 8192, ") + name,
            tera / seconds([&] { (void)xp::matmul(a, a); }, 10), "TFLOP/s");
    }
    Array half = a.astype(bfloat16);
    print("matmul 8192, bfloat16", tera / seconds([&] { (void)xp::matmul(half, half); }, 10),
          "TFLOP/s");
    print_errors();
  }

  /// How far products of normal numbers are from those in float64, beside the products' own size:
  /// root mean squares.
  void print_errors() {
    constexpr std::int64_t kSmallSide = 2048;
    Array a = xp::random::normal(0, 1, {kSmallSide, kSmallSide}, float32, device_);
    Array wide = a.astype(float64), exact = xp::matmul(wide, wide);
    auto mean_square = [](const Array& x) { return xp::mean(x * x).item<double>(); };
    for (auto [name, tf32] : kPrecisions) {
      UsingConfig how(&Config::tf32, tf32);
      double square = mean_square(xp::matmul(a, a).astype(float64) - exact);
      print(std::string("error of matmul 2048, ") + name,
            std::sqrt(square / mean_square(exact)) * 1e7, "1e-7");
    }
  }

  void bus() {
    if (device_.is_cpu()) return;
    Array pageable = xp::ones({1000, 10000}, float64, cpu()), pinned = to_pinned_memory(pageable);
    Array on_gpu = xp::empty({1000, 10000}, float64, device_);
    cuda::Stream stream = cuda::current_stream(device_);
    double giga = static_cast<double>(pageable.nbytes()) * 1e-9;
    auto copy = [&](const char* name, auto&& work) { print(name, giga / seconds(work), "GB/s"); };
    copy("80 MB pinned, host to device", [&] { on_gpu.set(pinned, stream); });
    copy("80 MB pinned, device to host", [&] { on_gpu.get(pinned, stream); });
    copy("80 MB pageable, host to device", [&] { on_gpu.set(pageable); });
    copy("80 MB pageable, device to host", [&] { on_gpu.get(pageable, stream); });
  }

  // 1000 products of 100 x 100 whose Frobenius norms are logged.
  void many_small_products() {
    constexpr std::int64_t kCount = 1000;
    Array a = xp::random::normal(0, 1, {kCount, 100, 100}, float32, device_);
    Array b = xp::random::normal(0, 1, {100, 100}, float32, device_);
    auto norm_of = [&](const Array& whole, std::int64_t i) {
      return xp::linalg::norm(xp::matmul(whole[i], b));
    };
    auto log_norms = [&](const Variable& whole) {
      Array log = xp::empty({kCount}, float32, device_);
      for (std::int64_t i = 0; i < kCount; ++i) log[i] = norm_of(whole.array(), i);
      return Variable(log);
    };
    double each = seconds(
        [&] {
          for (std::int64_t i = 0; i < kCount; ++i) norm_of(a, i).item<float>();
        },
        1);
    print("1000 products with norm, each to the host", each * 1e3, "ms");
    Variable whole(a);
    double logged = seconds([&] { log_norms(whole); }, 1);
    print("1000 products with norm, log on the device", logged * 1e3, "ms");
    auto recorded = capture(log_norms);
    double replayed = seconds([&] { recorded(whole); }, 3);
    print("1000 products with norm, captured", replayed * 1e3, "ms");
  }

  Device device_;
};

}  // namespace

int main(int argc, char** argv) try {
  ArrayWork(argc > 1 ? Device(argv[1]) : try_gpu()).run();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
