// DCGAN (Radford et al., "Unsupervised representation learning with deep convolutional generative
// adversarial networks"): a generator draws pictures that a discriminator shall take for real ones.
// Two models and two optimizers, which an iteration updates in turn.
#include <iostream>

#include "picture_grid.h"
#include "training_options.h"

using namespace rensa;

struct Options : TrainingOptions {
  std::string dataset = "mnist";
  std::int64_t images = 0, width = 64, latent = 100;
  double learnrate = 2e-4, penalty = 0;
};

static Initializer small() { return initializers::Normal{.scale = 0.02}; }

/// Of numbers z (n, latent) pictures (n, channels, size, size) in [-1, 1]; size is a multiple of 4.
struct Generator : Chain<Generator> {
  std::int64_t width, bottom;
  L::Linear l1;
  L::Deconvolution2D dc2, dc3;
  L::Convolution2D c4;
  L::BatchNormalization bn1, bn2, bn3;

  Generator(const Options& options, std::int64_t channels, std::int64_t size)
      : width(options.width),
        bottom(size / 4),
        l1(options.latent, 2 * width * bottom * bottom, {.initialW = small()}),
        dc2(2 * width, width, 4, {.stride = 2, .pad = 1, .initialW = small()}),
        dc3(width, width, 4, {.stride = 2, .pad = 1, .initialW = small()}),
        c4(width, channels, 3, {.pad = 1, .initialW = small()}),
        bn1(2 * width),
        bn2(width),
        bn3(width) {}
  void members(Visitor& v) override {
    v("l1", l1), v("dc2", dc2), v("dc3", dc3), v("c4", c4);
    v("bn1", bn1), v("bn2", bn2), v("bn3", bn3);
  }

  Variable operator()(const Variable& z) const {
    Variable h = F::relu(bn1(l1(z).reshape({-1, 2 * width, bottom, bottom})));
    h = F::relu(bn2(dc2(h)));
    h = F::relu(bn3(dc3(h)));
    return F::tanh(c4(h));
  }
};

/// Of pictures the logits (n, 1) that they are real.
struct Discriminator : Chain<Discriminator> {
  L::Convolution2D c1, c2, c3;
  L::Linear l4;

  Discriminator(const Options& options, std::int64_t channels, std::int64_t size)
      : c1(channels, options.width, 4, {.stride = 2, .pad = 1, .initialW = small()}),
        c2(options.width, options.width, 4, {.stride = 2, .pad = 1, .initialW = small()}),
        c3(options.width, 2 * options.width, 3, {.pad = 1, .initialW = small()}),
        l4(2 * options.width * (size / 4) * (size / 4), 1, {.initialW = small()}) {}
  void members(Visitor& v) override { v("c1", c1), v("c2", c2), v("c3", c3), v("l4", l4); }

  Variable operator()(const Variable& x) const {
    return l4(F::leaky_relu(c3(F::leaky_relu(c2(F::leaky_relu(c1(x)))))));
  }
};

/// An iteration: the discriminator learns from real and drawn pictures, then the generator from
/// what the discriminator says now.
struct GAN {
  const Options& options;
  const Generator& generator;
  const Discriminator& discriminator;
  Optimizer generators, discriminators;

  void update(const Variable& real) const {
    Variable drawn = constant(draw(real.shape(0)).array());  // no gradient to the generator
    Variable loss = discriminators.update([&] {
      // softplus(-y) is -log of the probability "real" that the logit y stands for.
      Variable cost =
          F::mean(F::softplus(-discriminator(real))) + F::mean(F::softplus(discriminator(drawn)));
      return options.penalty > 0 ? cost + penalty(real) : cost;
    });
    Variable generator_loss = generators.update(
        [&] { return F::mean(F::softplus(-discriminator(draw(real.shape(0))))); });
    report({{"loss", loss}}, discriminator);
    report({{"loss", generator_loss}}, generator);
  }

  Variable draw(std::int64_t n) const {
    Array z = xp::random::normal(0, 1, {n, options.latent}, float32, options.device());
    return generator(constant(z.astype(get_dtype())));
  }

  /// How steep the logits are at real pictures (Mescheder et al., "Which training methods for GANs
  /// do actually converge?"): a gradient that is part of the loss, so that there is a gradient of
  /// that gradient.
  Variable penalty(const Variable& real) const {
    Variable x(real.array());
    Variables slope = grad({F::sum(discriminator(x))}, {x}, {}, true);
    Variable steepness = F::sum(F::square(slope[0]), {1, 2, 3});
    return options.penalty / 2 * F::mean(steepness);
  }
};

/// Pictures (n, channels, size, size) in [-1, 1], without labels.
static Array load(const Options& options) {
  std::int64_t n = options.images > 0 ? options.images : 60000;
  auto data = options.dataset == "cifar10" ? datasets::get_cifar10()
              : options.dataset == "mnist" ? datasets::get_mnist(true, 3)
                                           : datasets::get_synthetic_digits(n, 1);
  Array x = (*data.train.columns())[0];
  x = x[Slice(0, std::min(n, x.shape(0)))];
  if (x.ndim() == 2) x = x.reshape({-1, 1, 28, 28});
  return (x * 2.f - 1.f).astype(get_dtype());
}

static void train(const Options& options) {
  Array x = load(options);
  std::cout << options.dataset << ": pictures " << x.shape() << std::endl;
  Generator generator(options, x.shape(1), x.shape(2));
  Discriminator discriminator(options, x.shape(1), x.shape(2));
  optimizers::Adam generators({.alpha = options.learnrate, .beta1 = 0.5});
  optimizers::Adam discriminators({.alpha = options.learnrate, .beta1 = 0.5});
  options.setup(generators, generator);
  options.setup(discriminators, discriminator);

  iterators::SerialIterator iterator(datasets::TupleDataset(x), options.batchsize);
  GAN gan{options, generator, discriminator, generators, discriminators};
  training::StandardUpdater updater(iterator, {{"gen", generators}, {"dis", discriminators}},
                                    {.device = options.device(),
                                     .update_core = [&](const Variables& in) { gan.update(in[0]); },
                                     .capture = options.capture});
  training::Trainer trainer(updater, options.stop(), options.out);

  // The same 64 numbers are drawn after each epoch.
  Array z = xp::random::normal(0, 1, {64, options.latent}, float32, options.device());
  auto draw = [&](training::Trainer& now) {
    UsingConfig not_training(&Config::train, false);
    no_backprop_mode no_graph;
    Array pictures = generator(constant(z.astype(get_dtype()))).array().astype(float32);
    write_picture_grid(
        options.out + "/drawn_epoch_" + std::to_string(now.updater().epoch()) + ".png",
        (pictures + 1.f) / 2.f, 8);
  };
  trainer.extend(draw, {.name = "draw", .trigger = {1, "epoch"}});
  trainer.extend(extensions::LogReport());
  trainer.extend(extensions::PrintReport({"epoch", "gen/loss", "dis/loss", "elapsed_time"}));
  options.extend(trainer, {"gen/loss", "dis/loss"});
  trainer.run();
  serializers::save_npz(options.out + "/generator.npz", generator);
  options.print_replays(updater.capture_stats());
}

int main(int argc, char** argv) {
  Options options;
  return TrainingArguments({.description = "Trains a network that draws, against one that judges"},
                           &options)
      .choice("--dataset", &options.dataset, {"mnist", "cifar10", "synthetic"}, "the pictures")
      .number("--images", &options.images, "the first so many (0: all)")
      .number("--width", &options.width, "channels of the largest pictures' layers")
      .number("--latent", &options.latent, "numbers that a picture is drawn from")
      .real("--learnrate", &options.learnrate, "of both networks")
      .real("--penalty", &options.penalty, "weight of the gradient penalty")
      .run(argc, argv, [&] { train(options); });
}
