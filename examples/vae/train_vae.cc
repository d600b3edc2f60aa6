// A variational auto-encoder of digits (Kingma and Welling, "Auto-encoding variational Bayes"): it
// learns to put a picture into a few numbers, and to draw it from these.
#include <iostream>

#include "picture_grid.h"
#include "training_options.h"

using namespace rensa;

struct Options : TrainingOptions {
  std::string dataset = "mnist";
  std::int64_t images = 0, unit = 500, latent = 20;
  double beta = 1;
};

struct VAE : Chain<VAE> {
  L::Linear encoder, mean, ln_var, decoder, output;
  double beta;

  explicit VAE(const Options& options)
      : encoder(784, options.unit),
        mean(options.unit, options.latent),
        ln_var(options.unit, options.latent),
        decoder(options.latent, options.unit),
        output(options.unit, 784),
        beta(options.beta) {}
  void members(Visitor& v) override {
    v("encoder", encoder), v("mean", mean), v("ln_var", ln_var);
    v("decoder", decoder), v("output", output);
  }

  /// Of the numbers z (n, latent) the logits of the pixels (n, 784).
  Variable decode(const Variable& z) const { return output(F::relu(decoder(z))); }

  /// The loss of pictures x (n, 784): how far what is drawn is from x, and beta times how much the
  /// numbers of one picture tell, against those that are drawn for no picture.
  Variable operator()(const Variable& x) const {
    Variable h = F::relu(encoder(x)), mu = mean(h), log_variance = ln_var(h);
    Variable z = F::gaussian(mu, log_variance);
    Variable distance = F::mean(F::sum(F::bernoulli_nll(x, decode(z), "no"), 1));
    Variable kl = F::mean(F::sum(F::gaussian_kl_divergence(mu, log_variance, "no"), 1));
    Variable loss = distance + beta * kl;
    report({{"loss", loss}, {"distance", distance}, {"kl", kl}}, *this);
    return loss;
  }
};

struct Data {
  Dataset train, test;
};

static Data load(const Options& options) {
  std::int64_t n = options.images > 0 ? options.images : 60000, n_test = n / 6 + 1;
  auto digits = options.dataset == "mnist" ? datasets::get_mnist()
                                           : datasets::get_synthetic_digits(n, n_test);
  auto first = [](const datasets::TupleDataset& all, std::int64_t count) {
    datasets::TupleDataset pictures((*all.columns())[0].astype(get_dtype()));
    return datasets::SubDataset(pictures, 0, std::min(count, all.size()));
  };
  return {first(digits.train, n), first(digits.test, n_test)};
}

static void train(const Options& options) {
  Data data = load(options);
  std::cout << options.dataset << ": " << data.train.size() << " pictures to train with, "
            << data.test.size() << " to test; " << options.latent << " numbers for each"
            << std::endl;

  VAE model(options);
  model.to(options.device());
  optimizers::Adam optimizer;
  options.setup(optimizer, model);

  iterators::SerialIterator train_iter(data.train, options.batchsize);
  iterators::SerialIterator test_iter(data.test, options.batchsize,
                                      {.repeat = false, .shuffle = false});
  training::StandardUpdater updater(train_iter, optimizer,
                                    {.device = options.device(), .capture = options.capture});
  training::Trainer trainer(updater, options.stop(), options.out);
  trainer.extend(extensions::Evaluator(test_iter, model));

  // The same 64 numbers are drawn after each epoch.
  Array z =
      xp::random::normal(0, 1, {64, options.latent}, float32, options.device()).astype(get_dtype());
  auto draw = [&](training::Trainer& now) {
    no_backprop_mode no_graph;
    Variable pixels = F::sigmoid(model.decode(constant(z)));
    write_picture_grid(
        options.out + "/drawn_epoch_" + std::to_string(now.updater().epoch()) + ".png",
        pixels.array().reshape({64, 1, 28, 28}), 8);
  };
  trainer.extend(draw, {.name = "draw", .trigger = {1, "epoch"}});
  trainer.extend(extensions::LogReport());
  trainer.extend(extensions::PrintReport(
      {"epoch", "main/loss", "validation/main/loss", "main/distance", "main/kl", "elapsed_time"}));
  options.extend(trainer);
  trainer.run();
  serializers::save_npz(options.out + "/model.npz", model);
  options.print_replays(updater.capture_stats());
}

int main(int argc, char** argv) {
  Options options;
  return TrainingArguments({.description = "Trains a variational auto-encoder on digits"}, &options)
      .choice("--dataset", &options.dataset, {"mnist", "synthetic"}, "the pictures")
      .number("--images", &options.images, "the first so many (0: all)")
      .number("--unit", &options.unit, "units of the encoder and the decoder")
      .number("--latent", &options.latent, "numbers that a picture is put into")
      .real("--beta", &options.beta, "weight of the divergence")
      .run(argc, argv, [&] { train(options); });
}
