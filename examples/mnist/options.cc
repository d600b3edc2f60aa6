// The command line, the data and the first line of the MNIST examples.
#include "options.h"

#include <algorithm>
#include <iostream>

using namespace rensa;

namespace {

struct Data {
  datasets::TrainTest sets;
  std::string description;
  std::string note;  // why it is not what was looked for first
};

/// The first `count` of a data set.
datasets::TupleDataset first(const datasets::TupleDataset& all, std::int64_t count) {
  auto head = [&](const Array& column) { return Array(column[{Slice(count)}]); };
  return datasets::TupleDataset(head((*all.columns())[0]), head((*all.columns())[1]));
}

/// The images in the dtype that the parameters have.
datasets::TupleDataset in_dtype(const datasets::TupleDataset& all) {
  return datasets::TupleDataset((*all.columns())[0].astype(get_dtype(), {.copy = false}),
                                (*all.columns())[1]);
}

/// MNIST where it can be had; else, unless it was asked for, the generated digits.
Data load_data(const Options& options) {
  std::int64_t train = options.images > 0 ? options.images : 60000;
  std::int64_t test = std::max<std::int64_t>(1, train / 6);
  auto drawn = [&] { return datasets::get_synthetic_digits(train, test); };
  if (options.dataset == "synthetic") return {drawn(), "generated digits, not MNIST", ""};
  bool found = !datasets::find_mnist().empty();
  if (!found) std::cerr << "MNIST is not on this machine: downloading it (11 MB)" << std::endl;
  try {
    datasets::TrainTest mnist = datasets::get_mnist();
    if (options.images > 0) mnist = {first(mnist.train, train), first(mnist.test, test)};
    return {mnist, "MNIST from " + datasets::find_mnist(), ""};
  } catch (const SerializationError& error) {
    if (found || options.dataset == "mnist") throw;  // a damaged file is not passed over
    return {drawn(), "generated digits, not MNIST (which is not at hand)", error.what()};
  }
}

}  // namespace

Optimizer make_optimizer(const std::string& name) {
  if (name == "sgd") return optimizers::SGD();
  return optimizers::Adam();
}

int run_example(int argc, char** argv, const TrainingProgram& program,
                void (*train)(const Options& options, const datasets::TrainTest& data),
                bool data_parallel) {
  Options options;
  if (data_parallel) options.batchsize = 400;
  TrainingArguments arguments(program, &options);
  arguments.number("--unit,-u", &options.unit, "units of a hidden layer")
      .number("--images", &options.images, "training images to use (0: all)")
      .choice("--dataset", &options.dataset, {"auto", "mnist", "synthetic"},
              "auto: MNIST if it can be had")
      .choice("--optimizer", &options.optimizer, {"adam", "sgd"},
              "how weights follow their gradients");
  if (data_parallel) {
    arguments.choice("--reduction", &options.reduction, {"sum", "mean"},
                     "of the gradients of all devices");
  }
  return arguments.run(argc, argv, [&] {
    Data data = load_data(options);
    std::cout << "data: " << data.description << "; units: " << options.unit
              << "; optimizer: " << options.optimizer << std::endl;
    if (!data.note.empty()) std::cerr << data.note << std::endl;
    train(options, {in_dtype(data.sets.train), in_dtype(data.sets.test)});
  });
}
