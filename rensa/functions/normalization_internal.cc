// x as samples of channels.
#include "rensa/functions/normalization_internal.h"

#include <fmt/format.h>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"

namespace rensa::functions {

ChannelFold::ChannelFold(const char* function, const Shape& x, const AxisList& reduced, int kept)
    : shape_(x) {
  unsigned mask = 0;
  if (reduced.given()) {
    for (std::int64_t axis : reduced.values()) {
      unsigned bit = 1u << normalize_axis(function, axis, x.ndim());
      if (mask & bit) throw ValueError(fmt::format("{}: axis {} twice", function, axis));
      mask |= bit;
    }
  } else {
    for (int i = 0; i < x.ndim(); ++i) {
      if (i == 0 || i > kept) mask |= 1u << i;
    }
  }
  Shape gone, stay;
  bool behind = false, among = false;
  for (int i = 0; i < x.ndim(); ++i) {
    if (mask >> i & 1) {
      gone.push_back(i);
      behind = stay.ndim() > 0;
      (behind ? inner_ : samples_) *= x[i];
    } else {
      among |= behind;
      stay.push_back(i);
      kept_.push_back(x[i]);
      channels_ *= x[i];
    }
  }
  reduced_ = AxisList(gone);
  if (!among) return;
  samples_ *= inner_;
  inner_ = 1;
  order_ = gone;
  for (std::int64_t axis : stay) order_.push_back(axis);
}

Shape ChannelFold::expanded() const {
  Shape shape = shape_;
  for (std::int64_t axis : reduced_.values()) shape[static_cast<int>(axis)] = 1;
  return shape;
}

Array ChannelFold::folded(const Array& x) const {
  Array ordered = order_.empty() ? x : x.transpose(order_);
  if (!ordered.is_contiguous() && order_.empty()) {
    Shape last;
    int first_kept = 0;
    while (first_kept < shape_.ndim() && first_kept < reduced_.values().ndim() &&
           reduced_.values()[first_kept] == first_kept) {
      ++first_kept;
    }
    int behind = first_kept + kept_.ndim();
    for (int i = 0; i < shape_.ndim(); ++i) {
      if (i < first_kept || i >= behind) last.push_back(i);
    }
    for (int i = first_kept; i < behind; ++i) last.push_back(i);
    Array turned = x.transpose(last);
    if (turned.is_contiguous()) {
      return turned.reshape({samples_, inner_, channels_}).transpose({0, 2, 1});
    }
  }
  return ordered.ascontiguous().reshape({samples_, channels_, inner_});
}

Array ChannelFold::unfolded(const Array& folded) const {
  if (order_.empty()) return folded.reshape(shape_);
  Shape shape, back = order_;
  for (int i = 0; i < order_.ndim(); ++i) {
    shape.push_back(shape_[static_cast<int>(order_[i])]);
    back[static_cast<int>(order_[i])] = i;
  }
  return folded.reshape(shape).transpose(back);
}

Dtype statistics_dtype(Dtype x) { return x == float64 ? float64 : float32; }

Array empty_statistics(const Array& x, std::int64_t count) {
  return xp::empty({count}, statistics_dtype(x.dtype()), x.device());
}

Operand channel_operand(const Array& statistic) {
  return statistic.reshape({1, statistic.size(), 1}).operand();
}

operations::Normalize normalize_operation(const char* name, const Array& x) {
  operations::Normalize op(name);
  op.channels_last = !x.is_contiguous() || x.shape(2) == 1;
  op.samples = x.shape(0);
  op.channels = x.shape(1);
  op.inner = x.shape(2);
  return op;
}

void check_floating(const char* function, const char* what, const Variable& v) {
  if (dtype_kind(v.dtype()) == 'f') return;
  throw DtypeError(fmt::format("{}: {} {} must be floating; cast with astype", function, what,
                               v.array().view().describe()));
}

void check_beside(const char* function, const Variable& gamma, const char* what,
                  const Variable& v) {
  if (v.shape() != gamma.shape()) {
    throw ShapeError(fmt::format("{}: {} {} and gamma {} must have one shape", function, what,
                                 v.shape().str(), gamma.shape().str()));
  }
  if (v.dtype() != gamma.dtype()) {
    throw DtypeError(fmt::format("{}: {} {} and gamma {} must have one dtype", function, what,
                                 v.array().view().describe(), gamma.array().view().describe()));
  }
}

ChannelFold checked_fold(const char* function, const Variable& x, const Variable& gamma,
                         const AxisList& axis) {
  check_floating(function, "x", x);
  check_floating(function, "gamma", gamma);
  if (x.ndim() == 0) throw ShapeError(fmt::format("{}: x has no axis of samples", function));
  ChannelFold fold(function, x.shape(), axis, gamma.ndim());
  if (fold.kept() == gamma.shape()) return fold;
  throw ShapeError(fmt::format(
      "{}: gamma {} and x {}: gamma must have the shape of x's axes that are not reduced, {}",
      function, gamma.shape().str(), x.shape().str(), fold.kept().str()));
}

void check_running(const char* function, const Variable& gamma, const char* what,
                   const Array& running) {
  check_same_device(function, gamma.array(), running);
  if (running.shape() != gamma.shape()) {
    throw ShapeError(fmt::format("{}: {} {} and gamma {} must have one shape", function, what,
                                 running.shape().str(), gamma.shape().str()));
  }
  if (dtype_kind(running.dtype()) != 'f' || !running.is_contiguous()) {
    throw DtypeError(fmt::format("{}: {} {} must be floating and C-contiguous", function, what,
                                 running.view().describe()));
  }
}

void check_running(const char* function, const Variable& gamma,
                   const BatchNormalizationOptions& options) {
  if (options.running_mean.has_value() != options.running_var.has_value()) {
    throw ValueError(fmt::format("{}: running_mean and running_var go together", function));
  }
  if (!options.running_mean) return;
  check_running(function, gamma, "running_mean", *options.running_mean);
  check_running(function, gamma, "running_var", *options.running_var);
}

}  // namespace rensa::functions
