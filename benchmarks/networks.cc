// Training steps of whole networks, eager and captured, and inference with ResNet-50: of random
// batches that lie on the device, convolutions with the channels last, and the most memory in use.
// tf32: float32 with products in TF32. bf16: config().dtype is mixed_bf16, with float32 copies of
// the parameters in the optimizer.
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;
using benchmarks::median_seconds, benchmarks::print_figure;

struct Options {
  Device device = cpu();
  int steps = 20;
  bool bf16 = false;
  bool eager = true;
  std::string precision() const { return bf16 ? "bf16" : "tf32"; }
};

double gibibytes_at_most(Device device) {
  if (device.is_cpu()) return 0;
  return static_cast<double>(cuda::memory_pool(device).peak_used_bytes()) / (1 << 30);
}

/// What is timed of one network: a step, and how much of `unit` it does.
struct Work {
  std::string name, unit;
  double amount;
  std::function<Variables(const Variables&)> step;
  Variables given;
};

void report(const Work& work, const Options& options, const char* how, double seconds) {
  double figure = work.unit == "us" ? seconds * 1e6 : work.amount / seconds;
  print_figure(fmt::format("{} {} rensa {}", work.name, options.precision(), how), figure,
               work.unit.c_str(),
               fmt::format(", \"peak_gib\": {:.2f}", gibibytes_at_most(options.device)));
}

void measure(const Work& work, const Options& options) {
  if (!options.device.is_cpu()) cuda::memory_pool(options.device).reset_peaks();
  if (options.eager) {
    auto step = [&] { (void)work.step(work.given); };
    report(work, options, "eager", median_seconds(step, options.steps, options.device));
  }
  if (options.device.is_cpu()) return;
  cuda::memory_pool(options.device).free_all_blocks();
  cuda::memory_pool(options.device).reset_peaks();
  CaptureCache cache;
  auto step = [&] { (void)cache.call(work.step, work.given); };
  report(work, options, "captured", median_seconds(step, options.steps, options.device));
  const CaptureStats stats = cache.stats();
  if (stats.replays == 0)
    fmt::print(stderr, "{} stayed eager: {}\n", work.name, stats.last_fallback);
  fmt::print(stderr, "{}: {} operations, {} after rewriting\n", work.name, stats.operations,
             stats.rewritten_operations);
}

Array images(std::int64_t n, std::int64_t size, const Options& options) {
  Array x = xp::random::normal(0, 1, {n, 3, size, size}, float32, options.device);
  return F::channels_last(x).astype(get_dtype(), {.copy = false, .order = "K"});
}

Array labels(const Shape& shape, std::int64_t classes, const Options& options) {
  return xp::random::randint(0, classes, shape, int32, options.device);
}

template <class Net>
Work training(const std::string& name, std::shared_ptr<Net> net, std::int64_t size,
              std::int64_t classes, const Options& options) {
  constexpr std::int64_t kBatch = 128;
  net->to(options.device);
  L::channels_last(*net);
  auto optimizer = std::make_shared<Optimizer>(optimizers::MomentumSGD(0.05));
  optimizer->setup(*net).use_fp32_update();
  auto step = [net, optimizer](const Variables& in) {
    auto loss = [&](const Variable& x, const Variable& t) {
      return F::softmax_cross_entropy((*net)(x), t);
    };
    return Variables{optimizer->update(loss, in[0], in[1])};
  };
  return {name + " B=128",
          "images/s",
          kBatch,
          step,
          {images(kBatch, size, options), labels({kBatch}, classes, options)}};
}

Work inference(std::int64_t batch, const Options& options) {
  auto net = std::make_shared<L::ResNet50Layers>(L::ResNetOptions::torchvision());
  net->to(options.device);
  L::channels_last(*net);
  auto step = [net](const Variables& in) {
    UsingConfig test(&Config::train, false), no_backprop(&Config::enable_backprop, false);
    return Variables{(*net)(in[0])};
  };
  return {
      fmt::format("resnet50 inference B={}", batch), "us", 1, step, {images(batch, 224, options)}};
}

Work gpt2(const Options& options) {
  constexpr std::int64_t kBatch = 16, kLength = 1024, kWords = 50304;
  auto net = std::make_shared<L::GPT2>(L::GPT2Options{.vocab_size = kWords, .dropout = 0});
  net->to(options.device);
  auto optimizer = std::make_shared<Optimizer>(optimizers::AdamW({.alpha = 1e-4}));
  optimizer->setup(*net).use_fp32_update();
  auto step = [net, optimizer](const Variables& in) {
    auto loss = [&](const Variable& x, const Variable& t) {
      return F::softmax_cross_entropy(F::reshape((*net)(x), {-1, kWords}), t);
    };
    return Variables{optimizer->update(loss, in[0], in[1])};
  };
  Shape shape{kBatch, kLength};
  return {"gpt2-small",
          "tokens/s",
          kBatch * kLength,
          step,
          {labels(shape, 50257, options), labels({kBatch * kLength}, 50257, options)}};
}

/// Zaremba et al.'s medium model of Penn Treebank: two layers of 650.
struct LanguageModel : Chain<LanguageModel> {
  static constexpr std::int64_t kWords = 10000, kUnits = 650;
  L::EmbedID embed{kWords, kUnits};
  L::NStepLSTM lstm{2, kUnits, kUnits, 0.5};
  L::Linear out{kUnits, kWords};
  State h, c;
  void members(Visitor& v) override {
    v("embed", embed), v("lstm", lstm), v("out", out), v("h", h), v("c", c);
  }
  Variable operator()(const Variable& x, const Variable& t) {
    Variables xs = F::separate(F::dropout(embed(x), 0.5), 0);
    F::NStepLSTMOutput y = lstm(h.value(), c.value(), xs);
    h = constant(y.hy.array()), c = constant(y.cy.array());
    return F::softmax_cross_entropy(out(F::dropout(F::concat(y.ys, 0), 0.5)), t);
  }
};

Work ptb(const Options& options) {
  auto net = std::make_shared<LanguageModel>();
  net->to(options.device);
  auto optimizer = std::make_shared<Optimizer>(optimizers::SGD(1.0));
  optimizer->setup(*net).use_fp32_update();
  optimizer->add_hook(optimizer_hooks::GradientClipping(5));
  auto step = [net, optimizer](const Variables& in) {
    return Variables{optimizer->update(*net, in[0], in[1])};
  };
  return {"ptb lstm",
          "us",
          1,
          step,
          {labels({20, 35}, 10000, options), labels({20 * 35}, 10000, options)}};
}

using Maker = std::function<Work(const Options&)>;
const std::map<std::string, Maker> kNetworks = {
    {"nin",
     [](const Options& o) { return training("nin", std::make_shared<L::NIN>(), 227, 1000, o); }},
    {"resnet50",
     [](const Options& o) {
       auto net = std::make_shared<L::ResNet50Layers>(L::ResNetOptions::torchvision());
       return training("resnet50", net, 224, 1000, o);
     }},
    {"vgg16",
     [](const Options& o) {
       auto net = std::make_shared<L::VGG16Layers>(L::VGGOptions::cifar());
       return training("vgg16-bn cifar", net, 32, 10, o);
     }},
    {"inference1", [](const Options& o) { return inference(1, o); }},
    {"inference128", [](const Options& o) { return inference(128, o); }},
    {"gpt2", gpt2},
    {"ptb", ptb},
};

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  std::string device = "cuda:0", precision = "tf32";
  std::vector<std::string> names;
  CLI::App app("Times training steps of whole networks, eager and captured.");
  std::vector<std::string> known;
  for (const auto& [name, make] : kNetworks) known.push_back(name);
  app.add_option("networks", names, "which")->check(CLI::IsMember(known))->required();
  app.add_option("--device", device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--precision", precision)->check(CLI::IsMember({"tf32", "bf16"}));
  app.add_option("--steps", options.steps, "steps a timing")->capture_default_str();
  app.add_flag("!--no-eager", options.eager, "captured steps alone");
  CLI11_PARSE(app, argc, argv);

  options.device = Device(device);
  options.bf16 = precision == "bf16";
  if (options.device.is_cuda()) options.device.use();
  config().tf32 = true;
  if (options.bf16) config().dtype = mixed_bf16;
  for (const std::string& name : names) measure(kNetworks.at(name)(options), options);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
