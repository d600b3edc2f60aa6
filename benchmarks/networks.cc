// Training steps of whole networks, eager and (on GPUs) captured, and inference with ResNet-50: of
// random batches that lie on the device, convolutions with the channels last unless asked
// otherwise, and the most memory in use. On the CPU a figure is of the median timing, and "least"
// of the least. fp32: float32. tf32: float32 with products in TF32. bf16: config().dtype is
// mixed_bf16, with float32 copies of the parameters in the optimizer.
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/mlp.h"
#include "benchmarks/timing.h"

namespace {

using namespace rensa;
using benchmarks::print_figure, benchmarks::sorted_seconds;

struct Options {
  Device device = cpu();
  int steps = 20;
  std::string precision = "tf32";
  bool eager = true;
  bool channels_last = true;
  bool branches = true;
  bool memory = false;
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

void report(const Work& work, const Options& options, const char* how,
            const std::array<double, 5>& seconds) {
  auto figure = [&](double s) { return work.unit == "us" ? s * 1e6 : work.amount / s; };
  print_figure(fmt::format("{} {} rensa {}", work.name, options.precision, how), figure(seconds[2]),
               work.unit.c_str(),
               options.device.is_cpu()
                   ? fmt::format(", \"least\": {:.4g}", figure(seconds[0]))
                   : fmt::format(", \"peak_gib\": {:.2f}", gibibytes_at_most(options.device)));
}

/// Prints who holds what at the peak of an eager step, which other steps came before.
void report_memory(const Work& work, const Options& options) {
  for (int i = 0; i < 2; ++i) (void)work.step(work.given);
  MemoryReport report(options.device);
  (void)work.step(work.given);
  fmt::print("{} {}: {:.2f} GiB are taken in a step, most at once\n{}\n", work.name,
             options.precision, static_cast<double>(report.peak_bytes()) / (1 << 30), report.str());
}

void measure(const Work& work, const Options& options) {
  if (!options.device.is_cpu()) cuda::memory_pool(options.device).reset_peaks();
  if (options.eager) {
    auto step = [&] { (void)work.step(work.given); };
    report(work, options, "eager", sorted_seconds(step, options.steps, options.device));
  }
  if (options.device.is_cpu()) return;
  cuda::memory_pool(options.device).free_all_blocks();
  cuda::memory_pool(options.device).reset_peaks();
  CaptureCache cache({.branches = options.branches});
  auto step = [&] { (void)cache.call(work.step, work.given); };
  report(work, options, "captured", sorted_seconds(step, options.steps, options.device));
  const CaptureStats stats = cache.stats();
  if (stats.replays == 0)
    fmt::print(stderr, "{} stayed eager: {}\n", work.name, stats.last_fallback);
  fmt::print(stderr, "{}: {} operations, {} after rewriting\n", work.name, stats.operations,
             stats.rewritten_operations);
}

Array images(const Shape& shape, const Options& options) {
  Array x = xp::random::normal(0, 1, shape, float32, options.device);
  if (!options.channels_last || shape.size() < 4) return x.astype(get_dtype(), {.copy = false});
  return F::channels_last(x).astype(get_dtype(), {.copy = false, .order = "K"});
}

Array labels(const Shape& shape, std::int64_t classes, const Options& options) {
  return xp::random::randint(0, classes, shape, int32, options.device);
}

/// Classification of images of the shape {batch, channels, size ...}.
template <class Net>
Work classification(const std::string& name, std::shared_ptr<Net> net, const Shape& shape,
                    std::int64_t classes, Optimizer made, const Options& options) {
  net->to(options.device);
  if (options.channels_last && shape.size() == 4) L::channels_last(*net);
  auto optimizer = std::make_shared<Optimizer>(std::move(made));
  optimizer->setup(*net).use_fp32_update();
  auto step = [net, optimizer](const Variables& in) {
    auto loss = [&](const Variable& x, const Variable& t) {
      return F::softmax_cross_entropy((*net)(x), t);
    };
    return Variables{optimizer->update(loss, in[0], in[1])};
  };
  const std::int64_t batch = shape[0];
  const char* layout = options.channels_last || shape.size() < 4 ? "" : ", channels first";
  return {fmt::format("{} B={}{}", name, batch, layout),
          options.device.is_cpu() ? "us" : "images/s",
          static_cast<double>(batch),
          step,
          {constant(images(shape, options)), labels({batch}, classes, options)}};
}

template <class Net>
Work training(const std::string& name, std::shared_ptr<Net> net, std::int64_t size,
              std::int64_t classes, const Options& options, std::int64_t batch = 128) {
  return classification(name, net, {batch, 3, size, size}, classes, optimizers::MomentumSGD(0.05),
                        options);
}

Work mlp(const Options& options) {
  return classification("mlp", std::make_shared<benchmarks::MLP>(), {100, 784}, 10,
                        optimizers::Adam(), options);
}

/// LeCun et al.'s network in the sizes that Caffe gave it.
struct LeNet : Chain<LeNet> {
  L::Convolution2D conv1{1, 20, 5}, conv2{20, 50, 5};
  L::Linear fc1{800, 500}, fc2{500, 10};
  void members(Visitor& v) override {
    v("conv1", conv1), v("conv2", conv2), v("fc1", fc1), v("fc2", fc2);
  }
  Variable operator()(const Variable& x) const {
    Variable h = F::max_pooling_2d(conv1(x), 2);
    return fc2(F::relu(fc1(F::max_pooling_2d(conv2(h), 2))));
  }
};

Work lenet(const Options& options) {
  return classification("lenet", std::make_shared<LeNet>(), {64, 1, 28, 28}, 10,
                        optimizers::MomentumSGD(0.01), options);
}

/// folded: with the batch normalizations in the weights of the convolutions before them.
Work inference(std::int64_t batch, bool folded, const Options& options) {
  auto net = std::make_shared<L::ResNet50Layers>(L::ResNetOptions::torchvision());
  net->to(options.device);
  L::channels_last(*net);
  if (folded) L::fold_batch_normalization(*net, constant(images({1, 3, 224, 224}, options)));
  auto step = [net](const Variables& in) {
    UsingConfig test(&Config::train, false), no_backprop(&Config::enable_backprop, false);
    return Variables{(*net)(in[0])};
  };
  return {fmt::format("resnet50 inference B={}{}", batch, folded ? " folded" : ""),
          "us",
          1,
          step,
          {constant(images({batch, 3, 224, 224}, options))}};
}

struct TextSizes {
  std::int64_t batch, length, words;  // words: of which the texts are
};

Work language_model(const std::string& name, const L::GPT2Options& net_options,
                    const TextSizes& sizes, const Options& options) {
  const std::int64_t words = net_options.vocab_size;
  auto net = std::make_shared<L::GPT2>(net_options);
  net->to(options.device);
  auto optimizer = std::make_shared<Optimizer>(optimizers::AdamW({.alpha = 1e-4}));
  optimizer->setup(*net).use_fp32_update();
  auto step = [net, optimizer, words](const Variables& in) {
    auto loss = [&](const Variable& x, const Variable& t) {
      return F::softmax_cross_entropy(F::reshape((*net)(x), {-1, words}), t);
    };
    return Variables{optimizer->update(loss, in[0], in[1])};
  };
  const std::int64_t tokens = sizes.batch * sizes.length;
  return {name,
          options.device.is_cpu() ? "us" : "tokens/s",
          static_cast<double>(tokens),
          step,
          {labels({sizes.batch, sizes.length}, sizes.words, options),
           labels({tokens}, sizes.words, options)}};
}

Work gpt2(const Options& options) {
  return language_model("gpt2-small", {.vocab_size = 50304, .dropout = 0}, {16, 1024, 50257},
                        options);
}

Work transformer(double dropout, const Options& options) {
  L::GPT2Options sizes{.vocab_size = 5000, .n_positions = 128, .n_embd = 256, .n_layer = 4};
  sizes.n_head = 4, sizes.dropout = dropout;
  return language_model(fmt::format("transformer dropout={}", dropout), sizes, {8, 128, 5000},
                        options);
}

/// Zaremba et al.'s models of Penn Treebank: two layers of LSTM.
struct LanguageModel : Chain<LanguageModel> {
  static constexpr std::int64_t kWords = 10000;
  L::EmbedID embed;
  L::NStepLSTM lstm;
  L::Linear out;
  State h, c;
  double dropout;
  LanguageModel(std::int64_t units, double ratio)
      : embed(kWords, units), lstm(2, units, units, ratio), out(units, kWords), dropout(ratio) {}
  void members(Visitor& v) override {
    v("embed", embed), v("lstm", lstm), v("out", out), v("h", h), v("c", c);
  }
  Variable operator()(const Variable& x, const Variable& t) {
    Variables xs = F::separate(F::dropout(embed(x), dropout), 0);
    F::NStepLSTMOutput y = lstm(h.value(), c.value(), xs);
    h = constant(y.hy.array()), c = constant(y.cy.array());
    return F::softmax_cross_entropy(out(F::dropout(F::concat(y.ys, 0), dropout)), t);
  }
};

/// Steps of `length` words in 20 texts.
Work recurrent(const std::string& name, std::int64_t units, double dropout, std::int64_t length,
               const Options& options) {
  auto net = std::make_shared<LanguageModel>(units, dropout);
  net->to(options.device);
  auto optimizer = std::make_shared<Optimizer>(optimizers::SGD(1.0));
  optimizer->setup(*net).use_fp32_update();
  optimizer->add_hook(optimizer_hooks::GradientClipping(5));
  auto step = [net, optimizer](const Variables& in) {
    return Variables{optimizer->update(*net, in[0], in[1])};
  };
  return {name,
          "us",
          1,
          step,
          {labels({20, length}, LanguageModel::kWords, options),
           labels({20 * length}, LanguageModel::kWords, options)}};
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
    {"mlp", mlp},
    {"lenet", lenet},
    {"resnet18",
     [](const Options& o) {
       auto net = std::make_shared<L::ResNet18Layers>(L::ResNetOptions::torchvision());
       return training("resnet18 112x112", net, 112, 1000, o, 16);
     }},
    {"inference1", [](const Options& o) { return inference(1, false, o); }},
    {"inference128", [](const Options& o) { return inference(128, false, o); }},
    {"inference1_folded", [](const Options& o) { return inference(1, true, o); }},
    {"inference128_folded", [](const Options& o) { return inference(128, true, o); }},
    {"gpt2", gpt2},
    {"transformer", [](const Options& o) { return transformer(0.1, o); }},
    {"transformer0", [](const Options& o) { return transformer(0, o); }},
    {"lstm", [](const Options& o) { return recurrent("small lstm", 200, 0, 20, o); }},
    {"ptb", [](const Options& o) { return recurrent("ptb lstm", 650, 0.5, 35, o); }},
};

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  std::string device = "cuda:0";
  std::vector<std::string> names;
  CLI::App app("Times training steps of whole networks, eager and captured.");
  std::vector<std::string> known;
  for (const auto& [name, make] : kNetworks) known.push_back(name);
  app.add_option("networks", names, "which")->check(CLI::IsMember(known))->required();
  app.add_option("--device", device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--precision", options.precision)->check(CLI::IsMember({"fp32", "tf32", "bf16"}));
  app.add_option("--steps", options.steps, "steps a timing")->capture_default_str();
  app.add_flag("!--channels-first", options.channels_last, "convolutions in NCHW");
  app.add_flag("!--no-eager", options.eager, "captured steps alone");
  app.add_flag("!--no-branches", options.branches, "captured work one after the other");
  app.add_flag("!--any-engine", config().cudnn_deterministic,
               "cuDNN's engines need not repeat their bits, as PyTorch's by default");
  app.add_flag("--memory", options.memory, "instead of times: who holds what at a step's peak");
  CLI11_PARSE(app, argc, argv);

  options.device = Device(device);
  if (options.device.is_cuda()) options.device.use();
  config().tf32 = options.precision != "fp32";
  if (options.precision == "bf16") config().dtype = mixed_bf16;
  const auto look = options.memory ? report_memory : measure;
  for (const std::string& name : names) look(kNetworks.at(name)(options), options);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
