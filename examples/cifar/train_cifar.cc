// CIFAR-10 and CIFAR-100: a residual network, or VGG's, on images that are shifted and mirrored at
// random.
#include <iostream>

#include "training_options.h"

using namespace rensa;

struct Options : TrainingOptions {
  std::string model = "resnet18", dataset = "cifar10";
  std::int64_t images = 0, width = 64, drop = 25;
  double learnrate = 0.05, weight_decay = 5e-4;
};

/// Images in the place of CIFAR's: noise with bright rows, as far from each other as the label
/// says.
static datasets::TupleDataset draw_images(std::int64_t n) {
  Array x = xp::random::uniform(0, 1, {n, 3, 32, 32}).astype(float32);
  Array t = (xp::arange(n) % 10).astype(int32);
  for (std::int64_t i = 0; i < n; ++i) x[{i, Slice(), Slice(0, 32, 2 + i % 10)}] = 1;
  return datasets::TupleDataset(x, t);
}

struct Data {
  Dataset train, test;
};

static Data load(const Options& options) {
  if (options.dataset == "synthetic") {
    std::int64_t n = options.images > 0 ? options.images : 2000;
    return {draw_images(n), draw_images(n / 5 + 1)};
  }
  auto data = options.dataset == "cifar10" ? datasets::get_cifar10() : datasets::get_cifar100();
  if (options.images == 0) return {data.train, data.test};
  auto first = [&](const Dataset& all) {
    return datasets::SubDataset(all, 0, std::min(options.images, all.size()));
  };
  return {first(data.train), first(data.test)};
}

/// Pixels of about mean 0 and deviation 1.
static Array normalize(const Array& image) { return (image - 0.47f) * 4.f; }

/// A part of the image padded by 4 pixels at each side, mirrored or not.
static Array augment(const Array& image, RandomStream& random) {
  Array padded = xp::pad(normalize(image), {{0, 0}, {4, 4}, {4, 4}});
  return transforms::random_flip(transforms::random_crop(padded, {32, 32}, random), random,
                                 {.x_random = true});
}

template <class Network> static void train(const Options& options, Network network) {
  Data data = load(options);
  std::cout << options.dataset << ": " << data.train.size() << " images to train with, "
            << data.test.size() << " to test; " << options.model << std::endl;

  auto model = L::Classifier(std::move(network));
  model.to(options.device());
  optimizers::MomentumSGD optimizer({.lr = options.learnrate, .momentum = 0.9});
  options.setup(optimizer, model);
  optimizer.add_hook(optimizer_hooks::WeightDecay(options.weight_decay));

  // Images are augmented by threads of their own while the network trains.
  Dtype dtype = get_dtype();  // what the network computes in
  datasets::TransformDataset augmented(data.train, [=](const Columns& in, RandomStream& random) {
    return Columns{augment(in[0], random).astype(dtype), in[1]};
  });
  datasets::TransformDataset plain(data.test, [=](const Columns& in) {
    return Columns{normalize(in[0]).astype(dtype), in[1]};
  });
  iterators::MultithreadIterator train_iter(augmented, options.batchsize);
  iterators::MultithreadIterator test_iter(plain, options.batchsize,
                                           {.repeat = false, .shuffle = false});

  training::StandardUpdater updater(train_iter, optimizer,
                                    {.device = options.device(), .capture = options.capture});
  training::Trainer trainer(updater, options.stop(), options.out);
  trainer.extend(extensions::Evaluator(test_iter, model, {},
                                       {.progress_bar = extensions::ProgressBarOptions()}));
  trainer.extend(extensions::ExponentialShift("lr", 0.5), {.trigger = {options.drop, "epoch"}});
  trainer.extend(extensions::observe_lr());
  trainer.extend(extensions::LogReport());
  trainer.extend(
      extensions::PrintReport({"epoch", "lr", "main/loss", "validation/main/loss", "main/accuracy",
                               "validation/main/accuracy", "elapsed_time"}));
  options.extend(trainer);
  trainer.run();
  serializers::save_npz(options.out + "/model.npz", model);
  options.print_replays(updater.capture_stats());
}

static void train(const Options& options) {
  std::int64_t classes = options.dataset == "cifar100" ? 100 : 10;
  if (options.model == "vgg16") {
    auto vgg = L::VGGOptions::cifar();
    vgg.classes = classes, vgg.width = options.width;
    train(options, L::VGG16Layers(vgg));
  } else {
    auto resnet = L::ResNetOptions::cifar();
    resnet.classes = classes, resnet.width = options.width;
    train(options, L::ResNet18Layers(resnet));
  }
}

int main(int argc, char** argv) {
  Options options;
  options.epoch = 150;
  options.batchsize = 128;
  return TrainingArguments({.description = "Trains a convolutional network on CIFAR"}, &options)
      .choice("--model", &options.model, {"resnet18", "vgg16"}, "the network")
      .choice("--dataset", &options.dataset, {"cifar10", "cifar100", "synthetic"}, "the images")
      .number("--images", &options.images, "the first so many of each set (0: all)")
      .number("--width", &options.width, "channels of the first convolution")
      .number("--drop", &options.drop, "epochs after which the learning rate is halved")
      .real("--learnrate", &options.learnrate, "at the beginning")
      .real("--weight_decay", &options.weight_decay,
            "a share of each weight, added to its gradient")
      .run(argc, argv, [&] { train(options); });
}
