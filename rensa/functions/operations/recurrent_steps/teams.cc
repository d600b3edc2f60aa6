#include "rensa/functions/operations/recurrent_steps/teams.h"

#include <map>
#include <mutex>

namespace rensa {

namespace {

struct Resources {
  int multiprocessors, shared_bytes;
};

Resources resources_of(Device device) {
  static std::mutex mutex;
  static std::map<Device, Resources> known;
  std::lock_guard lock(mutex);
  auto found = known.find(device);
  if (found == known.end()) {
    auto attributes = device.attributes();
    Resources resources{attributes.at("MultiProcessorCount"),
                        attributes.at("MaxSharedMemoryPerBlockOptin")};
    if (attributes.at("CooperativeLaunch") == 0) resources.multiprocessors = 0;
    found = known.emplace(device, resources).first;
  }
  return found->second;
}

int parts_of(operations::RecurrentCell cell) {
  using operations::RecurrentCell;
  return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}

}  // namespace

RecurrentTeams recurrent_teams(Device device, operations::RecurrentCell cell, std::int64_t rows,
                               std::int64_t units, std::int64_t directions) {
  auto [multiprocessors, shared_bytes] = resources_of(device);
  return {parts_of(cell), rows, units, directions, multiprocessors, shared_bytes};
}

bool operations::RecurrentSteps::fits(Device device, RecurrentCell cell, std::int64_t rows,
                                      std::int64_t units, std::int64_t directions) {
  if (!device.is_cuda()) return false;
  return units <= kFewUnits || recurrent_teams(device, cell, rows, units, directions).teams > 0;
}

}  // namespace rensa
