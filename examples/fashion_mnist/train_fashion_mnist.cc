// Fashion-MNIST, pictures of clothes, or Kuzushiji-MNIST, old Japanese letters: a small
// convolutional network with dropout, on pictures that are mirrored and shifted at random.
#include <algorithm>
#include <iostream>

#include "training_options.h"

using namespace rensa;

struct Options : TrainingOptions {
  std::string dataset = "fashion-mnist";
  std::int64_t images = 0, width = 32;
  double learnrate = 1e-3, dropout = 0.3;
};

static const std::vector<std::string> kClothes = {"T-shirt", "trousers", "pullover", "dress",
                                                  "coat",    "sandal",   "shirt",    "sneaker",
                                                  "bag",     "boot"};

/// Of pictures x (n, 1, 28, 28) the scores (n, 10).
struct Net : Chain<Net> {
  L::Convolution2D c1, c2, c3;
  L::BatchNormalization bn1, bn2, bn3;
  L::Linear l4, l5;
  double dropout;

  explicit Net(const Options& options)
      : c1(1, options.width, 3, {.pad = 1, .nobias = true}),
        c2(options.width, 2 * options.width, 3, {.pad = 1, .nobias = true}),
        c3(2 * options.width, 4 * options.width, 3, {.pad = 1, .nobias = true}),
        bn1(options.width),
        bn2(2 * options.width),
        bn3(4 * options.width),
        l4(8 * options.width),
        l5(10),
        dropout(options.dropout) {}
  void members(Visitor& v) override {
    v("c1", c1), v("c2", c2), v("c3", c3);
    v("bn1", bn1), v("bn2", bn2), v("bn3", bn3);
    v("l4", l4), v("l5", l5);
  }
  Variable operator()(const Variable& x) const {
    Variable h = F::max_pooling_2d(F::relu(bn1(c1(x))), 2);
    h = F::max_pooling_2d(F::relu(bn2(c2(h))), 2);
    h = F::max_pooling_2d(F::relu(bn3(c3(h))), 2);
    return l5(F::dropout(F::relu(l4(F::dropout(h, dropout))), dropout));
  }
};

static datasets::TrainTest load(const Options& options) {
  if (options.dataset == "fashion-mnist") return datasets::get_fashion_mnist(true, 3);
  if (options.dataset == "kuzushiji-mnist") return datasets::get_kuzushiji_mnist(true, 3);
  std::int64_t n = options.images > 0 ? options.images : 10000;
  auto pictures = [](const datasets::TupleDataset& digits) {
    return datasets::TupleDataset((*digits.columns())[0].reshape({-1, 1, 28, 28}),
                                  (*digits.columns())[1]);
  };
  datasets::TrainTest digits = datasets::get_synthetic_digits(n, n / 5 + 1);
  return {pictures(digits.train), pictures(digits.test)};
}

static Dataset first(const Dataset& all, std::int64_t n) {
  return n == 0 ? all : datasets::SubDataset(all, 0, std::min(n, all.size()));
}

/// Clothes look as well from the other side; letters do not.
static Array augment(const Array& picture, RandomStream& random, bool mirror) {
  Array padded = xp::pad(picture, {{0, 0}, {2, 2}, {2, 2}});
  return transforms::random_flip(transforms::random_crop(padded, {28, 28}, random), random,
                                 {.x_random = mirror});
}

/// How many of each class are taken for what they are.
template <class Model>
static void print_recalls(const Model& model, const Iterator& test, Device device) {
  UsingConfig not_training(&Config::train, false);
  no_backprop_mode no_graph;
  Array right = xp::zeros({10}, float32, device), all = xp::zeros({10}, float32, device);
  Converter convert;
  test.reset();
  while (auto batch = test.next()) {
    Columns columns = convert(*batch, device);
    Array found = model(constant(columns[0])).array().argmax(1);
    xp::scatter_add(right, columns[1], xp::equal(found, columns[1]).astype(float32));
    xp::scatter_add(all, columns[1], xp::ones(columns[1].shape(), float32, device));
  }
  std::vector<float> recalls = (right / xp::maximum(all, 1)).to_vector<float>();
  for (std::size_t i = 0; i < recalls.size(); ++i) {
    std::cout << "  " << kClothes[i] << " " << recalls[i] << std::endl;
  }
}

static void train(const Options& options) {
  datasets::TrainTest data = load(options);
  Dataset digits = first(data.train, options.images), test = first(data.test, options.images);
  std::cout << options.dataset << ": " << digits.size() << " pictures to train with, "
            << test.size() << " to test" << std::endl;

  auto model = L::Classifier(Net(options));
  model.to(options.device());
  optimizers::Adam optimizer(options.learnrate);
  options.setup(optimizer, model);

  Dtype dtype = get_dtype();  // what the network computes in
  bool mirror = options.dataset == "fashion-mnist";
  datasets::TransformDataset augmented(digits, [=](const Columns& in, RandomStream& random) {
    return Columns{augment(in[0], random, mirror).astype(dtype), in[1]};
  });
  datasets::TransformDataset plain(test, [=](const Columns& in) {
    return Columns{in[0].astype(dtype), in[1]};
  });
  iterators::MultithreadIterator train_iter(augmented, options.batchsize);
  iterators::MultithreadIterator test_iter(plain, options.batchsize,
                                           {.repeat = false, .shuffle = false});

  training::StandardUpdater updater(train_iter, optimizer,
                                    {.device = options.device(), .capture = options.capture});
  training::Trainer trainer(updater, options.stop(), options.out);
  trainer.extend(extensions::Evaluator(test_iter, model));
  trainer.extend(extensions::ExponentialShift("alpha", 0.9), {.trigger = {1, "epoch"}});
  trainer.extend(extensions::LogReport());
  trainer.extend(
      extensions::PrintReport({"epoch", "main/loss", "validation/main/loss", "main/accuracy",
                               "validation/main/accuracy", "elapsed_time"}));
  options.extend(trainer);
  trainer.run();
  serializers::save_npz(options.out + "/model.npz", model);
  options.print_replays(updater.capture_stats());
  if (mirror) print_recalls(model.predictor, test_iter, options.device());
}

int main(int argc, char** argv) {
  Options options;
  return TrainingArguments({.description = "Trains a convolutional network on Fashion-MNIST"},
                           &options)
      .choice("--dataset", &options.dataset, {"fashion-mnist", "kuzushiji-mnist", "synthetic"},
              "the pictures")
      .number("--images", &options.images, "the first so many of each set (0: all)")
      .number("--width", &options.width, "channels of the first convolution")
      .real("--learnrate", &options.learnrate, "of Adam, at the beginning")
      .real("--dropout", &options.dropout, "how many elements are dropped")
      .run(argc, argv, [&] { train(options); });
}
