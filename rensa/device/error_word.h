// What a device reports when it meets a value that only it knows. Read by nvcc too.
#pragma once

#include "rensa/core/device.h"

namespace rensa {

/// What is wrong; it decides the exception and its text.
enum class ReportedError : unsigned int {
  index,                  // value is outside of [-bound, bound) or [0, bound): IndexError
  label,                  // value is none of bound classes: IndexError
  length,                 // value is none of 0 to bound: ValueError
  singular,               // matrix `value` of `bound` is: LinAlgError
  not_positive_definite,  // likewise
  not_converged,          // likewise; the iteration for its values did not end
};

struct ErrorReport {
  ReportedError error;
  const char* operation;  // Operation::name()
  long long value, bound;
};

/// Throws the exception that the report stands for; it was found on `device`.
[[noreturn]] void throw_reported(const ErrorReport& report, Device device);

namespace cuda {

/// One per GPU, in mapped host memory: kernels write the report, the next wait throws it. The first
/// one stays. Whoever turns `state` to `busy` has the report to itself: the kernel that writes it,
/// or the thread that takes it.
struct ErrorWord {
  enum State : unsigned int { empty, busy, written };

  unsigned int state;
  ErrorReport report;
};

}  // namespace cuda
}  // namespace rensa
