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

/// Read from the variables that processes are started with, the first of these that are there:
/// RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE (rensa-run, torchrun), Open MPI's
/// (OMPI_COMM_WORLD_RANK and so on), MPICH's and Intel MPI's (PMI_RANK), SLURM's (SLURM_PROCID).
/// Where rank 0 listens is in MASTER_ADDR and MASTER_PORT, which rensa-run and torchrun set and
/// the others pass on: mpirun -x MASTER_ADDR=node0 -x MASTER_PORT=29500. Nothing where none of
/// them is there: one process. Throws ValueError naming the variable that is missing or says
/// nothing sensible.
std::optional<LaunchEnvironment> launch_environment();

}  // namespace rensa::communication
