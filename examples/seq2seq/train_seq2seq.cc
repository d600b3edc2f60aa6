// From sequence to sequence (Sutskever et al., "Sequence to sequence learning with neural
// networks"): an LSTM reads digits, another one writes them reversed or sorted. Sequences differ in
// length, and a batch is a list of them, without padding.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

#include "training_options.h"

using namespace rensa;

struct Options : TrainingOptions {
  std::string task = "reverse";
  std::int64_t sequences = 20000, length = 10, unit = 128, layers = 1;
  double learnrate = 3e-3, dropout = 0;
};

using Sequence = std::vector<std::int32_t>;
constexpr std::int32_t kEnd = 10;  // behind the digits

/// Random digits, and what is to be made of them.
static std::vector<std::pair<Sequence, Sequence>> draw(std::int64_t n, std::uint64_t seed,
                                                       const Options& options) {
  RandomStream random(seed);
  std::vector<std::pair<Sequence, Sequence>> pairs;
  for (std::int64_t i = 0; i < n; ++i) {
    Sequence x(static_cast<std::size_t>(random.integers(1, options.length + 1)));
    for (std::int32_t& digit : x) digit = static_cast<std::int32_t>(random.integers(10));
    Sequence y(x.rbegin(), x.rend());
    if (options.task == "sort") std::ranges::sort(y);
    pairs.emplace_back(x, y);
  }
  return pairs;
}

static Dataset dataset_of(const std::vector<std::pair<Sequence, Sequence>>& pairs) {
  return Dataset(std::ssize(pairs), [pairs](std::int64_t i) {
    const auto& [x, y] = pairs[static_cast<std::size_t>(i)];
    return Columns{xp::array(x, cpu()), xp::array(y, cpu())};
  });
}

/// Arrays one behind the other, and back.
static Variables split(const Variable& all, const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> ends(lengths.size());
  std::partial_sum(lengths.begin(), lengths.end(), ends.begin());
  ends.pop_back();
  return F::split_axis(all, ends, 0);
}

/// A batch's xs, then its ys, each an array of its own. They go to the device as one.
static Columns as_list(const Batch& batch, Device device) {
  Columns xs, ys;
  for (std::int64_t k = 0; k < batch.size(); ++k) {
    Columns example = batch.example(k);
    xs.push_back(example[0]), ys.push_back(example[1]);
  }
  xs.insert(xs.end(), ys.begin(), ys.end());
  Array there = xp::concatenate(xs).to(device);
  std::int64_t begin = 0;
  for (Array& sequence : xs) {
    std::int64_t end = begin + sequence.shape(0);
    sequence = there[Slice(begin, end)];
    begin = end;
  }
  return xs;
}

struct Seq2seq : Chain<Seq2seq> {
  L::EmbedID embed_x, embed_y;
  L::NStepLSTM encoder, decoder;
  L::Linear output;

  explicit Seq2seq(const Options& o)
      : embed_x(10, o.unit),
        embed_y(11, o.unit),
        encoder(static_cast<int>(o.layers), o.unit, o.unit, o.dropout),
        decoder(static_cast<int>(o.layers), o.unit, o.unit, o.dropout),
        output(o.unit, 11) {}
  void members(Visitor& v) override {
    v("embed_x", embed_x), v("embed_y", embed_y);
    v("encoder", encoder), v("decoder", decoder), v("output", output);
  }

  /// The loss of xs and ys, one list.
  Variable operator()(const Variables& sequences) const {
    auto middle = sequences.begin() + std::ssize(sequences) / 2;
    Variables xs(sequences.begin(), middle), ys(middle, sequences.end());
    Variable end = constant(xp::full({1}, kEnd, int32, xs[0].device()));
    Variables in, out;  // what the decoder sees is what it wrote before
    for (const Variable& y : ys) {
      in.push_back(F::concat({end, y}, 0));
      out.push_back(F::concat({y, end}, 0));
    }
    auto [h, c, encoded] = encoder({}, {}, embed(embed_x, xs));
    auto [hy, cy, decoded] = decoder(h, c, embed(embed_y, in));
    Variable scores = output(F::concat(decoded, 0)), t = F::concat(out, 0);
    Variable loss = F::softmax_cross_entropy(scores, t);
    report({{"loss", loss}, {"accuracy", F::accuracy(scores, t)}}, *this);
    return loss;
  }

  /// What it writes about each of xs: the likeliest digit, then the likeliest behind that, up to
  /// the end.
  std::vector<Sequence> write(const Variables& xs, std::int64_t max_length) const {
    UsingConfig not_training(&Config::train, false);
    no_backprop_mode no_graph;
    auto n = std::ssize(xs);
    auto [h, c, encoded] = encoder({}, {}, embed(embed_x, xs));
    Array digits = xp::full({n}, kEnd, int32, xs[0].device());
    Columns written;
    for (std::int64_t i = 0; i <= max_length; ++i) {
      auto [hy, cy, ys] = decoder(h, c, F::split_axis(embed_y(constant(digits)), n, 0));
      h = hy, c = cy;
      digits = output(F::concat(ys, 0)).array().argmax(1).astype(int32);
      written.push_back(digits);
    }
    Array all = xp::stack(written, 1).to(cpu());
    std::vector<Sequence> sequences;
    for (std::int64_t i = 0; i < n; ++i) {
      Sequence y = all[i].to_vector<std::int32_t>();
      y.erase(std::ranges::find(y, kEnd), y.end());
      sequences.push_back(y);
    }
    return sequences;
  }

 private:
  /// One look-up for all.
  static Variables embed(const L::EmbedID& link, const Variables& sequences) {
    std::vector<std::int64_t> lengths;
    for (const Variable& s : sequences) lengths.push_back(s.shape(0));
    return split(link(F::concat(sequences, 0)), lengths);
  }
};

static std::string text(const Sequence& digits) {
  std::string text;
  for (std::int32_t digit : digits) text += static_cast<char>('0' + digit);
  return text;
}

/// The share of the pairs that the model writes without a mistake; the first three are printed.
static double exactly(const Seq2seq& model, const std::vector<std::pair<Sequence, Sequence>>& pairs,
                      const Options& options) {
  Variables xs;
  for (const auto& [x, y] : pairs) xs.push_back(constant(xp::array(x, options.device())));
  std::vector<Sequence> written = model.write(xs, options.length);
  double right = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [x, y] = pairs[i];
    right += written[i] == y ? 1 : 0;
    if (i >= 3) continue;
    std::cout << "  " << text(x) << " -> " << text(written[i])
              << (written[i] == y ? "" : ", not " + text(y)) << std::endl;
  }
  return right / static_cast<double>(pairs.size());
}

static void train(const Options& options) {
  auto pairs = draw(options.sequences, 1, options);
  auto others = draw(std::max<std::int64_t>(options.sequences / 20, 1), 2, options);
  std::cout << options.task << ": " << pairs.size() << " sequences of up to " << options.length
            << " digits to train with, " << others.size() << " to test" << std::endl;

  Seq2seq model(options);
  model.to(options.device());
  optimizers::Adam optimizer(options.learnrate);
  options.setup(optimizer, model);

  // A batch has sequences of about one length, which the LSTMs read side by side.
  std::vector<std::int64_t> lengths;
  for (const auto& [x, y] : pairs) lengths.push_back(std::ssize(x));
  iterators::BucketOrderSampler buckets(lengths, options.batchsize,
                                        {.batches_per_bucket = 20, .drop_last = true});
  iterators::SerialIterator train_iter(dataset_of(pairs), options.batchsize,
                                       {.order_sampler = buckets});
  iterators::SerialIterator test_iter(dataset_of(others), options.batchsize,
                                      {.repeat = false, .shuffle = false});

  auto loss = [&](const Variables& sequences) { return model(sequences); };
  training::StandardUpdater updater(
      train_iter, optimizer, {.device = options.device(), .converter = as_list, .loss_func = loss});
  training::Trainer trainer(updater, options.stop(), options.out);
  trainer.extend(
      extensions::Evaluator(test_iter, model, {}, {.converter = as_list, .eval_func = loss}));
  trainer.extend(extensions::ObserveValue(
      "exact", [&](training::Trainer&) { return exactly(model, others, options); }));
  trainer.extend(extensions::LogReport());
  trainer.extend(extensions::PrintReport({"epoch", "main/loss", "validation/main/loss",
                                          "validation/main/accuracy", "exact", "elapsed_time"}));
  options.extend(trainer);
  trainer.run();
  serializers::save_npz(options.out + "/model.npz", model);
}

int main(int argc, char** argv) {
  Options options;
  options.epoch = 10;
  options.batchsize = 64;
  options.gradient_clipping = 5;
  // Lengths differ from batch to batch: there is no step that a graph could repeat.
  return TrainingArguments(
             {.description = "Trains two LSTMs to reverse or to sort digits", .capture = false},
             &options)
      .choice("--task", &options.task, {"reverse", "sort"}, "what is to be made of the digits")
      .number("--sequences", &options.sequences, "to train with")
      .number("--length", &options.length, "the most digits of a sequence")
      .number("--unit", &options.unit, "units of the LSTMs, and of a digit")
      .number("--layers", &options.layers, "LSTMs one above the other")
      .real("--learnrate", &options.learnrate, "of Adam")
      .real("--dropout", &options.dropout, "how many elements are dropped between layers")
      .run(argc, argv, [&] { train(options); });
}
