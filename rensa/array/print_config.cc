// The library's own account of itself and of the machine.
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <fstream>
#include <string>

#include "rensa/array/print.h"
#include "rensa/backend/cpu/instruction_sets.h"
#include "rensa/core/thread_pool.h"
#include "rensa/core/version.h"
#include "rensa/device/devices.h"
#include "rensa/operations/matmul/cpu_blas.h"

namespace rensa::xp {

namespace {

std::string platform() {
  utsname system{};
  if (uname(&system) != 0) return "not known";
  return fmt::format("{} {} {}, glibc {}", system.sysname, system.release, system.machine,
                     gnu_get_libc_version());
}

std::string compiler() {
#if defined(__clang__)
  std::string name = __VERSION__;
#else
  std::string name = "GCC " __VERSION__;
#endif
#if defined(NDEBUG)
  const char* kind = "release";
#else
  const char* kind = "debug";
#endif
  return fmt::format("{}, C++{}, {}", name, __cplusplus / 100 % 100, kind);
}

/// As /proc/cpuinfo has it.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    std::size_t at = line.find(": ");
    if (at != std::string::npos) return line.substr(at + 2);
  }
  return "not known";
}

const char* kernels() {
  switch (host::best_instruction_set()) {
    case host::InstructionSet::avx512: return "AVX-512";
    case host::InstructionSet::avx2: return "AVX2";
    case host::InstructionSet::baseline: break;
  }
  return "any machine";
}

}  // namespace

std::string show_config() {
  return fmt::format(
      "Platform: {}\n"
      "Rensa: {}\n"
      "Compiler: {}\n"
      "CPU: {}, {} threads, kernels for {}\n"
      "BLAS: {}\n"
      "{}",
      platform(), version(), compiler(), processor(), get_num_threads(), kernels(),
      host::blas_description(), cuda::diagnose());
}

}  // namespace rensa::xp
