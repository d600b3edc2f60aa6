#include "rensa/array/softmax.h"

#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/softmax/softmax.h"

namespace rensa::xp {

namespace {

Array softmax_along(bool log, const Array& a, int axis) {
  operations::Softmax op(log);
  rensa::detail::check_defined(op.name(), a);
  if (dtype_kind(a.dtype()) == 'c') {
    throw DtypeError(
        fmt::format("{}: {} is not taken, only real numbers", op.name(), a.view().describe()));
  }
  int along = normalize_axis(op.name(), axis, a.ndim());
  int last = a.ndim() - 1;
  Array rows = a.swapaxes(along, last).astype(floating_dtype(a.dtype()), false).ascontiguous();
  Array out = rensa::detail::new_array(rows.shape(), rows.dtype(), a.device());
  if (out.size() > 0) {
    Shape flat = {rows.size() / rows.shape(last), rows.shape(last)};
    op.in = rows.reshape(flat).operand();
    op.out = out.reshape(flat).operand();
    launch(op);
  }
  return out.swapaxes(along, last);
}

}  // namespace

Array softmax(const Array& a, int axis) { return softmax_along(false, a, axis); }
Array log_softmax(const Array& a, int axis) { return softmax_along(true, a, axis); }

}  // namespace rensa::xp
