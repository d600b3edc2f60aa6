// Attention, forward and forward with backward: on a GPU bfloat16 with 16 heads of 8 samples, on a
// CPU float32 with 8 heads of one, unless another dtype is named. Beside the time stands what it
// comes to in the products that forward needs (two) and backward (five), of a causal one half of
// them. benchmarks/peers/attention.py does the same in PyTorch.
//
//   attention [DEVICE [always | automatic | never [DTYPE]]]   (config().use_cudnn)
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <cstdio>
#include <exception>
#include <string>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

struct Work {
  std::int64_t length, width;
  bool causal;
};

class Attentions {
 public:
  Attentions(Device device, Dtype dtype)
      : device_(device),
        batch_(device.is_cpu() ? 1 : 8),
        heads_(device.is_cpu() ? 8 : 16),
        dtype_(dtype) {}

  void run() {
    for (std::int64_t length : {1024, 4096}) {
      if (device_.is_cpu() && length > 1024) continue;
      for (std::int64_t width : {64, 128}) {
        for (bool causal : {false, true}) both_ways({length, width, causal});
      }
    }
  }

 private:
  void both_ways(const Work& work) {
    Variables x;
    for (int i = 0; i < 3; ++i) x.emplace_back(numbers(work));
    Variable gy = constant(numbers(work));
    auto attend = [&] {
      return F::scaled_dot_product_attention(x[0], x[1], x[2], {.causal = work.causal});
    };
    print(work, "forward", 2, [&] {
      no_backprop_mode off;
      (void)attend();
    });
    print(work, "both", 7, [&] { (void)grad({attend()}, x, {gy}); });
  }

  Array numbers(const Work& work) {
    // As a layer has them: heads inside of rows.
    Shape shape{batch_, work.length, heads_, work.width};
    return xp::random::normal(0, 1, shape, float32, device_).astype(dtype_).swapaxes(1, 2);
  }

  template <class F> void print(const Work& work, const char* way, double products, F&& f) {
    double seconds = benchmarks::median_seconds(f, device_.is_cpu() ? 2 : 20, device_);
    double length = static_cast<double>(work.length), width = static_cast<double>(work.width);
    double count = 2 * products * static_cast<double>(batch_ * heads_) * length * length * width;
    std::string name = fmt::format("attention L={} D={}{}, {} rensa", work.length, work.width,
                                   work.causal ? " causal" : "", way);
    benchmarks::print_figure(
        name, seconds * 1e6, "us",
        fmt::format(", \"tflops\": {:.1f}", count / (work.causal ? 2 : 1) / seconds / 1e12));
  }

  Device device_;
  std::int64_t batch_, heads_;
  Dtype dtype_;
};

}  // namespace

int main(int argc, char** argv) try {
  std::string use = argc > 2 ? argv[2] : "automatic";
  config().use_cudnn = use == "always"  ? UseCudnn::always
                       : use == "never" ? UseCudnn::never
                                        : UseCudnn::automatic;
  Device device = argc > 1 ? Device(argv[1]) : try_gpu();
  Dtype usual = device.is_cpu() ? float32 : bfloat16;
  Attentions(device, argc > 3 ? parse_dtype(argv[3]) : usual).run();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
