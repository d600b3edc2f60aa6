// The command line, the data and the first line of the MNIST examples.
#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "arguments.h"
#include "rensa/array/random.h"

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

void parse(CLI::App& app, int argc, char** argv, const ProgramOptions& program, Options* options) {
  app.option_defaults()->always_capture_default();
  bool several = program.num_gpus > 1;
  app.add_option("--device,--devices", options->devices,
                 several ? "cpu, gpu:0 and so on, separated by commas; one stands for all"
                         : "cpu, gpu:0 and so on")
      ->delimiter(',')
      ->expected(1, several ? program.num_gpus : 1)
      ->default_str(several ? "the first " + std::to_string(program.num_gpus) + " GPUs"
                            : "gpu:0, or cpu where there is none");
  app.add_option("--epoch,-e", options->epoch, "sweeps over the training set")
      ->check(CLI::PositiveNumber);
  app.add_option("--batchsize,-b", options->batchsize, "images in a batch")
      ->check(CLI::PositiveNumber);
  app.add_option("--unit,-u", options->unit, "units of a hidden layer")->check(CLI::PositiveNumber);
  app.add_option("--images", options->images, "training images to use (0: all)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--dataset", options->dataset, "auto: MNIST if it can be had")
      ->check(CLI::IsMember({"auto", "mnist", "synthetic"}));
  app.add_option("--optimizer", options->optimizer)->check(CLI::IsMember({"adam", "sgd"}));
  app.add_option("--out,-o", options->out, "folder of the log");
  app.add_option("--seed", options->seed, "of the initial weights and the order of the examples");
  if (program.capture) {
    app.add_flag("--capture", options->capture, "record a step as a CUDA graph and replay it");
  }
  if (program.resume) {
    app.add_flag("--resume", options->resume,
                 "leave a snapshot after each epoch, and go on from the latest one in --out");
  }
  if (program.reduction) {
    app.add_option("--reduction", options->reduction, "of the gradients of all devices")
        ->check(CLI::IsMember({"sum", "mean"}));
  }
  app.parse(argc, argv);
}

}  // namespace

Optimizer make_optimizer(const std::string& name) {
  if (name == "sgd") return optimizers::SGD();
  return optimizers::Adam();
}

int run_example(int argc, char** argv, const ProgramOptions& program,
                int (*train)(const Options&, const std::vector<Device>&,
                             const datasets::TrainTest&)) {
  CLI::App app(program.description);
  Options options;
  options.batchsize = program.batchsize;
  try {
    parse(app, argc, argv, program, &options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  try {
    std::vector<Device> devices = find_devices(options.devices, program.num_gpus);
    if (options.seed) xp::random::seed(*options.seed);
    Data data = load_data(options);
    std::string names;
    for (Device device : devices) names += (names.empty() ? "" : ", ") + device.str();
    std::cout << "device: " << names << "; data: " << data.description
              << "; units: " << options.unit << "; batch size: " << options.batchsize
              << "; optimizer: " << options.optimizer << "; epochs: " << options.epoch << std::endl;
    if (!data.note.empty()) std::cerr << data.note << std::endl;
    return train(options, devices, data.sets);
  } catch (const training::Interrupted& interrupted) {
    std::cerr << argv[0] << ": " << interrupted.what() << "\n";
    return 128 + interrupted.signal();
  } catch (const DeviceError& error) {
    std::cerr << argv[0] << ": " << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << "\n";
    return 1;
  }
}
