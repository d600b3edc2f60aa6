// A small GPT over the bytes of a text. It learns to tell each next byte from those before, and
// then writes on from a few words. --devices gpu:0,gpu:1 has two GPUs share each batch; so do
// processes, which may also share the optimizer's states or the network itself:
//   rensa-run -n 2 train_gpt --split tensor --devices gpu:0,gpu:1
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>

#include "arguments.h"
#include "parallel_gpt.h"
#include "training_place.h"

using namespace rensa;

struct Options : TrainingOptions {
  std::string text, prompt = "\n", split = "data";
  std::int64_t length = 64, unit = 128, layers = 4, heads = 4;
  std::int64_t warmup = 100, interval = 100, sample = 500, top_k = 40;
  double learnrate = 1e-3, weight_decay = 0.1, dropout = 0, temperature = 0.8;
};

/// The file's bytes, or sums such as "17+25=42", line by line, in the place of a text.
static std::string read(const std::string& path) {
  if (!path.empty()) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw SerializationError(path + " cannot be read");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string sums;
  RandomStream random(0);
  for (int line = 0; line < 20000; ++line) {
    std::int64_t a = random.integers(100), b = random.integers(100);
    sums += std::to_string(a) + "+" + std::to_string(b) + "=" + std::to_string(a + b) + "\n";
  }
  return sums;
}

static Array tokens_of(std::string_view text) {
  return xp::array(std::vector<std::uint8_t>(text.begin(), text.end())).astype(int32);
}

struct Place : TrainingPlace {
  bool is_split = false;  // the network, over the ranks, which then have the same batches
  bool shares_batches() const { return !is_alone() && !is_split; }
};

static Place find_gpt_place(const Options& options) {
  Place place{find_place(options)};
  if (place.is_alone() && options.split != "data") {
    throw ValueError("--split " + options.split + " is for several processes: rensa-run -n 2 ...");
  }
  place.is_split = !place.is_alone() && options.split == "tensor";
  return place;
}

/// `prompt` and `options.sample` more bytes, each drawn by the model's scores for what comes next:
/// of the `top_k` best ones, the likelier ones more often. A low temperature prefers these more.
template <class Model>
static void write(const Model& model, const Options& options, const Place& place) {
  UsingConfig not_training(&Config::train, false);
  no_backprop_mode no_graph;
  std::string text = options.prompt;
  if (place.tells()) std::cout << text;
  for (std::int64_t i = 0; i < options.sample; ++i) {
    std::size_t seen = std::min(text.size(), static_cast<std::size_t>(options.length));
    Array context = tokens_of(std::string_view(text).substr(text.size() - seen));
    Variable scores = model(constant(context.reshape({1, -1}).to(place.device)));
    Array last = scores.array()[{0, -1}].to(cpu()).astype(float32);
    auto [best, bytes] = F::topk(constant(last), std::min<std::int64_t>(options.top_k, 256));
    // The greatest of scores with such noise is a draw from their softmax.
    Array noise = xp::random::gumbel(0, 1, best.shape(), float32, cpu());
    Array drawn = (best.array() / options.temperature + noise).argmax();
    Array next = place.comm.bcast(bytes[{drawn}], 0);  // of one draw for all
    text += static_cast<char>(next.item<std::int64_t>());
    if (place.tells()) std::cout << text.back() << std::flush;
  }
  if (place.tells()) std::cout << std::endl;
}

template <class Network>
static void train(const Options& options, const Place& place, Network network) {
  const Communicator& comm = place.comm;
  std::string text = read(options.text);
  std::int64_t split = std::ssize(text) * 9 / 10;  // the last tenth tells how well it does
  Dataset data = datasets::token_sequences(tokens_of(text.substr(0, split)), options.length);
  auto rest = datasets::token_sequences(tokens_of(text.substr(split)), options.length);
  datasets::SubDataset valid(rest, 0, std::min<std::int64_t>(200, rest.size()));
  if (place.shares_batches()) {
    data = datasets::scatter_dataset(data, comm, {.shuffle = true, .seed = 1});
  }
  std::int64_t iterations =
      options.iterations > 0 ? options.iterations : options.epoch * data.size() / options.batchsize;

  L::Classifier model(std::move(network), [](const Variable& y, const Variable& t) {
    return F::softmax_cross_entropy(y.reshape({-1, 256}), t.reshape({-1}));
  });
  model.compute_accuracy = false;
  model.to(place.device);
  if (place.tells()) {
    std::cout << text.size() << " bytes, a network of " << model.count_params() << " parameters"
              << (place.is_split ? " on each of several ranks, " : ", ") << iterations
              << " iterations" << std::endl;
  }

  optimizers::AdamW optimizer({.alpha = options.learnrate,
                               .beta2 = 0.99,
                               .weight_decay_rate = options.learnrate * options.weight_decay});
  options.setup(optimizer, model);
  // Biases and what normalizations multiply by are left as large as they want to be.
  ParameterGroup(model, [](const NamedParameter& p) {
    return p.parameter.ndim() < 2;
  }).set_hyperparam("weight_decay_rate", 0);
  if (place.shares_batches()) {
    create_multi_node_optimizer(optimizer, comm, {.sharded = options.split == "zero"});
  }

  Iterator train_iter = iterators::SerialIterator(data, options.batchsize);
  if (place.is_split) train_iter = iterators::create_synchronized_iterator(train_iter, comm);
  iterators::SerialIterator valid_iter(valid, options.batchsize,
                                       {.repeat = false, .shuffle = false});
  auto [updater, stats] = make_updater(train_iter, optimizer, options, place);
  training::Trainer trainer(updater, {iterations, "iteration"}, options.out);
  training::Trigger now_and_then(options.interval, "iteration");
  // eta is what Adam's step and the weight decay are multiplied by: up to 1, then down to a tenth.
  std::int64_t warmup = std::min(options.warmup, std::max<std::int64_t>(1, iterations / 2));
  trainer.extend(extensions::WarmupShift("eta", 0, warmup, 1));
  trainer.extend(
      extensions::CosineShift("eta", {1, 0.1}, {warmup, std::max(warmup + 1, iterations)}));
  trainer.extend(extensions::Evaluator(valid_iter, model), {.trigger = now_and_then});
  if (place.tells()) {
    trainer.extend(extensions::LogReport({.trigger = now_and_then}));
    trainer.extend(extensions::PrintReport(
        {"epoch", "iteration", "main/loss", "validation/main/loss", "elapsed_time"}));
  }
  extend(trainer, options, place);
  trainer.run();
  std::string of_rank = place.is_split ? std::to_string(comm.rank()) : "";
  if (place.tells() || place.is_split) {
    serializers::save_npz(options.out + "/model" + of_rank + ".npz", model);
  }
  if (place.tells()) options.print_replays(stats());
  write(model.predictor, options, place);
}

static void train(const Options& options) {
  Place place = find_gpt_place(options);
  L::GPT2 network({.vocab_size = 256,
                   .n_positions = options.length,
                   .n_embd = options.unit,
                   .n_layer = options.layers,
                   .n_head = static_cast<int>(options.heads),
                   .dropout = options.dropout});
  bcast_data(place.comm, network);
  if (!place.is_split) return train(options, place, std::move(network));
  // Masks of what is whole on all ranks have to be the same on all.
  Array seed = place.comm.bcast(xp::random::integers(0, 1 << 30, Shape{1}), 0);
  xp::random::seed(seed.item<std::uint64_t>());
  train(options, place, ParallelGPT(place.comm, network));
}

int main(int argc, char** argv) {
  Options options;
  options.epoch = 2;
  options.batchsize = 12;
  options.gradient_clipping = 1;
  return TrainingArguments({.description = "Trains a small GPT on a text, and lets it write",
                            .num_gpus = kAnyNumber},
                           &options)
      .text("--text", &options.text, "a file; without one, sums such as 17+25=42")
      .choice("--split", &options.split, {"data", "zero", "tensor"},
              "what several processes share: each batch; the optimizer's states too; the network")
      .number("--length", &options.length, "bytes that the network sees")
      .number("--unit", &options.unit, "units of a byte in each layer")
      .number("--layers", &options.layers, "blocks one above the other")
      .number("--heads", &options.heads, "of the attention; they divide the units")
      .real("--dropout", &options.dropout, "how many elements are dropped")
      .real("--learnrate", &options.learnrate, "the greatest, behind the warm-up")
      .real("--weight_decay", &options.weight_decay, "times the learning rate: what weights lose")
      .number("--warmup", &options.warmup, "iterations in which the learning rate rises")
      .number("--interval", &options.interval, "iterations between two lines of the log")
      .number("--sample", &options.sample, "bytes to write in the end")
      .text("--prompt", &options.prompt, "what it writes on from")
      .real("--temperature", &options.temperature, "of what it writes: lower is more of the same")
      .number("--top_k", &options.top_k, "so many best bytes are drawn from")
      .run(argc, argv, [&] { train(options); });
}
