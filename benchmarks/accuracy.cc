// Trains a network on real data by a file that peers/accuracy.py wrote, which has the samples,
// their order, the learning rates and the initial parameters, and prints how it does on the samples
// to test with. bf16: config().dtype is mixed_bf16, with float32 copies of the parameters in the
// optimizer.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rensa/rensa.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

struct Options {
  Device device = cpu();
  std::string file, precision = "fp32";
  bool captured = false;
};

/// What the file has but the initial parameters.
struct Task {
  Task(const xp::NpzFile& file, Device device)
      : train_x(file.get("train_x", device)),
        train_t(file.get("train_t", device)),
        test_x(file.get("test_x", device)),
        test_t(file.get("test_t", device)),
        order(file.get("order", device)),
        rates(file.get("rates", cpu())),
        classes(file["classes"].item<std::int64_t>()),
        batch(file["batch"].item<std::int64_t>()),
        images(file.contains("mean")) {
    if (images) mean = file.get("mean", device), std = file.get("std", device);
    if (file.contains("mirrored")) mirrored = file.get("mirrored", device);
  }
  /// Samples as a network takes them, those of images mirrored where `flags`, if there are any, say
  /// so.
  Variable inputs(const Array& samples, const Array& flags = {}) const {
    if (!images) return constant(samples);
    Array x = (samples.astype(float32) - mean) / std;
    if (flags.defined()) x = xp::where(flags.reshape({-1, 1, 1, 1}), xp::flip(x, 3), x);
    if (x.device().is_cuda()) x = F::channels_last(x);
    return constant(x.astype(get_dtype(), {.copy = false, .order = "K"}));
  }

  Array train_x, train_t, test_x, test_t;
  Array order, mirrored;  // (epochs, samples)
  Array mean, std;        // of the pixels
  Array rates;            // of each epoch
  std::int64_t classes, batch;
  bool images;
};

/// A network, its scores of inputs, and what its parameters are called in the file.
struct Work {
  std::shared_ptr<Link> net;
  std::function<Variable(const Variable&)> scores;
  serializers::Naming names;
};

template <class Net> Work work(Net made, serializers::Naming names = serializers::pytorch_names()) {
  auto net = std::make_shared<Net>(std::move(made));
  return {net, [net](const Variable& x) { return (*net)(x); }, std::move(names)};
}

/// LeCun et al.'s network with max pooling and rectifiers, as Caffe's example has it.
struct LeNet : Chain<LeNet> {
  L::Convolution2D conv1{1, 20, 5}, conv2{20, 50, 5};
  L::Linear fc1{800, 500}, fc2{500, 10};
  void members(Visitor& v) override {
    v("conv1", conv1), v("conv2", conv2), v("fc1", fc1), v("fc2", fc2);
  }
  Variable operator()(const Variable& x) const {
    Variable h = F::max_pooling_2d(F::relu(conv1(x)), 2);
    return fc2(F::relu(fc1(F::max_pooling_2d(F::relu(conv2(h)), 2))));
  }
};

/// The next character of each in (n, length), by two layers that start from zeros.
struct CharLSTM : Chain<CharLSTM> {
  static constexpr std::int64_t kUnits = 128;
  L::EmbedID embed;
  L::NStepLSTM lstm{2, kUnits, kUnits, 0};
  L::Linear out;
  explicit CharLSTM(std::int64_t words) : embed(words, kUnits), out(kUnits, words) {}
  void members(Visitor& v) override { v("embed", embed), v("lstm", lstm), v("out", out); }
  Variable operator()(const Variable& x) const {
    return out(F::concat(lstm({}, {}, F::separate(embed(x), 0)).ys, 0));
  }
  /// The file has PyTorch's weights of all gates in one too.
  static serializers::Naming names() {
    serializers::Naming names = serializers::pytorch_names();
    names.surplus = [](const std::string& name) {
      return name.starts_with("lstm.weight_") || name.starts_with("lstm.bias_");
    };
    return names;
  }
};

Work vgg(std::int64_t classes) {
  L::VGGOptions options = L::VGGOptions::cifar();
  options.classes = classes, options.dropout = 0, options.eps = 1e-5;
  return work(L::VGG16Layers(options), serializers::torchvision_vgg_names(16, true));
}

Work resnet18(std::int64_t classes) {
  L::ResNetOptions options = L::ResNetOptions::cifar();
  options.classes = classes;
  return work(L::ResNet18Layers(options), serializers::torchvision_resnet_names());
}

Work transformer(std::int64_t words) {
  return work(L::GPT2({.vocab_size = words,
                       .n_positions = 64,
                       .n_embd = 128,
                       .n_layer = 2,
                       .n_head = 4,
                       .dropout = 0}));
}

const std::map<std::string, std::function<Work(std::int64_t)>> kNetworks = {
    {"lenet", [](std::int64_t) { return work(LeNet()); }},
    {"vgg", vgg},
    {"resnet18", resnet18},
    {"charlstm", [](std::int64_t words) { return work(CharLSTM(words), CharLSTM::names()); }},
    {"transformer", transformer},
};

Optimizer make_optimizer(const Task& task, Link& net) {
  Optimizer optimizer =
      task.images ? Optimizer(optimizers::CorrectedMomentumSGD(0)) : Optimizer(optimizers::Adam(0));
  optimizer.setup(net).use_fp32_update();
  if (task.images) optimizer.add_hook(optimizer_hooks::WeightDecay(5e-4));
  return optimizer;
}

/// The mean cross entropy of the labels `t` of all places, in float32 where scores have 16 bits.
Variable mean_loss(const Work& work, const Task& task, const Variable& x, const Variable& t) {
  Variable y = F::reshape(work.scores(x), {-1, task.classes});
  y = F::cast(y, get_dtype() == float64 ? float64 : float32);
  return F::softmax_cross_entropy(y, F::reshape(t, {-1}));
}

/// Trains through all epochs. Returns the losses of the first steps.
std::vector<double> train(const Work& work, const Task& task, const Options& options) {
  constexpr std::size_t kLosses = 10;
  Optimizer optimizer = make_optimizer(task, *work.net);
  auto loss_of = [&](const Variable& x, const Variable& t) { return mean_loss(work, task, x, t); };
  auto step = [&](const Variable& x, const Variable& t) { return optimizer.update(loss_of, x, t); };
  auto captured = capture(step);

  std::vector<Array> losses;
  for (std::int64_t epoch = 0; epoch < task.order.shape(0); ++epoch) {
    optimizer.attribute(task.images ? "lr" : "alpha") = task.rates[epoch].item<double>();
    for (std::int64_t i = 0; i + task.batch <= task.order.shape(1); i += task.batch) {
      auto row = [&](const Array& table) { return table[{epoch, Slice(i, i + task.batch)}]; };
      Array samples = row(task.order), flags;
      if (task.mirrored.defined()) flags = row(task.mirrored);
      Variable x = task.inputs(task.train_x.take(samples, 0), flags);
      Variable t = constant(task.train_t.take(samples, 0));
      Variable loss = options.captured ? captured(x, t) : step(x, t);
      if (losses.size() < kLosses) losses.push_back(loss.array());
    }
  }
  if (options.captured && options.device.is_cuda() && captured.stats().replays == 0) {
    throw Error("the step stayed eager: " + captured.stats().last_fallback);
  }
  std::vector<double> values;
  for (const Array& loss : losses) values.push_back(loss.astype(float64).item<double>());
  return values;
}

struct Result {
  double loss, accuracy;
};

Result test(const Work& work, const Task& task, Device device) {
  constexpr std::int64_t kBatch = 500;
  UsingConfig not_training(&Config::train, false);
  no_backprop_mode no_graph;
  Array loss = xp::zeros({}, float64, device), accuracy = xp::zeros({}, float64, device);
  const std::int64_t n = task.test_x.shape(0);
  for (std::int64_t i = 0; i < n; i += kBatch) {
    Slice rows(i, std::min(n, i + kBatch));
    Variable x = task.inputs(task.test_x[rows]), t = constant(task.test_t[rows]);
    double share = static_cast<double>(x.shape(0)) / static_cast<double>(n);
    loss += mean_loss(work, task, x, t).array() * share;
    if (!task.images) continue;
    accuracy += F::accuracy(F::cast(work.scores(x), float32), t).array() * share;
  }
  return {loss.item<double>(), accuracy.item<double>()};
}

void run(const std::string& network, const Options& options) {
  xp::NpzFile file = xp::load_npz(options.file);
  Task task(file, options.device);
  Work work = kNetworks.at(network)(task.classes);
  serializers::load_npz(options.file, *work.net, {.path = "net", .names = work.names});
  work.net->to(options.device);
  if (task.images && options.device.is_cuda()) L::channels_last(*work.net);

  auto start = std::chrono::steady_clock::now();
  std::vector<double> losses = train(work, task, options);
  Result result = test(work, task, options.device);
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::string name =
      fmt::format("accuracy {} {} rensa {}", std::filesystem::path(options.file).stem().string(),
                  options.precision, options.captured ? "captured" : "eager");
  benchmarks::print_figure(
      name, task.images ? 100 * result.accuracy : result.loss, task.images ? "%" : "nats",
      fmt::format(", \"loss\": {}, \"first_losses\": [{}], \"seconds\": {:.1f}", result.loss,
                  fmt::join(losses, ", "), elapsed.count()));
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  std::string device = "cuda:0", network;
  CLI::App app("Trains a network on real data and prints how it does on other samples.");
  std::vector<std::string> known;
  for (const auto& [name, make] : kNetworks) known.push_back(name);
  app.add_option("network", network, "which")->check(CLI::IsMember(known))->required();
  app.add_option("file", options.file, "what peers/accuracy.py wrote for it")->required();
  app.add_option("--device", device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--precision", options.precision)
      ->check(CLI::IsMember({"fp64", "fp32", "tf32", "bf16"}))
      ->capture_default_str();
  app.add_flag("--captured", options.captured, "record a step and replay it");
  CLI11_PARSE(app, argc, argv);

  options.device = Device(device);
  if (options.device.is_cuda()) options.device.use();
  config().tf32 = options.precision == "tf32";
  if (options.precision == "bf16") config().dtype = mixed_bf16;
  if (options.precision == "fp64") config().dtype = float64;
  run(network, options);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
