// Where a program trains: in one process, on one device or several, or as one of several processes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "training_options.h"

struct TrainingPlace {
  rensa::Communicator comm;  // of the processes; of one where nothing has started several
  rensa::Device device;      // this process's, the first of several
  bool is_alone() const { return comm.size() == 1; }
  bool tells() const { return comm.rank() == 0; }
};

/// Of several processes each takes one of --devices, in turns. Called by all of them.
TrainingPlace find_place(const TrainingOptions& options);

/// An updater, and what its captured iterations came to.
struct Updating {
  rensa::training::Updater updater;
  std::function<rensa::CaptureStats()> stats;
};

/// With a replica of the model on each device where one process has several.
Updating make_updater(const rensa::Iterator& iterator, const rensa::Optimizer& optimizer,
                      const TrainingOptions& options, const TrainingPlace& place);

/// options.extend(); of several processes only the snapshots of --resume, which all write together.
void extend(const rensa::training::Trainer& trainer, const TrainingOptions& options,
            const TrainingPlace& place, const std::vector<std::string>& entries = {"main/loss"});
