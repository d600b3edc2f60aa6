// Functions with weights.
#pragma once

#include <cstdint>
#include <optional>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// y = x @ W.T + b: x (n, k), W (m, k), b (m,) or undefined, y (n, m), of one floating dtype. The
/// first `n_batch_axes` axes of x count samples and are kept, the others are flattened. Throws
/// ShapeError, DtypeError, DeviceError.
[[nodiscard]] Variable linear(const Variable& x, const Variable& W, const Variable& b = {},
                              int n_batch_axes = 1);

struct EmbedIDOptions {
  std::optional<std::int64_t> ignore_label = {};  // of this integer the row is zeros
};
/// The rows (..., k) of W (n, k) that the integers `x` (...) name. One out of range,
/// below 0 too, throws IndexError, on a GPU at the next wait. W's gradient adds up the
/// rows of equal integers in their order. Throws ShapeError, DtypeError.
[[nodiscard]] Variable embed_id(const Variable& x, const Variable& W,
                                const EmbedIDOptions& options = {});

/// y[i, l] = sum_jk e1[i, j] e2[i, k] W[j, k, l]: e1 (n, ...) and e2 (n, ...), flattened to (n, j)
/// and (n, k), W (j, k, l), y (n, l). With all of V1 (j, l), V2 (k, l) and b (l,), which may be
/// undefined together, plus e1 @ V1 + e2 @ V2 + b. Throws ShapeError, ValueError where one of
/// the three is missing.
[[nodiscard]] Variable bilinear(const Variable& e1, const Variable& e2, const Variable& W,
                                const Variable& V1 = {}, const Variable& V2 = {},
                                const Variable& b = {});

}  // namespace functions

namespace F = functions;

}  // namespace rensa
