// A small GPT over the bytes of a text. It learns to tell each next byte from those before, and
// then writes on from a few words.
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>

#include "training_options.h"

using namespace rensa;

struct Options : TrainingOptions {
  std::string text, prompt = "\n";
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

/// `prompt` and `options.sample` more bytes, each drawn by the model's scores for what comes next:
/// of the `top_k` best ones, the likelier ones more often. A low temperature prefers these more.
static void write(const L::GPT2& model, const Options& options) {
  UsingConfig not_training(&Config::train, false);
  no_backprop_mode no_graph;
  std::string text = options.prompt;
  std::cout << text;
  for (std::int64_t i = 0; i < options.sample; ++i) {
    std::size_t seen = std::min(text.size(), static_cast<std::size_t>(options.length));
    Array context = tokens_of(std::string_view(text).substr(text.size() - seen));
    Variable scores = model(constant(context.reshape({1, -1}).to(options.device())));
    Array last = scores.array()[{0, -1}].to(cpu()).astype(float32);
    auto [best, bytes] = F::topk(constant(last), std::min<std::int64_t>(options.top_k, 256));
    // The greatest of scores with such noise is a draw from their softmax.
    Array noise = xp::random::gumbel(0, 1, best.shape(), float32, cpu());
    Array drawn = (best.array() / options.temperature + noise).argmax();
    text += static_cast<char>(bytes[{drawn}].item<std::int64_t>());
    std::cout << text.back() << std::flush;
  }
  std::cout << std::endl;
}

static void train(const Options& options) {
  std::string text = read(options.text);
  std::int64_t split = std::ssize(text) * 9 / 10;  // the last tenth tells how well it does
  auto data = datasets::token_sequences(tokens_of(text.substr(0, split)), options.length);
  auto rest = datasets::token_sequences(tokens_of(text.substr(split)), options.length);
  datasets::SubDataset valid(rest, 0, std::min<std::int64_t>(200, rest.size()));
  std::int64_t iterations =
      options.iterations > 0 ? options.iterations : options.epoch * data.size() / options.batchsize;

  auto model =
      L::Classifier(L::GPT2({.vocab_size = 256,
                             .n_positions = options.length,
                             .n_embd = options.unit,
                             .n_layer = options.layers,
                             .n_head = static_cast<int>(options.heads),
                             .dropout = options.dropout}),
                    [](const Variable& y, const Variable& t) {
                      return F::softmax_cross_entropy(y.reshape({-1, 256}), t.reshape({-1}));
                    });
  model.compute_accuracy = false;
  model.to(options.device());
  std::cout << text.size() << " bytes, a network of " << model.count_params() << " parameters, "
            << iterations << " iterations" << std::endl;

  optimizers::AdamW optimizer({.alpha = options.learnrate,
                               .beta2 = 0.99,
                               .weight_decay_rate = options.learnrate * options.weight_decay});
  options.setup(optimizer, model);
  // Biases and what normalizations multiply by are left as large as they want to be.
  ParameterGroup(model, [](const NamedParameter& p) {
    return p.parameter.ndim() < 2;
  }).set_hyperparam("weight_decay_rate", 0);

  iterators::SerialIterator train_iter(data, options.batchsize);
  iterators::SerialIterator valid_iter(valid, options.batchsize,
                                       {.repeat = false, .shuffle = false});
  training::StandardUpdater updater(train_iter, optimizer,
                                    {.device = options.device(), .capture = options.capture});
  training::Trainer trainer(updater, {iterations, "iteration"}, options.out);
  training::Trigger now_and_then(options.interval, "iteration");
  // eta is what Adam's step and the weight decay are multiplied by: up to 1, then down to a tenth.
  std::int64_t warmup = std::min(options.warmup, std::max<std::int64_t>(1, iterations / 2));
  trainer.extend(extensions::WarmupShift("eta", 0, warmup, 1));
  trainer.extend(
      extensions::CosineShift("eta", {1, 0.1}, {warmup, std::max(warmup + 1, iterations)}));
  trainer.extend(extensions::Evaluator(valid_iter, model), {.trigger = now_and_then});
  trainer.extend(extensions::LogReport({.trigger = now_and_then}));
  trainer.extend(extensions::PrintReport(
      {"epoch", "iteration", "main/loss", "validation/main/loss", "elapsed_time"}));
  options.extend(trainer);
  trainer.run();
  serializers::save_npz(options.out + "/model.npz", model);
  options.print_replays(updater.capture_stats());
  write(model.predictor, options);
}

int main(int argc, char** argv) {
  Options options;
  options.epoch = 2;
  options.batchsize = 12;
  options.gradient_clipping = 1;
  return TrainingArguments({.description = "Trains a small GPT on a text, and lets it write"},
                           &options)
      .text("--text", &options.text, "a file; without one, sums such as 17+25=42")
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
