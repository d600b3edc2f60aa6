// A language model of the Penn Treebank's words: an LSTM that tells which word comes next, as in
// Zaremba et al., "Recurrent neural network regularization".
#include <cmath>
#include <iostream>

#include "training_options.h"

using namespace rensa;

struct Options : TrainingOptions {
  std::string dataset = "ptb";
  std::int64_t unit = 650, layers = 2, length = 35, decay_after = 6;
  double dropout = 0.5, learnrate = 1, decay = 1.2;
};

/// Its memory goes on from one call to the next.
struct LanguageModel : Chain<LanguageModel> {
  L::EmbedID embed;
  L::NStepLSTM lstm;
  L::Linear output;
  double dropout;
  State h, c;

  LanguageModel(std::int64_t words, const Options& options)
      : embed(words, options.unit, {.initialW = small()}),
        lstm(static_cast<int>(options.layers), options.unit, options.unit, options.dropout,
             {.initialW = small()}),
        output(options.unit, words, {.initialW = small()}),
        dropout(options.dropout) {}
  void members(Visitor& v) override {
    v("embed", embed), v("lstm", lstm), v("output", output), v("h", h), v("c", c);
  }
  static Initializer small() { return initializers::Uniform{.scale = 0.05}; }

  /// Of words x (n, length) the scores of each one's next, (n * length, words).
  Variable operator()(const Variable& x) {
    auto [hy, cy, ys] = lstm(h, c, F::separate(F::dropout(embed(x), dropout)));
    h = hy.array(), c = cy.array();  // arrays: gradients do not go back beyond these words
    return output(F::dropout(F::concat(ys, 0), dropout));
  }
};

/// Words in the place of the treebank's, where each has two that may follow.
static Array draw_words(std::int64_t n) {
  constexpr int kWords = 50;
  RandomStream random(n);
  std::vector<std::int32_t> words = {0};
  while (std::ssize(words) < n) {
    words.push_back((words.back() * 3 + (random.uniform() < 0.8 ? 1 : 2)) % kWords);
  }
  return xp::array(words);
}

static datasets::PtbWords load(const Options& options) {
  if (options.dataset == "ptb") return datasets::get_ptb_words();
  return {draw_words(36000), draw_words(18000), draw_words(18000)};
}

/// The text in `batchsize` parts that are read side by side. Each batch has the next `length` words
/// of all of them, so that what the model remembers of one batch is what came before the next.
static Iterator in_parallel(const Array& words, const Options& options, bool repeat) {
  auto runs = datasets::token_sequences(words, options.length);
  std::int64_t parts = options.batchsize, batches = runs.size() / parts;
  if (batches == 0) throw ValueError("the text is too short for so many parts");
  auto order = [=](const EpochRequest&) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < batches * parts; ++i) {
      numbers.push_back(i % parts * batches + i / parts);
    }
    return numbers;
  };
  return iterators::SerialIterator(runs, parts, {.repeat = repeat, .order_sampler = order});
}

/// exp of the mean loss over a text, read by a copy of the model with an empty memory.
template <class Model> static double perplexity(const Model& model, const Iterator& words) {
  auto reader = model.copy();  // shares the parameters
  reader.reset_state();
  return std::exp(extensions::Evaluator(words, reader).evaluate().at("main/loss"));
}

static void train(const Options& options) {
  datasets::PtbWords words = load(options);
  std::int64_t n_words = words.train.max().item<std::int64_t>() + 1;
  std::cout << words.train.size() << " words to train with, " << n_words << " different ones"
            << std::endl;

  auto model =
      L::Classifier(LanguageModel(n_words, options), [](const Variable& y, const Variable& t) {
        return F::softmax_cross_entropy(y, t.reshape({-1}));
      });
  model.compute_accuracy = false;
  model.to(options.device());
  optimizers::SGD optimizer(options.learnrate);
  options.setup(optimizer, model);

  training::StandardUpdater updater(in_parallel(words.train, options, true), optimizer,
                                    {.device = options.device(), .capture = options.capture});
  training::Trainer trainer(updater, options.stop(), options.out);
  Iterator valid = in_parallel(words.valid, options, false);
  trainer.extend(extensions::ObserveValue(
      "valid/perplexity", [&](training::Trainer&) { return perplexity(model, valid); }));
  // Each epoch begins with the first words again, of which nothing comes before.
  trainer.extend([&](training::Trainer&) { model.reset_state(); },
                 {.name = "reset_state", .trigger = {1, "epoch"}});
  auto is_late = [&](training::Trainer& now) {
    return now.updater().is_new_epoch() && now.updater().epoch() >= options.decay_after;
  };
  trainer.extend(extensions::ExponentialShift("lr", 1 / options.decay), {.trigger = is_late});
  trainer.extend(extensions::observe_lr());
  trainer.extend(extensions::LogReport(
      {.postprocess = [](auto& means) { means["perplexity"] = std::exp(means.at("main/loss")); }}));
  trainer.extend(extensions::PrintReport(
      {"epoch", "iteration", "lr", "perplexity", "valid/perplexity", "elapsed_time"}));
  options.extend(trainer);
  trainer.run();
  serializers::save_npz(options.out + "/model.npz", model);
  std::cout << "test perplexity: " << perplexity(model, in_parallel(words.test, options, false))
            << std::endl;
  options.print_replays(updater.capture_stats());
}

int main(int argc, char** argv) {
  Options options;
  options.epoch = 39;
  options.batchsize = 20;
  options.gradient_clipping = 5;
  return TrainingArguments({.description = "Trains a language model on the Penn Treebank"},
                           &options)
      .choice("--dataset", &options.dataset, {"ptb", "synthetic"}, "the words")
      .number("--unit", &options.unit, "units of each layer, and of a word")
      .number("--layers", &options.layers, "LSTMs one above the other")
      .number("--length", &options.length, "words that gradients go back")
      .number("--decay_after", &options.decay_after, "epochs before the learning rate falls")
      .real("--decay", &options.decay, "what it is divided by after each epoch then")
      .real("--learnrate", &options.learnrate, "at the beginning")
      .real("--dropout", &options.dropout, "how many elements are dropped between layers")
      .run(argc, argv, [&] { train(options); });
}
