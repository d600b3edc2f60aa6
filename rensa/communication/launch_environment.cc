// The variables by which processes of one program are told apart.
#include "rensa/communication/launch_environment.h"

#include <fmt/format.h>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"

namespace rensa::communication {

namespace {

constexpr std::uint64_t kMostRanks = 1 << 20;

/// What a launcher calls it.
struct Names {
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Names kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

std::string needed_text(const char* name, const char* with) {
  if (std::optional<std::string> value = environment::text(name)) return *value;
  throw ValueError(
      fmt::format("{} is set and {} is not: start the program with rensa-run -n N, or "
                  "have what starts it set both (mpirun -x {}=...)",
                  with, name, name));
}

int needed_number(const char* name, const char* with, std::uint64_t least, std::uint64_t most) {
  needed_text(name, with);
  return static_cast<int>(*environment::number(name, least, most));
}

int number_or(const char* name, int otherwise) {
  return static_cast<int>(
      environment::number(name, 0, kMostRanks).value_or(static_cast<std::uint64_t>(otherwise)));
}

LaunchEnvironment read(const Names& names) {
  LaunchEnvironment result;
  result.size = needed_number(names.size, names.rank, 1, kMostRanks);
  auto last = static_cast<std::uint64_t>(result.size) - 1;
  result.rank = needed_number(names.rank, names.size, 0, last);
  result.local_rank = number_or(names.local_rank, result.rank);
  result.local_size = number_or(names.local_size, result.size);
  if (result.size > 1) {
    result.address = needed_text("MASTER_ADDR", names.rank);
    result.port = needed_number("MASTER_PORT", names.rank, 1, 65535);
  }
  return result;
}

}  // namespace

std::optional<LaunchEnvironment> launch_environment() {
  for (const Names& names : kLaunchers) {
    if (environment::text(names.rank)) return read(names);
  }
  return std::nullopt;
}

}  // namespace rensa::communication
