// Where programs that train do so.
#include "training_place.h"

using namespace rensa;

TrainingPlace find_place(const TrainingOptions& options) {
  Communicator comm = create_communicator();
  auto turn = static_cast<std::size_t>(comm.local_rank()) % options.devices.size();
  Device device = options.devices[turn];
  return {comm.on(device), device};
}

template <class Updater> static Updating updating(const Updater& updater) {
  return {updater, [updater] { return updater.capture_stats(); }};
}

Updating make_updater(const Iterator& iterator, const Optimizer& optimizer,
                      const TrainingOptions& options, const TrainingPlace& place) {
  if (place.is_alone() && options.devices.size() > 1) {
    return updating(training::ParallelUpdater(
        iterator, optimizer,
        {.devices = options.replicas(), .reduction = "mean", .capture = options.capture}));
  }
  return updating(training::StandardUpdater(iterator, optimizer,
                                            {.device = place.device, .capture = options.capture}));
}

void extend(const training::Trainer& trainer, const TrainingOptions& options,
            const TrainingPlace& place, const std::vector<std::string>& entries) {
  if (place.is_alone()) {
    options.extend(trainer, entries);
  } else if (options.resume) {
    trainer.extend(extensions::multi_node_snapshot(place.comm, {.n_retains = 2, .autoload = true}));
  }
}
