// The command line that the programs which train share.
#include "training_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "arguments.h"

using namespace rensa;

training::Trigger TrainingOptions::stop() const {
  return iterations > 0 ? training::Trigger(iterations, "iteration")
                        : training::Trigger(epoch, "epoch");
}

void TrainingOptions::setup(const Optimizer& optimizer, Link& model) const {
  optimizer.setup(model);
  if (gradient_clipping > 0) {
    optimizer.add_hook(optimizer_hooks::GradientClipping(gradient_clipping));
  }
  if (dtype == "mixed_bf16" || dtype == "mixed16") optimizer.use_fp32_update();
  if (dtype == "mixed16") optimizer.loss_scaling();
}

void TrainingOptions::extend(const training::Trainer& trainer,
                             const std::vector<std::string>& entries) const {
  trainer.extend(extensions::ProgressBar({.update_interval = 10, .entries = entries}));
  if (!resume) return;
  trainer.extend(extensions::snapshot(
      {.writer = extensions::snapshot_writers::ThreadWriter(), .n_retains = 2, .autoload = true}));
}

void TrainingOptions::print_replays(const CaptureStats& stats) const {
  if (!capture) return;
  std::cout << "captured: " << stats.recordings << " recordings, " << stats.replays << " replays, "
            << stats.fallbacks << " fallbacks" << std::endl;
}

std::vector<std::pair<std::string, Device>> TrainingOptions::replicas() const {
  std::vector<std::pair<std::string, Device>> replicas;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    replicas.emplace_back(i == 0 ? "main" : "replica" + std::to_string(i), devices[i]);
  }
  return replicas;
}

std::string TrainingOptions::str() const {
  std::string names;
  for (Device device : devices) names += (names.empty() ? "" : ", ") + device.str();
  return "device: " + names + "; batch size: " + std::to_string(batchsize) + "; dtype: " + dtype +
         (iterations > 0 ? "; iterations: " + std::to_string(iterations)
                         : "; epochs: " + std::to_string(epoch));
}

struct TrainingArguments::State {
  CLI::App app;
  int num_gpus;
  std::vector<std::string> devices;
  std::optional<std::int64_t> gpus_wanted;
  TrainingOptions* options;
};

void TrainingArguments::add_devices(int num_gpus) {
  bool several = num_gpus > 1, any = num_gpus == kAnyNumber;
  CLI::App& app = state_->app;
  auto* devices = app.add_option("--device,--devices,-d", state_->devices,
                                 several ? "cpu, gpu:0 and so on, separated by commas; one stands "
                                           "for all"
                                 : any   ? "cpu, gpu:0 and so on; several, separated by commas, "
                                           "share each batch"
                                         : "cpu, gpu:0 and so on");
  devices->delimiter(',')->default_str(several ? "the first " + std::to_string(num_gpus) + " GPUs"
                                               : "gpu:0, or cpu where there is none");
  if (any) devices->expected(-1);
  else devices->expected(1, std::max(1, num_gpus));
  app.add_option("--num_gpus", state_->gpus_wanted,
                 "in place of --device: the first so many GPUs, or as many as there are (0: cpu)")
      ->check(CLI::NonNegativeNumber)
      ->excludes(devices);
}

TrainingArguments::TrainingArguments(const TrainingProgram& program, TrainingOptions* options)
    : state_(new State) {
  state_->num_gpus = program.num_gpus;
  state_->options = options;
  CLI::App& app = state_->app;
  app.description(program.description);
  app.option_defaults()->always_capture_default();
  add_devices(program.num_gpus);
  if (program.epoch) {
    app.add_option("--epoch,-e", options->epoch, "sweeps over the training set")
        ->check(CLI::PositiveNumber);
  }
  app.add_option("--batchsize,-b", options->batchsize, "examples in a batch")
      ->check(CLI::PositiveNumber);
  app.add_option("--dtype", options->dtype,
                 "bf16: products alone; mixed_bf16, mixed16: parameters, too")
      ->check(CLI::IsMember({"float32", "bf16", "mixed_bf16", "mixed16"}));
  app.add_option("--gradient_clipping", options->gradient_clipping,
                 "the greatest norm of all gradients (0: any)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--out,-o", options->out, "folder of the log");
  app.add_option("--seed", options->seed, "of the initial weights and the order of the examples");
  if (program.iterations) {
    bool alone = !program.epoch;
    CLI::Validator positive = CLI::PositiveNumber, at_least_0 = CLI::NonNegativeNumber;
    app.add_option("--iterations", options->iterations,
                   alone ? "updates of the model" : "iterations in place of epochs (0: epochs)")
        ->check(alone ? positive : at_least_0);
  }
  if (program.capture) {
    app.add_flag("--capture", options->capture, "record a step as a CUDA graph and replay it");
  }
  if (program.resume) {
    app.add_flag("--resume,-r", options->resume,
                 "leave a snapshot after each epoch, and go on from the latest one in --out");
  }
}

TrainingArguments::~TrainingArguments() = default;

TrainingArguments& TrainingArguments::number(const std::string& name, std::int64_t* value,
                                             const std::string& help) {
  CLI::Validator positive = CLI::PositiveNumber, at_least_0 = CLI::NonNegativeNumber;
  state_->app.add_option(name, *value, help)->check(*value > 0 ? positive : at_least_0);
  return *this;
}

TrainingArguments& TrainingArguments::real(const std::string& name, double* value,
                                           const std::string& help) {
  state_->app.add_option(name, *value, help)->check(CLI::NonNegativeNumber);
  return *this;
}

TrainingArguments& TrainingArguments::text(const std::string& name, std::string* value,
                                           const std::string& help) {
  state_->app.add_option(name, *value, help);
  return *this;
}

TrainingArguments& TrainingArguments::choice(const std::string& name, std::string* value,
                                             const std::vector<std::string>& choices,
                                             const std::string& help) {
  state_->app.add_option(name, *value, help)->check(CLI::IsMember(choices));
  return *this;
}

int TrainingArguments::run(int argc, char** argv, const std::function<void()>& train) {
  TrainingOptions& options = *state_->options;
  try {
    state_->app.parse(argc, argv);
    options.devices = state_->gpus_wanted ? clamp_gpus(*state_->gpus_wanted, state_->num_gpus)
                                          : find_devices(state_->devices, state_->num_gpus);
    if (options.seed) xp::random::seed(*options.seed);
    DefaultDtype of_parameters = float32;
    if (options.dtype == "mixed_bf16") of_parameters = mixed_bf16;
    if (options.dtype == "mixed16") of_parameters = mixed16;
    UsingConfig parameters(&Config::dtype, of_parameters);
    std::optional<Autocast> products;
    if (options.dtype == "bf16") products.emplace(bfloat16);
    std::cout << options.str() << std::endl;
    train();
    return 0;
  } catch (const CLI::ParseError& error) {
    return state_->app.exit(error);
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
