// The variables by which processes of one program are told apart.
#include "rensa/communication/launch_environment.h"

#include <fmt/format.h>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"

namespace rensa::communication {

namespace {

constexpr std::uint64_t kMostRanks = 1 << 20;

std::string needed_text(const char* name, const char* with) {
  if (std::optional<std::string> value = environment::text(name)) return *value;
  throw ValueError(
      fmt::format("{} is set and {} is not: start the program with rensa-run -n N, or "
                  "set both",
                  with, name));
}

int needed_number(const char* name, const char* with, std::uint64_t least, std::uint64_t most) {
  needed_text(name, with);
  return static_cast<int>(*environment::number(name, least, most));
}

int number_or(const char* name, int otherwise) {
  return static_cast<int>(
      environment::number(name, 0, kMostRanks).value_or(static_cast<std::uint64_t>(otherwise)));
}

LaunchEnvironment read(const char* rank, const char* size, const char* local_rank,
                       const char* local_size) {
  LaunchEnvironment result;
  result.size = needed_number(size, rank, 1, kMostRanks);
  result.rank = needed_number(rank, size, 0, static_cast<std::uint64_t>(result.size) - 1);
  result.local_rank = number_or(local_rank, result.rank);
  result.local_size = number_or(local_size, result.size);
  if (result.size > 1) {
    result.address = needed_text("MASTER_ADDR", rank);
    result.port = needed_number("MASTER_PORT", rank, 1, 65535);
  }
  return result;
}

}  // namespace

std::optional<LaunchEnvironment> launch_environment() {
  if (environment::text("RANK")) {
    return read("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  }
  if (environment::text("SLURM_PROCID")) {
    return read("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE");
  }
  return std::nullopt;
}

}  // namespace rensa::communication
