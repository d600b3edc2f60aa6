// The command line that the small examples share: --help, --device and a few values of their own.
#pragma once

#include <rensa/array.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

class Arguments {
 public:
  /// For a program that works on any device, the first GPU if nothing else is asked for.
  explicit Arguments(const std::string& description);
  /// For one that is about GPUs: without so many it runs only where --device says so.
  Arguments(const std::string& description, int num_gpus);
  ~Arguments();

  /// An argument by its place, a positive number; what is there before is its default.
  Arguments& number(const std::string& name, std::int64_t* value, const std::string& help);
  /// One whose default depends on the device.
  Arguments& number(const std::string& name, std::int64_t* value, std::int64_t on_gpu,
                    std::int64_t on_cpu, const std::string& help);
  Arguments& text(const std::string& name, std::string* value, const std::string& help);

  /// Reads the command line and gives the devices. Ends the program for --help, for what cannot be
  /// read and where a device is not there: its message says what is needed and what to give.
  std::vector<rensa::Device> parse(int argc, char** argv);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// In the place of a number of GPUs: a program works on as many devices as it is given.
inline constexpr int kAnyNumber = -1;

/// The devices that `names` asks for, one name standing for all; without names the first
/// `num_gpus` GPUs, for 0 of them (and for kAnyNumber) one GPU or else the CPU. Throws DeviceError,
/// with the way out, where one is not there.
std::vector<rensa::Device> find_devices(const std::vector<std::string>& names, int num_gpus);

/// Of `wanted` GPUs those that are there and that the program has work for, of `num_gpus` as above;
/// the CPU where there is none of them, and where one is left for several parts of the program, it
/// stands for all. Where that is fewer than wanted, a line on stdout says so.
std::vector<rensa::Device> clamp_gpus(std::int64_t wanted, int num_gpus);
