// One process on several GPUs against one GPU: copies between two, sums over all, training steps
// with a replica on each (weak scaling, but for the MLP: its batch is that of all) and a model in
// halves; `widths` has these two over widths and batches. Steps are captured unless asked
// otherwise; inputs lie on the GPUs. The training steps of a process for each GPU: rensa-run -n 2
// several_gpus mlp resnet50 gpt2
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/timing.h"
#include "rensa/core/files.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/rank_sum/rank_sum.h"
#include "rensa/training/replica_team.h"

namespace {

using namespace rensa;
using benchmarks::print_figure;

/// How many times as fast as one GPU, over GPUs: a chart's lines by its title.
using Curves = std::map<std::string, std::vector<PlotSeries>>;

struct Options {
  int gpus = 2;
  Communicator ranks = create_communicator();  // the processes, of which each has a GPU, or the one
  bool several() const { return ranks.size() > 1; }
  bool alone = false;  // this thread is on the GPU of `ranks`, whatever others do
  bool captured = true;
  bool late_sums = false;  // of eager replicas: when backward is done
  int steps = 50;
  int zero = 0;  // of several processes: each keeps a share of states (1), of gradients too (2)
  // Of `widths`:
  std::vector<std::int64_t> units{256, 512, 1024, 2048, 4096}, batches{128, 1024, 8192};
  std::string picture;
  std::string how() const {
    return captured ? "captured" : late_sums ? "eager, sums after backward" : "eager";
  }
};

void wait_for_all(const Options& options) {
  if (options.several() || options.alone) return cuda::synchronize(options.ranks.device());
  for (int i = 0; i < options.gpus; ++i) cuda::synchronize(gpu(i));
}

/// Median seconds of a call, when all GPUs are done.
double seconds_of(const Options& options, int calls, const std::function<void()>& call) {
  auto all = [&] {
    for (int i = 0; i < calls; ++i) call();
    wait_for_all(options);
  };
  return benchmarks::median_seconds(all, 1, cpu(), 2) / calls;
}

void copy(int from, int to, std::int64_t kilobytes, const Options& options) {
  Array array = xp::ones({kilobytes * 1024}, uint8, gpu(from));
  double seconds =
      seconds_of(options, kilobytes > 10000 ? 20 : 200, [&] { (void)array.to(gpu(to)); });
  print_figure(
      fmt::format("copy {} KB gpu{} to gpu{} rensa", kilobytes, from, to), seconds * 1e6, "us",
      fmt::format(", \"GB_s\": {:.1f}", static_cast<double>(array.nbytes()) / seconds / 1e9));
}

/// From the first GPU to the second, and large ones between all.
Curves copies(const Options& options) {
  for (std::int64_t kilobytes : {4, 64, 1024}) copy(0, 1, kilobytes, options);
  for (int from = 0; from < options.gpus; ++from) {
    for (int to = 0; to < options.gpus; ++to) {
      if (to != from) copy(from, to, 262144, options);
    }
  }
  return {};
}

Curves sums(const Options& options) {
  for (std::int64_t kilobytes : {4, 64, 1024, 7200, 102400, 1048576}) {
    std::vector<Array> arrays;
    std::vector<std::vector<Operand>> operands;
    for (int i = 0; i < options.gpus; ++i) {
      arrays.push_back(xp::zeros({kilobytes * 256}, float32, gpu(i)));
      operands.push_back({arrays.back().operand()});
    }
    auto step = [&](const Variables&) {
      for (operations::RankSum& sum : operations::rank_sums(operands)) launch(sum);
      return Variables();
    };
    CaptureCache cache;
    Variables given{constant(xp::zeros({1}, float32, gpu(0)))};
    auto call = [&] { options.captured ? (void)cache.call(step, given) : (void)step({}); };
    double seconds = seconds_of(options, kilobytes > 10000 ? 20 : 200, call);
    print_figure(
        fmt::format("allreduce {} KB x{} rensa {}", kilobytes, options.gpus, options.how()),
        seconds * 1e6, "us",
        fmt::format(", \"GB_s\": {:.1f}", static_cast<double>(kilobytes) * 1024 / seconds / 1e9));
  }
  return {};
}

/// What is trained: a net with its loss, an optimizer, and a batch of so many examples.
struct Task {
  std::string name, unit;
  double amount;  // of an example, in `unit` a second; 0: microseconds a step
  std::function<Optimizer()> optimizer;
  std::function<Columns(std::int64_t, Device)> batch;
};

/// The same batch of a task at each step, made once for each device and size.
class FixedBatches {
 public:
  explicit FixedBatches(const Task& task) : task_(&task) {}
  Columns operator()(const Batch& part, Device device) {
    Columns& columns = (*made_)[{device, part.size()}];
    if (columns.empty()) columns = task_->batch(part.size(), device);
    return columns;
  }

 private:
  using Made = std::map<std::pair<Device, std::int64_t>, Columns>;
  const Task* task_;
  std::shared_ptr<Made> made_ = std::make_shared<Made>();
};

template <class Updater>
double time_updates(const Task& task, const Updater& updater, const Options& options) {
  for (int i = 0; i < 4; ++i) updater.update();
  double seconds = seconds_of(options, options.steps, [&] { updater.update(); });
  if (options.captured && updater.capture_stats().replays == 0) {
    fmt::print(stderr, "{} stayed eager: {}\n", task.name, updater.capture_stats().last_fallback);
  }
  return seconds;
}

struct Step {
  double seconds;
  bool equal;       // whether all replicas had the same bits afterwards
  double peak_gib;  // of memory that arrays had on the first GPU meanwhile
};

double peak_gib(const Device& device) {
  return static_cast<double>(cuda::memory_pool(device).peak_used_bytes()) / (1 << 30);
}

/// Of this process on its GPU, alone or with the others.
template <class Net>
Step step_of_process(const Task& task, Net& net, std::int64_t batch, bool with_others,
                     const Options& options) {
  const Communicator& ranks = options.ranks;
  Optimizer optimizer = task.optimizer();
  optimizer.setup(net).use_fp32_update();
  if (with_others) {
    create_multi_node_optimizer(
        optimizer, ranks, {.sharded = options.zero >= 1, .sharded_gradients = options.zero >= 2});
  }
  datasets::TupleDataset indices(xp::arange(batch, int32, cpu()));
  iterators::SerialIterator iterator(indices, batch, {.shuffle = false});
  training::StandardUpdaterOptions how;
  how.device = ranks.device(), how.converter = FixedBatches(task), how.capture = options.captured;
  training::StandardUpdater updater(iterator, optimizer, how);
  cuda::memory_pool(ranks.device()).reset_peaks();
  double seconds = time_updates(task, updater, options), peak = peak_gib(ranks.device());
  bool equal = true;
  for (const ParameterRef& p : net.params()) {
    if (with_others) equal = equal && xp::array_equal(ranks.bcast(p.array(), 0), p.array());
  }
  return {seconds, equal, peak};
}

/// Of this process alone on so many GPUs.
template <class Net>
Step step_of_replicas(const Task& task, Net& net, std::int64_t batch, int gpus,
                      const Options& options) {
  Optimizer optimizer = task.optimizer();
  optimizer.setup(net).use_fp32_update();
  datasets::TupleDataset indices(xp::arange(batch, int32, cpu()));
  iterators::SerialIterator iterator(indices, batch, {.shuffle = false});
  FixedBatches converter(task);
  training::ParallelUpdaterOptions how;
  how.reduction = "mean", how.converter = converter, how.capture = options.captured;
  if (options.late_sums) how.pack_bytes = std::int64_t{1} << 50;
  for (int i = 0; i < gpus; ++i) {
    how.devices.emplace_back(i == 0 ? "main" : fmt::format("gpu{}", i), gpu(i));
  }
  // One after the other: threads would look the batches up at the same time.
  for (int i = 0; i < gpus; ++i)
    converter(Batch(indices, xp::arange(batch / gpus, int64, cpu())), gpu(i));
  training::ParallelUpdater updater(iterator, optimizer, how);
  cuda::memory_pool(gpu(0)).reset_peaks();
  double seconds = time_updates(task, updater, options), peak = peak_gib(gpu(0));
  bool equal = true;
  std::vector<ParameterRef> main = updater.model("main").params();
  for (const auto& [name, device] : how.devices) {
    std::vector<ParameterRef> other = updater.model(name).params();
    for (std::size_t p = 0; p < main.size(); ++p) {
      equal = equal && xp::array_equal(main[p].array(), other[p].array().to(gpu(0)));
    }
  }
  return {seconds, equal, peak};
}

double figure_of(const Task& task, std::int64_t samples, double seconds) {
  if (task.amount == 0) return seconds * 1e6;
  return task.amount * static_cast<double>(samples) / seconds;
}

Options alone_on(int gpu_index, const Options& options) {
  Options own = options;
  own.ranks = options.ranks.on(gpu(gpu_index));
  own.alone = true;
  return own;
}

/// What the GPUs of this process take at the same time, each with a net of its own and no sums:
/// the most that replicas could do. Prints it, as the mean of seconds and so for all together.
template <class Net>
void figure_apart(const Task& task, std::int64_t batch, int gpus, const Options& options) {
  auto count = static_cast<std::size_t>(gpus);
  std::vector<Net> nets(count);
  std::vector<double> seconds(count);
  training::ReplicaTeam(gpus).run([&](int i) {
    auto k = static_cast<std::size_t>(i);
    Options own = alone_on(i, options);
    own.ranks.device().use();
    seconds[k] = step_of_process(task, nets[k], batch, false, own).seconds;
  });
  options.ranks.device().use();
  double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / gpus;
  print_figure(fmt::format("{} B={} {} GPUs without sums rensa {}", task.name, batch * gpus, gpus,
                           options.how()),
               figure_of(task, batch * gpus, mean), task.unit.c_str());
}

/// The figure of a step on one GPU: the mean of those that each GPU of this process has alone, as
/// GPUs of a host differ. Prints those.
template <class Net>
double figure_alone(const Task& task, std::int64_t batch, const Options& options) {
  int count = options.several() ? 1 : options.gpus;
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    Options own = options.several() ? options : alone_on(i, options);
    own.ranks.device().use();
    Net net;
    Step step = step_of_process(task, net, batch, false, own);
    double figure = figure_of(task, batch, step.seconds);
    sum += figure;
    if (options.ranks.rank() != 0) continue;
    print_figure(fmt::format("{} B={} {} rensa {}", task.name, batch,
                             options.several() ? "one process" : fmt::format("GPU {} alone", i),
                             options.how()),
                 figure, task.unit.c_str(), fmt::format(", \"peak_GiB\": {:.2f}", step.peak_gib));
  }
  options.ranks.device().use();
  return sum / count;
}

/// `weak`: each GPU has the whole batch.
template <class Net>
PlotSeries data_parallel(const Task& task, std::int64_t batch, bool weak, const Options& options) {
  double alone = figure_alone<Net>(task, batch, options);
  PlotSeries curve{weak ? task.name : fmt::format("{} in all", batch), {{1, 1}}};
  for (int gpus = 2; gpus <= options.gpus; gpus *= 2) {
    if (options.several()) gpus = options.gpus;  // all or one
    std::int64_t all = weak ? batch * gpus : batch;
    if (!options.several()) figure_apart<Net>(task, all / gpus, gpus, options);
    Net net;
    Step step = options.several() ? step_of_process(task, net, all / gpus, true, options)
                                  : step_of_replicas(task, net, all, gpus, options);
    double figure = figure_of(task, all, step.seconds);
    double speed_up = task.amount == 0 ? alone / figure : figure / alone;
    curve.points.emplace_back(gpus, speed_up);
    if (options.ranks.rank() != 0) continue;
    print_figure(fmt::format("{} B={} {} {} rensa {}", task.name, all, gpus,
                             options.several() ? "processes" : "GPUs", options.how()),
                 figure, task.unit.c_str(),
                 fmt::format(", \"speed_up\": {:.3f}, \"replicas_bit_equal\": {}, "
                             "\"peak_GiB\": {:.2f}, \"zero\": {}",
                             speed_up, step.equal, step.peak_gib, options.zero));
  }
  return curve;
}

struct MLP : Chain<MLP> {
  L::Linear l1{784, 1000}, l2{1000, 1000}, l3{1000, 10};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("l3", l3); }
  Variable operator()(const Variable& x, const Variable& t) const {
    return F::softmax_cross_entropy(l3(F::relu(l2(F::relu(l1(x))))), t);
  }
};

struct ResNet : Chain<ResNet> {
  L::ResNet50Layers net{L::ResNetOptions::torchvision()};
  ResNet() { L::channels_last(net); }
  void members(Visitor& v) override { v("net", net); }
  Variable operator()(const Variable& x, const Variable& t) {
    return F::softmax_cross_entropy(net(x), t);
  }
};

struct GPT2 : Chain<GPT2> {
  L::GPT2 net{{.vocab_size = 50304, .dropout = 0}};
  void members(Visitor& v) override { v("net", net); }
  Variable operator()(const Variable& x, const Variable& t) {
    return F::softmax_cross_entropy(F::reshape(net(x), {-1, 50304}), t.reshape({-1}));
  }
};

Task mlp_task(const std::string& name) {
  return {name, "us", 0, [] { return optimizers::SGD(0.01); },
          [](std::int64_t n, Device device) -> Columns {
            return {xp::random::random({n, 784}, float32, device),
                    xp::random::randint(0, 10, {n}, int32, device)};
          }};
}

Curves mlps(const Options& options) {
  Curves curves;
  for (bool tf32 : {false, true}) {
    config().tf32 = tf32;
    Task task = mlp_task(fmt::format("mlp {}", tf32 ? "tf32" : "fp32"));
    for (std::int64_t batch : {200, 2048, 4096, 32768}) {
      curves["One batch: " + task.name].push_back(data_parallel<MLP>(task, batch, false, options));
    }
  }
  return curves;
}

constexpr char kWeak[] = "A batch on each GPU";

Curves resnet(const Options& options) {
  config().tf32 = true;
  config().dtype = mixed_bf16;
  Task task{"resnet50 bf16", "images/s", 1, [] { return optimizers::MomentumSGD(0.05); },
            [](std::int64_t n, Device device) -> Columns {
              Array x = xp::random::normal(0, 1, {n, 3, 224, 224}, float32, device);
              return {F::channels_last(x).astype(bfloat16, {.order = "K"}),
                      xp::random::randint(0, 1000, {n}, int32, device)};
            }};
  Options fewer = options;
  fewer.steps = 10;
  return {{kWeak, {data_parallel<ResNet>(task, 128, true, fewer)}}};
}

Curves gpt2(const Options& options) {
  config().tf32 = true;
  config().dtype = mixed_bf16;
  Task task{"gpt2-small bf16", "tokens/s", 1024, [] { return optimizers::AdamW({.alpha = 1e-4}); },
            [](std::int64_t n, Device device) -> Columns {
              return {xp::random::randint(0, 50257, {n, 1024}, int32, device),
                      xp::random::randint(0, 50257, {n, 1024}, int32, device)};
            }};
  Options fewer = options;
  fewer.steps = 10;
  return {{kWeak, {data_parallel<GPT2>(task, 16, true, fewer)}}};
}

struct Part : Chain<Part> {
  L::Linear l1, l2, l3;
  Part(std::int64_t in, std::int64_t units, std::int64_t out)
      : l1(in, units), l2(units, units), l3(units, out) {}
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("l3", l3); }
  Variable operator()(const Variable& x) const { return l3(F::relu(l2(F::relu(l1(x))))); }
};

/// Six layers of so many units on one GPU.
struct Whole : Chain<Whole> {
  Part first, second;
  explicit Whole(std::int64_t units) : first(784, units, units), second(units, units, 10) {
    to(gpu(0));
  }
  void members(Visitor& v) override { v("first", first), v("second", second); }
  Variable operator()(const Variable& x, const Variable& t) const {
    return F::softmax_cross_entropy(second(F::relu(first(x))), t);
  }
};

/// In parts, one on each GPU, that meet after the third layer and the sixth: the report's
/// MnistMLPParallel, of two.
struct Parts : Chain<Parts> {
  std::vector<Part> first, second;
  Parts(int gpus, std::int64_t units) {
    for (int i = 0; i < gpus; ++i) {
      first.emplace_back(784, units / gpus, units), second.emplace_back(units, units / gpus, 10);
      first.back().to(gpu(i)), second.back().to(gpu(i));
    }
  }
  void members(Visitor& v) override {
    for (std::size_t i = 0; i < first.size(); ++i) {
      v(fmt::format("first{}", i), first[i]), v(fmt::format("second{}", i), second[i]);
    }
  }
  /// On a GPU: of each part what it gives, added up.
  static Variable met(const Variables& parts, int at) {
    Variable sum = F::copy(parts[0], gpu(at));
    for (std::size_t i = 1; i < parts.size(); ++i) sum = sum + F::copy(parts[i], gpu(at));
    return sum;
  }
  Variable operator()(const Variable& x, const Variable& t) const {
    Variables z, y;
    int gpus = static_cast<int>(first.size());
    for (int i = 0; i < gpus; ++i) z.push_back(first[std::size_t(i)](F::copy(x, gpu(i))));
    for (int i = 0; i < gpus; ++i) y.push_back(second[std::size_t(i)](F::relu(met(z, i))));
    return F::softmax_cross_entropy(met(y, 0), t);
  }
};

template <class Net>
double model_parallel_step(Net net, std::int64_t batch, const Options& options) {
  optimizers::SGD optimizer(0.01);
  optimizer.setup(net);
  CaptureCache cache;
  auto step = [&](const Variables& in) { return Variables{optimizer.update(net, in[0], in[1])}; };
  Variables given{constant(xp::random::random({batch, 784}, float32, gpu(0))),
                  constant(xp::random::randint(0, 10, {batch}, int32, gpu(0)))};
  auto call = [&] { options.captured ? (void)cache.call(step, given) : (void)step(given); };
  for (int i = 0; i < 4; ++i) call();
  double seconds = seconds_of(options, options.steps, call);
  if (options.captured && cache.stats().replays == 0) {
    fmt::print(stderr, "model-parallel stayed eager: {}\n", cache.stats().last_fallback);
  }
  return seconds;
}

Curves model_parallel(const Options& options) {
  std::vector<PlotSeries> lines;
  for (bool tf32 : {false, true}) {
    config().tf32 = tf32;
    for (std::int64_t batch : {100, 4096}) {
      double one = model_parallel_step(Whole(2000), batch, options) * 1e6;
      const char* dtype = tf32 ? "tf32" : "fp32";
      std::string row = fmt::format("model-parallel 6x2000 {} B={}", dtype, batch);
      PlotSeries curve{fmt::format("6 x 2000 {}, {}", dtype, batch), {{1, 1}}};
      print_figure(fmt::format("{} 1 GPU rensa {}", row, options.how()), one, "us");
      for (int gpus = 2; gpus <= options.gpus; gpus *= 2) {
        double several = model_parallel_step(Parts(gpus, 2000), batch, options) * 1e6;
        print_figure(fmt::format("{} {} GPUs rensa {}", row, gpus, options.how()), several, "us",
                     fmt::format(", \"speed_up\": {:.3f}", one / several));
        curve.points.emplace_back(gpus, one / several);
      }
      lines.push_back(curve);
    }
  }
  return {{"Layers in parts", lines}};
}

void draw(const std::vector<PlotPanel>& panels, int columns, const Options& options) {
  if (options.picture.empty()) return;
  detail::write_whole_file(
      options.picture, plot_grid(panels, columns, picture_format("several_gpus", options.picture)));
}

/// The step of six layers on two GPUs, with a replica on each and in halves, beside one GPU: over
/// widths and batches, as figures and as curves of the speed-up.
Curves widths(const Options& options) {
  std::vector<PlotPanel> panels;
  for (bool tf32 : {false, true}) {
    config().tf32 = tf32;
    const char* dtype = tf32 ? "TF32" : "float32";
    std::vector<PlotSeries> lines;
    for (std::int64_t batch : options.batches) {
      PlotSeries replicas{fmt::format("data-parallel, {}", batch), {}};
      PlotSeries halves{fmt::format("model-parallel, {}", batch), {}};
      for (std::int64_t units : options.units) {
        Options few = options;
        const double operations = 36.0 * static_cast<double>(units * units * batch);
        few.steps = std::clamp(static_cast<int>(5e12 / operations), 2, 50);  // of some 0.1 s
        std::string row = fmt::format("6x{} {} B={}", units, dtype, batch);
        double one = model_parallel_step(Whole(units), batch, few);
        double in_halves = model_parallel_step(Parts(2, units), batch, few);
        Whole net(units);
        auto [data, equal, peak] = step_of_replicas(mlp_task(row), net, batch, 2, few);
        print_figure(row + " 1 GPU rensa " + options.how(), one * 1e6, "us");
        print_figure(
            row + " replicas on 2 GPUs rensa " + options.how(), data * 1e6, "us",
            fmt::format(", \"speed_up\": {:.3f}, \"replicas_bit_equal\": {}", one / data, equal));
        print_figure(row + " halves on 2 GPUs rensa " + options.how(), in_halves * 1e6, "us",
                     fmt::format(", \"speed_up\": {:.3f}", one / in_halves));
        replicas.points.emplace_back(units, one / data);
        halves.points.emplace_back(units, one / in_halves);
      }
      lines.push_back(replicas), lines.push_back(halves);
    }
    PlotOptions words{.title = fmt::format("6 layers on two GPUs, {}", dtype),
                      .x_label = "units of a layer",
                      .y_label = "times as fast as one GPU"};
    words.log_x = true, words.y_limits = {0, 2.75};
    panels.push_back({lines, words});
  }
  draw(panels, 2, options);
  return {};
}

void draw_curves(const Curves& curves, const Options& options) {
  std::vector<PlotPanel> panels;
  double most = options.gpus;
  for (const auto& [title, measured] : curves) {
    std::vector<PlotSeries> lines = measured;
    lines.push_back({"as many times", {{1, 1}, {most, most}}});
    PlotOptions words{.title = title, .x_label = "GPUs", .y_label = "times as fast as one GPU"};
    words.x_limits = {1, most}, words.y_limits = {0, most * 1.5};
    panels.push_back({lines, words});
  }
  if (!panels.empty()) draw(panels, 2, options);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::map<std::string, std::function<Curves(const Options&)>> parts = {
      {"copies", copies},   {"sums", sums}, {"mlp", mlps},
      {"resnet50", resnet}, {"gpt2", gpt2}, {"model_parallel", model_parallel},
      {"widths", widths}};
  Options options;
  std::vector<std::string> wanted, known;
  for (const auto& [name, part] : parts) known.push_back(name);
  CLI::App app("Times one process on several GPUs against one GPU.");
  app.add_option("parts", wanted, "which")->check(CLI::IsMember(known))->required();
  app.add_option("--gpus", options.gpus, "2, or another power of 2")->capture_default_str();
  app.add_option("--steps", options.steps, "steps a timing")->capture_default_str();
  app.add_option("--zero", options.zero,
                 "processes keep a share of the optimizer's states (1), of gradients too (2)")
      ->check(CLI::Range(0, 2));
  app.add_option("--units", options.units, "of a layer, in widths")->delimiter(',');
  app.add_option("--batches", options.batches, "in widths")->delimiter(',');
  app.add_option("--picture", options.picture,
                 "a file for the curves, .svg or .png; widths has its own: alone");
  app.add_flag("!--eager", options.captured, "steps are not captured");
  app.add_flag("--late-sums", options.late_sums, "eager replicas sum gradients after backward");
  app.add_flag("--autotune", config().autotune, "choose the products' plans by timing");
  CLI11_PARSE(app, argc, argv);
  Device device = gpu(options.ranks.local_rank());
  device.use();
  options.ranks = options.ranks.on(device);
  if (options.several()) {
    options.gpus = options.ranks.size();
    for (const char* of_one : {"copies", "sums", "model_parallel", "widths"}) {
      if (std::ranges::find(wanted, of_one) == wanted.end()) continue;
      throw ValueError(fmt::format("{} is for one process", of_one));
    }
  }
  Curves curves;
  for (const std::string& name : wanted) {
    Config before = config();
    for (const auto& [title, lines] : parts.at(name)(options)) {
      curves[title].insert(curves[title].end(), lines.begin(), lines.end());
    }
    config() = before;
  }
  if (options.ranks.rank() == 0) draw_curves(curves, options);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
