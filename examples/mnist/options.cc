// The command line, the data and the first line of the MNIST examples.
#include "options.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "rensa/array/random.h"

using namespace rensa;

namespace {

struct Data {
  datasets::TrainTest sets;
  std::string description;
  std::string note;  // why it is not what was looked for first
};

/// MNIST where it can be had; else, unless it was asked for, the generated digits.
Data load_data(const std::string& name) {
  if (name != "synthetic") {
    bool found = !datasets::find_mnist().empty();
    try {
      datasets::TrainTest mnist = datasets::get_mnist();
      return {mnist, "MNIST from " + datasets::find_mnist(), ""};
    } catch (const SerializationError& error) {
      if (found || name == "mnist") throw;  // a damaged file is not passed over
      return {datasets::get_synthetic_digits(),
              "generated digits, not MNIST (which is not at hand)", error.what()};
    }
  }
  return {datasets::get_synthetic_digits(), "generated digits, not MNIST", ""};
}

void parse(CLI::App& app, int argc, char** argv, const ProgramOptions& program, Options* options) {
  auto* devices = app.add_option("--device,--devices", options->devices,
                                 "cpu, gpu:0 and so on, separated by commas");
  devices->delimiter(',')->expected(program.num_devices);
  app.add_option("--epoch,-e", options->epoch, "sweeps over the training set")
      ->check(CLI::PositiveNumber);
  app.add_option("--batchsize,-b", options->batchsize, "images in a batch");
  app.add_option("--unit,-u", options->unit, "units of a hidden layer")->check(CLI::PositiveNumber);
  app.add_option("--dataset", options->dataset)
      ->check(CLI::IsMember({"auto", "mnist", "synthetic"}));
  app.add_option("--optimizer", options->optimizer)->check(CLI::IsMember({"adam", "sgd"}));
  app.add_option("--out,-o", options->out, "folder of the log");
  app.add_option("--seed", options->seed, "of the initial weights and the order of the examples");
  if (program.capture) {
    app.add_flag("--capture", options->capture, "record a step as a CUDA graph and replay it");
  }
  if (program.reduction) {
    app.add_option("--reduction", options->reduction, "of the gradients of all devices")
        ->check(CLI::IsMember({"sum", "mean"}));
  }
  app.parse(argc, argv);
}

/// The devices asked for, or the first GPUs; a program for one device runs on the CPU where there
/// is no GPU. Throws DeviceError for one that is not there.
std::vector<Device> find_devices(const Options& options, const ProgramOptions& program) {
  std::vector<Device> devices;
  if (!options.devices.empty()) {
    for (const std::string& name : options.devices) devices.emplace_back(name);
  } else if (program.num_devices == 1) {
    devices = {try_gpu()};
  } else if (num_gpus() < program.num_devices) {
    throw DeviceError("this program needs " + std::to_string(program.num_devices) + " GPUs, and " +
                      std::to_string(num_gpus()) + (num_gpus() == 1 ? " is" : " are") +
                      " there; --devices cpu,cpu runs it without");
  } else {
    for (int i = 0; i < program.num_devices; ++i) devices.push_back(gpu(i));
  }
  for (Device device : devices) check_device(device);
  return devices;
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
    std::vector<Device> devices = find_devices(options, program);
    if (options.seed) xp::random::seed(*options.seed);
    Data data = load_data(options.dataset);
    std::string names;
    for (Device device : devices) names += (names.empty() ? "" : ", ") + device.str();
    std::cout << "device: " << names << "; data: " << data.description
              << "; units: " << options.unit << "; batch size: " << options.batchsize
              << "; optimizer: " << options.optimizer << "; epochs: " << options.epoch << std::endl;
    if (!data.note.empty()) std::cerr << data.note << std::endl;
    return train(options, devices, data.sets);
  } catch (const DeviceError& error) {
    std::cerr << argv[0] << ": " << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << "\n";
    return 1;
  }
}
