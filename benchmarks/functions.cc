// The functions of functions.def one by one, eagerly: forward, and forward with backward, of some
// 64 Ki numbers, where the host and the launches decide, and of many (16 Mi on a GPU, 1 Mi on the
// CPU), where memory does; in float32, and on a GPU in bfloat16. A figure is the least of five
// timings; beside it stands how many floating elements the function gave.
// benchmarks/peers/functions.py does the same in PyTorch.
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

/// The extents that the rows of functions.def name.
struct Extents {
  std::int64_t n, side, size, batch, samples, heads, length, steps, texts, hidden;
  std::int64_t units = 1024, channels = 64;
  std::int64_t rows = n / units, few = rows / 2;
  std::int64_t pixels = side * side, deep = pixels / 256, images = n / (channels * pixels);
};

constexpr std::int64_t kMi = 1 << 20;
Extents small() { return {kMi / 16, 32, 128, 64, 1, 4, 256, 8, 16, 64}; }
Extents large(Device device) {
  if (device.is_cpu()) return {kMi, 64, 512, 512, 1, 8, 512, 16, 16, 128};
  return {16 * kMi, 64, 4096, 4096, 8, 16, 1024, 32, 64, 512};
}

struct Options {
  std::string device, only, size, dtype;
};

// --- what functions give, as a list ---

Variables outputs(const Variable& y) { return {y}; }
Variables outputs(const Variables& ys) { return ys; }
Variables outputs(const std::pair<Variable, Variable>& y) { return {y.first, y.second}; }
Variables outputs(const std::pair<Variable, Array>& y) { return {y.first}; }
Variables outputs(const F::NStepOutput& y) {
  Variables all = y.ys;
  all.push_back(y.hy);
  return all;
}
Variables outputs(const F::NStepLSTMOutput& y) {
  Variables all = outputs(F::NStepOutput{y.hy, y.ys});
  all.push_back(y.cy);
  return all;
}

/// The rows of functions.def with operands of one size and dtype.
class Functions : Extents {
 public:
  Functions(const Options& options, std::string size_name, const Extents& extents, Dtype dtype)
      : Extents(extents),
        options_(options),
        suffix_(fmt::format(", {}, {}", size_name, dtype_name(dtype))),
        device_(options.device),
        dtype(dtype),
        other(dtype == float32 ? bfloat16 : float32) {}

  void run() {
#define RENSA_FUNCTION(name, operands, torch, ...)                                             \
  row(                                                                                         \
      name, [&] { return list operands; },                                                     \
      [&](const Variables& v) {                                                                \
        [[maybe_unused]] const Variable &a = v[0], &b = v[1], &c = v[2], &d = v[3], &e = v[4]; \
        return outputs(__VA_ARGS__);                                                           \
      });
#include "benchmarks/functions.def"
#undef RENSA_FUNCTION
  }

 private:
  // --- operands ---

  Variable number(const Array& x) const { return Variable(x.astype(dtype, {.copy = false})); }
  template <class... E> Variable normal(E... extents) const {
    return number(xp::random::normal(0, 1, {extents...}, float32, device_));
  }
  template <class... E> Variable uniform(E... extents) const {
    return number(xp::random::uniform(0.1, 0.9, {extents...}, float32, device_));
  }
  static Variable fixed(const Variable& x) { return constant(x.array()); }
  template <class... E> Variable integers(std::int64_t high, E... extents) const {
    return constant(xp::random::randint(0, high, {extents...}, int64, device_));
  }
  template <class... E> Variable mask(E... extents) const {
    return constant(integers(2, extents...).array().astype(bool_));
  }
  template <class... E> Variable places(E... extents) const { return integers(4, extents...); }

  /// Of one layer hx and cx, then the sequences' elements of each time, then the weights and the
  /// biases of each direction.
  Variables recurrent(const std::string& kind, std::int64_t directions) const {
    const std::int64_t gates = kind == "LSTM" ? 4 : kind == "GRU" ? 3 : 1;
    Variables all;
    for (int i = 0; i < 2; ++i) all.push_back(normal(directions, texts, hidden));
    for (int i = 0; i < steps; ++i) all.push_back(normal(texts, hidden));
    for (int i = 0; i < 2 * gates * directions; ++i) all.push_back(normal(hidden, hidden));
    for (int i = 0; i < 2 * gates * directions; ++i) all.push_back(normal(hidden));
    return all;
  }
  Variables sequences(const Variables& v) const { return {v.begin() + 2, v.begin() + 2 + steps}; }
  F::WeightLists weights(const Variables& v, std::ptrdiff_t directions) const {
    return halves_behind(v, 0, directions);
  }
  F::WeightLists biases(const Variables& v, std::ptrdiff_t directions) const {
    return halves_behind(v, 1, directions);
  }
  /// Of what stands behind the sequences the first or the second half, a list for each direction.
  F::WeightLists halves_behind(const Variables& v, int half, std::ptrdiff_t directions) const {
    auto first = v.begin() + 2 + steps;
    const std::ptrdiff_t count = (v.end() - first) / (2 * directions);
    first += half * count * directions;
    F::WeightLists lists;
    for (; directions > 0; --directions, first += count) lists.emplace_back(first, first + count);
    return lists;
  }

  static void append(Variables& all, const Variable& v) { all.push_back(v); }
  static void append(Variables& all, const Variables& v) {
    all.insert(all.end(), v.begin(), v.end());
  }
  template <class... V> static Variables list(const V&... operands) {
    Variables all;
    (append(all, operands), ...);
    if (all.size() < 5) all.resize(5);
    return all;
  }

  // --- timing ---

  using Call = std::function<Variables(const Variables&)>;

  void row(const std::string& name, const std::function<Variables()>& operands, const Call& call) {
    if (name.find(options_.only) == std::string::npos) return;
    try {
      if (device_.is_cuda()) cuda::memory_pool(device_).free_all_blocks();
      measure("function " + name + suffix_, operands(), call);
    } catch (const std::exception& error) {
      fmt::print("{}{} in Rensa: {}\n", name, suffix_, error.what());
      std::fflush(stdout);
    }
  }

  void measure(const std::string& name, const Variables& v, const Call& call) {
    std::int64_t elements = 0;
    for (const Variable& y : call(v)) elements += dtype_kind(y.dtype()) == 'f' ? y.size() : 0;
    print(name + ", forward", elements, [&] {
      no_backprop_mode off;
      (void)call(v);
    });
    Variables x, gy;
    for (const Variable& operand : v) {
      if (operand.defined() && operand.requires_grad()) x.push_back(operand);
    }
    for (const Variable& y : with_gradients(call(v))) {
      gy.push_back(constant(xp::random::normal(0, 1, y.shape(), float32, device_)
                                .astype(y.dtype(), {.copy = false})));
    }
    if (gy.empty()) return;
    print(name + ", both", elements, [&] { (void)grad(with_gradients(call(v)), x, gy); });
  }

  static Variables with_gradients(Variables ys) {
    std::erase_if(ys, [](const Variable& y) { return !y.requires_grad(); });
    return ys;
  }

  /// So many calls a timing that it takes 3 ms.
  template <class F> void print(const std::string& name, std::int64_t elements, F&& work) {
    const double once = benchmarks::sorted_seconds(work, 1, device_, 2)[0];
    const int calls = static_cast<int>(std::clamp(0.003 / once, 1.0, 200.0));
    const double seconds = benchmarks::sorted_seconds(work, calls, device_, 0)[0];
    benchmarks::print_figure(name + (config().cudnn_deterministic ? " rensa" : " rensa any engine"),
                             seconds * 1e6, "us", fmt::format(", \"elements\": {}", elements));
  }

  const Options& options_;
  std::string suffix_;
  Device device_;
  Dtype dtype, other;  // what the operands are, and what cast() makes of them
};

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  options.device = try_gpu().str();
  CLI::App app("Times the functions of F one by one, forward and with backward.");
  app.add_option("device", options.device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--only", options.only, "rows whose names contain this");
  app.add_option("--size", options.size)->check(CLI::IsMember({"small", "large"}));
  app.add_option("--dtype", options.dtype)->check(CLI::IsMember({"float32", "bfloat16"}));
  app.add_flag("!--any-engine", config().cudnn_deterministic,
               "cuDNN's engines need not repeat their bits, as PyTorch's by default");
  CLI11_PARSE(app, argc, argv);

  const Device device(options.device);
  const DeviceScope scope(device);
  std::vector<Dtype> dtypes{float32};
  if (device.is_cuda()) dtypes.push_back(bfloat16);
  if (!options.dtype.empty()) dtypes = {options.dtype == "float32" ? float32 : bfloat16};
  for (Dtype dtype : dtypes) {
    if (options.size != "large") Functions(options, "small", small(), dtype).run();
    if (options.size != "small") Functions(options, "large", large(device), dtype).run();
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
