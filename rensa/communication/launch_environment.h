// LaunchEnvironment: which of a program's processes this is, as what started them says.
#pragma once

#include <optional>
#include <string>

namespace rensa::communication {

struct LaunchEnvironment {
  int rank = 0;         // of all processes
  int size = 1;         // how many there are
  int local_rank = 0;   // of those on this machine
  int local_size = 1;   // how many are on this machine
  std::string address;  // the host of rank 0; empty where nothing says it
  int port = 0;         // where rank 0 listens
};

/// Read from the variables of rensa-run and torchrun (RANK, WORLD_SIZE, LOCAL_RANK,
/// LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), or, where RANK is not set, from SLURM's
/// (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_NTASKS_PER_NODE; MASTER_ADDR and MASTER_PORT
/// are the user's). Nothing where neither is there: one process. Throws ValueError naming the
/// variable that is missing or says nothing sensible.
std::optional<LaunchEnvironment> launch_environment();

}  // namespace rensa::communication
