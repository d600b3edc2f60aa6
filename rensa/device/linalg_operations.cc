// The operands of the factorizations, and what it means when one fails.
#include "rensa/device/linalg_operations.h"

#include <fmt/format.h>

#include <string_view>

#include "rensa/core/error.h"

namespace rensa {

namespace {

const char* failure_of(std::string_view operation) {
  if (operation == "linalg.cholesky") {
    return "is not positive definite; linalg.eigh takes any symmetric matrix";
  }
  for (std::string_view name : {"linalg.solve", "linalg.inv", "linalg.matrix_power",
                                "linalg.tensorsolve", "linalg.tensorinv"}) {
    if (operation == name) return "is singular; linalg.lstsq and linalg.pinv take such matrices";
  }
  return "has values that were not found: the iteration did not converge; does it hold NaN or "
         "infinity?";
}

}  // namespace

void throw_linalg_error(const char* operation, std::int64_t index, std::int64_t batch,
                        Device device) {
  std::string which = batch == 1 ? "the matrix" : fmt::format("matrix {} of {}", index, batch);
  std::string where =
      device.is_cpu()
          ? ""
          : fmt::format(" (reported by {}; the work queued after it has run)", device.str());
  throw LinAlgError(fmt::format("{}: {} {}{}", operation, which, failure_of(operation), where));
}

void CholeskyFactor::visit(OperandVisitor& v) { v.write(a); }

void LuSolve::visit(OperandVisitor& v) {
  v.write(a);
  v.write(pivots);
  if (b.present()) v.write(b);
}

void QrFactor::visit(OperandVisitor& v) {
  v.write(a);
  v.write(tau);
}

void QrForm::visit(OperandVisitor& v) {
  v.read(tau);
  v.write(q);
}

void Eigh::visit(OperandVisitor& v) {
  v.write(a);
  v.write(w);
}

void Svd::visit(OperandVisitor& v) {
  v.write(a);
  v.write(s);
  if (u.present()) v.write(u);
  if (vt.present()) v.write(vt);
}

void Eig::visit(OperandVisitor& visitor) {
  visitor.write(a);
  visitor.write(w);
  if (v.present()) visitor.write(v);
}

}  // namespace rensa
