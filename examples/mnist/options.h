// What the MNIST examples share beside the network: the command line, the data and the first line.
#pragma once

#include <rensa/rensa.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct Options {
  std::vector<std::string> devices;  // empty: as many GPUs as the program wants
  std::int64_t images = 0;           // of the training set, a sixth as many for the test; 0: all
  bool capture = false;
  bool resume = false;  // leave snapshots, and go on from the latest one
  int epoch = 20;
  std::int64_t batchsize = 100;
  std::int64_t unit = 1000;
  std::string dataset = "auto";
  std::string optimizer = "adam";
  std::string out = "result";
  std::string reduction = "mean";
  std::optional<std::uint64_t> seed;
};

/// What a program takes beside the common options.
struct ProgramOptions {
  const char* description;
  int num_gpus = 0;  // that it cannot do without, unless told to; 0: one device of any kind
  bool capture = false;
  bool reduction = false;
  bool resume = false;
  std::int64_t batchsize = 100;
};

/// Parses the command line, reads the data, prints the first line and calls `train`. Returns the
/// exit status: 2 where a device that is needed is not there, 130 after Ctrl-C and 143 after
/// SIGTERM, as shells have it.
int run_example(int argc, char** argv, const ProgramOptions& program,
                int (*train)(const Options& options, const std::vector<rensa::Device>& devices,
                             const rensa::datasets::TrainTest& data));

rensa::Optimizer make_optimizer(const std::string& name);
