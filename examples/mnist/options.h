// What the MNIST examples share beside the network: the command line, the data and the first line.
#pragma once

#include "training_options.h"

struct Options : TrainingOptions {
  std::int64_t images = 0;  // of the training set, a sixth as many for the test; 0: all
  std::int64_t unit = 1000;
  std::string dataset = "auto";
  std::string optimizer = "adam";
  std::string reduction = "mean";
};

/// Reads the command line and the data, prints what they are and calls `train`. A program that
/// splits batches between devices (`data_parallel`) has larger ones, and --reduction. Returns
/// TrainingArguments::run's exit status.
int run_example(int argc, char** argv, const TrainingProgram& program,
                void (*train)(const Options& options, const rensa::datasets::TrainTest& data),
                bool data_parallel = false);

rensa::Optimizer make_optimizer(const std::string& name);
