// The exceptions of what devices report.
#include "rensa/device/error_word.h"

#include <fmt/format.h>

#include "rensa/core/error.h"

namespace rensa {

namespace {

std::string matrix_text(const ErrorReport& report, const char* what) {
  if (report.bound == 1) return fmt::format("the matrix {}", what);
  return fmt::format("matrix {} of {} {}", report.value, report.bound, what);
}

}  // namespace

void throw_reported(const ErrorReport& report, Device device) {
  auto text = [&](const std::string& what) {
    std::string where =
        device.is_cpu()
            ? ""
            : fmt::format(" (reported by {}; the work queued after it has run)", device.str());
    return fmt::format("{}: {}{}", report.operation, what, where);
  };
  auto matrix = [&](const char* what) { return text(matrix_text(report, what)); };
  switch (report.error) {
    case ReportedError::index:
      throw IndexError(text(fmt::format("index {} is out of bounds for an axis of size {}",
                                        report.value, report.bound)));
    case ReportedError::label:
      throw IndexError(text(
          fmt::format("label {} is out of bounds for {} classes", report.value, report.bound)));
    case ReportedError::length:
      throw ValueError(
          text(fmt::format("a length of {} is none of 0 to {}", report.value, report.bound)));
    case ReportedError::singular:
      throw LinAlgError(matrix("is singular; linalg.lstsq and linalg.pinv take such matrices"));
    case ReportedError::not_positive_definite:
      throw LinAlgError(matrix("is not positive definite; linalg.eigh takes any symmetric matrix"));
    case ReportedError::not_converged: break;
  }
  throw LinAlgError(
      matrix("has values that were not found: the iteration did not converge; does it hold NaN or "
             "infinity?"));
}

}  // namespace rensa
