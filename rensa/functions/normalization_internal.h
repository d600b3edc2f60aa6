// What normalizations share: x as samples of channels, and the operations on it.
#pragma once

#include "rensa/autograd/function_node.h"
#include "rensa/functions/normalization.h"
#include "rensa/functions/operations/normalization/normalization.h"

namespace rensa::functions {

/// An x whose axes are kept or reduced, as (samples, channels, inner): kept axes are channels, and
/// what is reduced stands before and behind them. Where reduced axes stand among kept ones, all
/// kept axes are taken behind the others.
class ChannelFold {
 public:
  /// Throws IndexError and ValueError for axes that there are not, naming `function`.
  ChannelFold(const char* function, const Shape& x, const AxisList& reduced, int kept);

  const Shape& kept() const { return kept_; }           // extents of the kept axes
  const AxisList& reduced() const { return reduced_; }  // the reduced axes
  Shape expanded() const;                               // x's shape, 1 where it is reduced

  /// x, which is dense in C order or channels-last, else a copy that is.
  Array folded(const Array& x) const;
  /// A folded array in x's shape.
  Array unfolded(const Array& folded) const;

 private:
  Shape shape_, order_, kept_;  // order_: empty where axes stay where they are
  AxisList reduced_;
  std::int64_t samples_ = 1, channels_ = 1, inner_ = 1;
};

/// What statistics of x are computed in and have.
Dtype statistics_dtype(Dtype x);
/// 1-d arrays for the statistics of `count` outputs.
Array empty_statistics(const Array& x, std::int64_t count);
/// The elements of a statistic of one number for each channel as (1, channels, 1).
Operand channel_operand(const Array& statistic);

/// A Normalize of a folded x, with everything but its operands.
operations::Normalize normalize_operation(const char* name, const Array& x);

/// Throws DtypeError unless `v` is floating.
void check_floating(const char* function, const char* what, const Variable& v);
/// Throws ShapeError and DtypeError unless `v` has the shape and dtype of gamma.
void check_beside(const char* function, const Variable& gamma, const char* what, const Variable& v);
/// Of an x whose statistics are gamma's. Throws ShapeError where gamma has not the shape of the
/// kept axes, DtypeError, and as the constructor does.
ChannelFold checked_fold(const char* function, const Variable& x, const Variable& gamma,
                         const AxisList& axis);
/// Throws unless running statistics may be written to beside that gamma.
void check_running(const char* function, const Variable& gamma, const char* what,
                   const Array& running);
void check_running(const char* function, const Variable& gamma,
                   const BatchNormalizationOptions& options);

}  // namespace rensa::functions
