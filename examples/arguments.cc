// The command line of the small examples.
#include "arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

using namespace rensa;

namespace {
struct ByDevice {
  std::int64_t *value, on_gpu, on_cpu;
};
}  // namespace

struct Arguments::State {
  CLI::App app;
  int num_gpus;
  std::vector<std::string> devices;
  std::vector<ByDevice> by_device;
};

Arguments::Arguments(const std::string& description) : Arguments(description, 0) {}

Arguments::Arguments(const std::string& description, int num_gpus) : state_(new State) {
  state_->num_gpus = num_gpus;
  state_->app.description(description);
  bool several = num_gpus > 1;
  state_->app
      .add_option("--device,--devices", state_->devices,
                  several ? "cpu, gpu:0 and so on, separated by commas; one stands for all"
                          : "cpu, gpu:0 and so on")
      ->delimiter(',')
      ->expected(1, several ? num_gpus : 1)
      ->default_str(several         ? "the first " + std::to_string(num_gpus) + " GPUs"
                    : num_gpus == 1 ? "gpu:0"
                                    : "gpu:0, or cpu where there is none");
}

Arguments::~Arguments() = default;

Arguments& Arguments::number(const std::string& name, std::int64_t* value,
                             const std::string& help) {
  state_->app.add_option(name, *value, help)->check(CLI::PositiveNumber)->capture_default_str();
  return *this;
}

Arguments& Arguments::number(const std::string& name, std::int64_t* value, std::int64_t on_gpu,
                             std::int64_t on_cpu, const std::string& help) {
  *value = 0;
  state_->by_device.push_back({value, on_gpu, on_cpu});
  state_->app.add_option(name, *value, help)
      ->check(CLI::PositiveNumber)
      ->default_str(std::to_string(on_gpu) + ", on the CPU " + std::to_string(on_cpu));
  return *this;
}

Arguments& Arguments::text(const std::string& name, std::string* value, const std::string& help) {
  state_->app.add_option(name, *value, help)->capture_default_str();
  return *this;
}

std::vector<Device> Arguments::parse(int argc, char** argv) {
  try {
    state_->app.parse(argc, argv);
    std::vector<Device> devices = find_devices(state_->devices, state_->num_gpus);
    for (const ByDevice& d : state_->by_device) {
      if (*d.value == 0) *d.value = devices[0].is_cuda() ? d.on_gpu : d.on_cpu;
    }
    return devices;
  } catch (const CLI::ParseError& error) {
    std::exit(state_->app.exit(error));
  } catch (const DeviceError& error) {
    std::cerr << argv[0] << ": " << error.what() << "\n";
    std::exit(2);
  }
}

std::vector<Device> find_devices(const std::vector<std::string>& names, int num_gpus) {
  std::vector<Device> devices;
  if (names.empty() && num_gpus <= 0) {
    devices = {try_gpu()};
  } else if (names.empty()) {
    int there = rensa::num_gpus();
    if (there < num_gpus) {
      throw DeviceError("this program needs " + std::to_string(num_gpus) +
                        (num_gpus == 1 ? " GPU, and " : " GPUs, and ") + std::to_string(there) +
                        (there == 1 ? " is" : " are") + " there; --device cpu runs it without");
    }
    for (int i = 0; i < num_gpus; ++i) devices.push_back(gpu(i));
  } else {
    for (const std::string& name : names) devices.emplace_back(name);
    auto wanted =
        num_gpus == kAnyNumber ? devices.size() : static_cast<std::size_t>(std::max(1, num_gpus));
    if (devices.size() == 1) devices.resize(wanted, devices[0]);
    if (devices.size() != wanted) {
      throw DeviceError("--device takes one or " + std::to_string(wanted) + " devices, not " +
                        std::to_string(devices.size()));
    }
  }
  for (Device device : devices) check_device(device);
  return devices;
}

std::vector<Device> clamp_gpus(std::int64_t wanted, int num_gpus) {
  std::int64_t there = rensa::num_gpus(), used = std::min(wanted, there);
  std::int64_t parts = std::max(1, num_gpus);
  if (num_gpus != kAnyNumber) used = std::min(used, parts);
  if (used < wanted) {
    std::cout << "--num_gpus " << wanted << ": " << there << (there == 1 ? " GPU is" : " GPUs are")
              << " there, " << used << " in use" << std::endl;
  }
  std::vector<Device> devices;
  for (int i = 0; i < used; ++i) devices.push_back(gpu(i));
  if (devices.empty()) devices.push_back(cpu());
  if (std::ssize(devices) < parts) devices.assign(static_cast<std::size_t>(parts), devices[0]);
  return devices;
}
