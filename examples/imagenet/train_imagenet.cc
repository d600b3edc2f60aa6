// Photos of things, such as ImageNet's: a network in network, GoogLeNet or ResNet-50. The photos
// lie in a folder with a subfolder for each class, in a text file's list of paths and labels, or in
// files that pack_images has packed; without any they are drawn. On several devices,
//   train_imagenet --devices gpu:0,gpu:1
// or in several processes with a device and a part of the photos each:
//   rensa-run -n 2 train_imagenet --devices gpu:0,gpu:1
#include <cmath>
#include <filesystem>
#include <iostream>
#include <numbers>

#include "arguments.h"
#include "training_place.h"

using namespace rensa;

struct Options : TrainingOptions {
  std::string model = "resnet50", train, val, root = ".";
  std::int64_t images = 0, classes = 1000, size = 0, width = 64, drop = 30, threads = 0;
  double learnrate = 0.01, weight_decay = 1e-4;
};

/// Loss and accuracy of a network's scores, of photos (n, 3, height, width) as uint8.
template <class Network> struct PhotoClassifier : Chain<PhotoClassifier<Network>> {
  Network network;

  explicit PhotoClassifier(Network n) : network(std::move(n)) {}
  void members(Visitor& v) override { v("network", network); }

  Variable operator()(const Variable& photos, const Variable& t) const {
    // Pixels of about mean 0 and deviation 1. A GPU is sent bytes, makes numbers of them itself,
    // and has them lie as its convolutions read them.
    Array pixels = ((photos.array().astype(float32) - 117.f) / 58.f).astype(get_dtype());
    Variable x = constant(pixels.device().is_cuda() ? F::channels_last(pixels) : pixels);
    auto [y, loss] = scores(x, t);
    // The label is among the five best where fewer than five scores are above its own.
    Array own = F::select_item(y, t).array().expand_dims(1);
    Array above = xp::greater(y.array(), own).sum(1);
    report({{"loss", loss},
            {"accuracy", F::accuracy(y, t)},
            {"top5", (above < 5).astype(float32).mean()}},
           *this);
    return loss;
  }

 private:
  std::pair<Variable, Variable> scores(const Variable& x, const Variable& t) const {
    if constexpr (std::is_same_v<Network, L::GoogLeNet>) {
      if (config().train) {  // its two classifiers amid the network learn, too
        auto y = network(x, {"loss1_fc2", "loss2_fc2", "loss3_fc"});
        auto loss = [&](const char* name) { return F::softmax_cross_entropy(y.at(name), t); };
        return {y.at("loss3_fc"), loss("loss3_fc") + 0.3 * (loss("loss1_fc2") + loss("loss2_fc2"))};
      }
    }
    Variable y = network(x);
    return {y, F::softmax_cross_entropy(y, t)};
  }
};

struct Photos {
  Dataset dataset;
  std::int64_t classes;
};

/// In the place of photos: stripes, of ten colours by their labels.
static Photos draw_photos(std::int64_t n) {
  auto draw = [](std::int64_t i) {
    constexpr double kTurn = 2 * std::numbers::pi;
    RandomStream random(static_cast<std::uint64_t>(i));
    double angle = kTurn * random.uniform(), period = 10 + 40 * random.uniform();
    double hue = kTurn * static_cast<double>(i % 10) / 10;
    Array place = xp::arange(256, float32);
    Array waves = xp::sin(place * (kTurn * std::cos(angle) / period) +
                          place.expand_dims(1) * (kTurn * std::sin(angle) / period));
    Array channel = xp::arange(3, float32).reshape({3, 1, 1});
    Array photo = 120 + 60 * xp::cos(channel * (kTurn / 3) - hue) + 40 * waves;
    return Columns{photo.astype(uint8), xp::array(static_cast<std::int32_t>(i % 10))};
  };
  return {Dataset(n, draw), 10};
}

static Photos open(const std::string& path, const Options& options) {
  datasets::ImageDatasetOptions read{
      .root = options.root, .dtype = uint8, .read = {.mode = images::Mode::rgb}};
  if (std::filesystem::is_directory(path)) {
    datasets::ImageFolder folder(path, read);
    return {folder, std::ssize(folder.classes())};
  }
  if (std::filesystem::exists(path)) {
    return {datasets::LabeledImageDataset(path, read), options.classes};
  }
  datasets::PackedImageDataset packed(path, read);
  return {packed, packed.classes().empty() ? options.classes : std::ssize(packed.classes())};
}

static Dataset first(const Dataset& all, std::int64_t n) {
  return n == 0 ? all : datasets::SubDataset(all, 0, std::min(n, all.size()));
}

/// A part of the photo for training; its middle for the tests.
static Dataset in_size(const Dataset& photos, std::int64_t size, bool random_part) {
  if (!random_part) {
    return datasets::TransformDataset(photos, [size](const Columns& in) {
      Array photo = transforms::scale(in[0], size * 8 / 7);
      return Columns{transforms::center_crop(photo, {size, size}), in[1]};
    });
  }
  return datasets::TransformDataset(photos, [size](const Columns& in, RandomStream& random) {
    Array part = transforms::resize(transforms::random_sized_crop(in[0], random), {size, size});
    return Columns{transforms::random_flip(part, random, {.x_random = true}), in[1]};
  });
}

struct Sets {
  Photos train, val;
};

static Sets load(const Options& options) {
  if (options.train.empty()) {
    std::int64_t n = options.images > 0 ? options.images : 2000;
    return {draw_photos(n), draw_photos(n / 10 + 1)};
  }
  Photos photos = open(options.train, options);
  if (!options.val.empty()) return {photos, open(options.val, options)};
  // Without photos of their own the tests have a tenth of those for training.
  auto [train, val] =
      datasets::split_dataset_random(photos.dataset, photos.dataset.size() * 9 / 10, 0);
  return {{train, photos.classes}, {val, photos.classes}};
}

/// What is tested, written and told on the way.
template <class Model>
static void observe(const training::Trainer& trainer, const Options& options,
                    const TrainingPlace& place, Model& model, const Iterator& val_iter) {
  extensions::Evaluator evaluator(val_iter, model, {},
                                  {.progress_bar = extensions::ProgressBarOptions()});
  if (place.is_alone()) {
    trainer.extend(evaluator);
  } else {
    trainer.extend(extensions::AllreducePersistent(model, place.comm));
    trainer.extend(extensions::MultiNodeEvaluator(evaluator, place.comm));
  }
  trainer.extend(extensions::ExponentialShift("lr", 0.1), {.trigger = {options.drop, "epoch"}});
  if (place.tells()) {
    trainer.extend(extensions::observe_lr());
    trainer.extend(extensions::LogReport());
    trainer.extend(extensions::PrintReport({"epoch", "lr", "main/loss", "validation/main/loss",
                                            "main/accuracy", "validation/main/accuracy",
                                            "validation/main/top5", "elapsed_time"}));
  }
  extend(trainer, options, place, {"main/loss", "main/accuracy"});
}

template <class Network>
static void train(const Options& options, const Sets& sets, Network network) {
  TrainingPlace place = find_place(options);
  Dataset photos = first(sets.train.dataset, options.images);
  Dataset others = first(sets.val.dataset, options.images);
  std::int64_t size = options.size > 0 ? options.size : options.model == "nin" ? 227 : 224;
  PhotoClassifier model(std::move(network));
  model.to(place.device);
  if (place.device.is_cuda()) L::channels_last(model);
  if (place.tells()) {
    std::cout << photos.size() << " photos to train with, " << others.size() << " to test, of "
              << sets.train.classes << " classes; " << options.model << " at " << size << " x "
              << size << std::endl;
  }

  optimizers::MomentumSGD optimizer({.lr = options.learnrate, .momentum = 0.9});
  options.setup(optimizer, model);
  optimizer.add_hook(optimizer_hooks::WeightDecay(options.weight_decay));
  if (!place.is_alone()) {
    create_multi_node_optimizer(optimizer, place.comm);
    photos = datasets::scatter_dataset(photos, place.comm, {.shuffle = true, .seed = 1});
    others = datasets::scatter_dataset(others, place.comm);
  }

  // Threads read, cut and resize the photos of the next batches while the network trains.
  auto n_threads = static_cast<int>(options.threads);
  iterators::MultithreadIterator train_iter(in_size(photos, size, true), options.batchsize,
                                            {.n_threads = n_threads});
  iterators::MultithreadIterator val_iter(
      in_size(others, size, false), options.batchsize,
      {.repeat = false, .shuffle = false, .n_threads = n_threads});

  auto [updater, stats] = make_updater(train_iter, optimizer, options, place);
  training::Trainer trainer(updater, options.stop(), options.out);
  observe(trainer, options, place, model, val_iter);
  trainer.run();
  if (!place.tells()) return;
  // Numbers of weights are hardly smaller compressed, and much sooner written otherwise.
  serializers::save_npz(options.out + "/model.npz", model.network, {.compression = false});
  options.print_replays(stats());
}

static void train(const Options& options) {
  Sets sets = load(options);
  std::int64_t classes = sets.train.classes;
  if (options.model == "nin") {
    train(options, sets, L::NIN({.classes = classes}));
  } else if (options.model == "googlenet") {
    train(options, sets, L::GoogLeNet({.classes = classes}));
  } else {
    auto resnet = L::ResNetOptions::torchvision();
    resnet.classes = classes, resnet.width = options.width;
    train(options, sets, L::ResNet50Layers(resnet));
  }
}

int main(int argc, char** argv) {
  Options options;
  options.epoch = 90;
  options.batchsize = 32;
  return TrainingArguments(
             {.description = "Trains a convolutional network on photos", .num_gpus = kAnyNumber},
             &options)
      .choice("--model", &options.model, {"nin", "googlenet", "resnet50"}, "the network")
      .text("--train", &options.train,
            "a folder with a subfolder for each class, a text file of lines 'path label', or the "
            "beginning of packed files' names; without it photos are drawn")
      .text("--val", &options.val, "likewise, to test with; without it a tenth of --train")
      .text("--root", &options.root, "the folder that a text file's paths begin in")
      .number("--classes", &options.classes, "of a text file's labels")
      .number("--images", &options.images, "the first so many of each set (0: all)")
      .number("--size", &options.size, "height and width (0: 227 for nin, 224 for the others)")
      .number("--width", &options.width, "channels of ResNet-50's first convolution")
      .number("--threads", &options.threads, "that read photos (0: one for each core)")
      .number("--drop", &options.drop, "epochs after which the learning rate falls to a tenth")
      .real("--learnrate", &options.learnrate, "at the beginning")
      .real("--weight_decay", &options.weight_decay,
            "a share of each weight, added to its gradient")
      .run(argc, argv, [&] { train(options); });
}
