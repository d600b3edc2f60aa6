// Scans, selections and histograms on a GPU, ours beside CUB's: 64 Mi elements, microseconds a
// call. CUB's scratch lies ready; both make the number of what is selected known to the host, since
// an array has a size.
//
//   library_cub [DEVICE]
#include <cuda_runtime.h>

#include <thrust/iterator/counting_iterator.h>
#include <cstdint>
#include <cstdio>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <functional>
#include <string>

#include "benchmarks/hand_written.cuh"
#include "benchmarks/timing.h"
#include "rensa/array.h"

// Not at the top, where CUB's ::cuda is.
namespace rensa::benchmarks {

namespace {

constexpr std::int64_t kSize = std::int64_t{1} << 26;
constexpr int kCalls = 20;

struct Product {
  template <class T> __host__ __device__ T operator()(T a, T b) const { return a * b; }
};

class Bench {
 public:
  explicit Bench(Device device)
      : device_(device),
        stream_(static_cast<cudaStream_t>(cuda::current_stream(device).handle())),
        count_(xp::zeros({1}, int64, device)) {}

  void rensa(const std::string& work, const std::function<void()>& call) const {
    print(work, "rensa", call);
  }
  /// `call(scratch, bytes)` is CUB's way: without scratch it says how many bytes it wants.
  template <class F> void cub(const std::string& work, F&& call, bool counts = false) {
    std::size_t bytes = 0;
    CHECK(call(nullptr, bytes));
    Array scratch = xp::empty({static_cast<std::int64_t>(bytes) + 1}, uint8, device_);
    print(work, "cub", [&] {
      CHECK(call(scratch.data(), bytes));
      if (!counts) return;
      std::int64_t count = 0;
      CHECK(cudaMemcpyAsync(&count, count_.data(), sizeof count, cudaMemcpyDeviceToHost, stream_));
      CHECK(cudaStreamSynchronize(stream_));
    });
  }

  cudaStream_t stream() const { return stream_; }
  std::int64_t* count() const { return static_cast<std::int64_t*>(count_.data()); }

 private:
  void print(const std::string& work, const char* who, const std::function<void()>& call) const {
    double seconds = median_seconds(call, kCalls, device_);
    print_figure("beside CUB: " + work + " " + who, seconds * 1e6, "us");
  }

  Device device_;
  cudaStream_t stream_;
  Array count_;  // of what was selected
};

template <class T> T* data_of(const Array& a) { return static_cast<T*>(a.data()); }

template <class T> void scans(Bench& bench, const char* type, const Array& x) {
  Array out = xp::empty_like(x);
  const T* in = data_of<T>(x);
  bench.rensa(std::string("cumsum, ") + type, [&] { xp::cumsum(x, {.out = out}); });
  bench.cub(std::string("cumsum, ") + type, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(scratch, bytes, in, data_of<T>(out), kSize,
                                         bench.stream());
  });
  bench.rensa(std::string("cumprod, ") + type, [&] { xp::cumprod(x, {.out = out}); });
  bench.cub(std::string("cumprod, ") + type, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveScan(scratch, bytes, in, data_of<T>(out), Product(), kSize,
                                          bench.stream());
  });
}

void selections(Bench& bench, const Array& x, const Array& mask, const char* share) {
  Array out = xp::empty_like(x), places = xp::empty({kSize}, int64, x.device());
  const bool* flags = data_of<bool>(mask);
  std::string name = std::string("x[mask], ") + share;
  bench.rensa(name, [&] { (void)Array(x[mask]); });
  bench.cub(
      name,
      [&](void* scratch, std::size_t& bytes) {
        return cub::DeviceSelect::Flagged(scratch, bytes, data_of<const float>(x), flags,
                                          data_of<float>(out), bench.count(), kSize,
                                          bench.stream());
      },
      true);
  name = std::string("flatnonzero, ") + share;
  bench.rensa(name, [&] { (void)xp::flatnonzero(mask); });
  bench.cub(
      name,
      [&](void* scratch, std::size_t& bytes) {
        return cub::DeviceSelect::Flagged(
            scratch, bytes, thrust::counting_iterator<std::int64_t>(0), flags,
            data_of<std::int64_t>(places), bench.count(), kSize, bench.stream());
      },
      true);
}

void histograms(Bench& bench, const Array& x, int bins) {
  // Ours counts in 64 bits, as NumPy does.
  Array counts = xp::zeros({bins}, uint64, x.device());
  std::string name = "histogram, " + std::to_string(bins) + " bins";
  bench.rensa(name, [&] { (void)xp::histogram(x, bins, {.range = {{0.0, 1.0}}}); });
  bench.cub(name, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(scratch, bytes, data_of<const float>(x),
                                               data_of<unsigned long long>(counts), bins + 1, 0.0f,
                                               1.0f, static_cast<long long>(kSize), bench.stream());
  });
}

void run(Device device) {
  DeviceScope scope(device);
  xp::random::seed(1);
  Bench bench(device);
  Array x = xp::random::uniform(0, 1, {kSize}, float32, device);
  scans<float>(bench, "float32", x);
  scans<double>(bench, "float64", x.astype(float64));
  scans<std::int64_t>(bench, "int64", xp::random::randint(0, 8, {kSize}, int64, device));
  selections(bench, x, x < 0.5f, "half of it");
  selections(bench, x, x < 0.01f, "a hundredth");
  for (int bins : {10, 256, 1000, 100'000}) histograms(bench, x, bins);
  // What is CUB's already: what our side adds to it.
  Array sorted = xp::empty_like(x);
  bench.rensa("sort, float32", [&] { (void)xp::sort(x); });
  bench.cub("sort, float32", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(scratch, bytes, data_of<const float>(x),
                                          data_of<float>(sorted), kSize, 0, 32, bench.stream());
  });
}

}  // namespace

}  // namespace rensa::benchmarks

int main(int argc, char** argv) {
  rensa::benchmarks::run(rensa::Device(argc > 1 ? argv[1] : "cuda:0"));
  return 0;
}
