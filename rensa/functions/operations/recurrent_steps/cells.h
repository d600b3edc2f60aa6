// One unit of a recurrent layer at one time. Read by the host compiler and by nvcc.
#pragma once

#include <cmath>
#include <cstdint>

#include "rensa/functions/operations/recurrent_steps/recurrent_steps.h"
// Of all rows these alone: the others' texts do not concern it.
#define RENSA_POINTWISE_SUBJECT "rensa/operations/pointwise/recurrent.def"
#include "rensa/operations/pointwise/pointwise_functors.h"
#undef RENSA_POINTWISE_SUBJECT

namespace rensa {

/// What an operation's arrays are to a kernel; those that are absent are null.
struct RecurrentArgs {
  const float *weight, *bias, *h, *c;
  float *gates, *y, *kept;
  std::int64_t rows, times;
  int units, directions;
  bool backward;
};

inline RecurrentArgs recurrent_args(const operations::RecurrentSteps& op) {
  const Shape& start = op.h.view.shape;
  auto data = [](const Operand& o) { return o.present() ? o.view.as<float>() : nullptr; };
  return {data(op.weight),
          data(op.bias),
          data(op.h),
          data(op.c),
          data(op.gates),
          data(op.y),
          data(op.kept),
          start[0],
          op.y.view.shape[0] / start[0],
          static_cast<int>(start[1]),
          static_cast<int>(op.directions),
          op.backward};
}

/// What goes from one time to the next, and what is kept beside the parts.
struct UnitState {
  float h, c, kept;
};

/// Of a kind, how many parts x and u have, and a time: the gates take the places of x.
template <operations::RecurrentCell> struct RecurrentUnit;

template <> struct RecurrentUnit<operations::RecurrentCell::lstm> {
  static constexpr int kParts = 4;
  static RENSA_FN void step(float (&x)[kParts], const float (&u)[kParts], UnitState& s) {
    pw::lstm_time::apply<float>(s.c, x[0], x[1], x[2], x[3], u[0], u[1], u[2], u[3], s.c, s.h, x[0],
                                x[1], x[2], x[3]);
    s.kept = s.c;
  }
};
// Its parts of the input are n, r, z, those of the last output r, z, n, with the bias in them.
template <> struct RecurrentUnit<operations::RecurrentCell::gru> {
  static constexpr int kParts = 3;
  static RENSA_FN void step(float (&x)[kParts], const float (&u)[kParts], UnitState& s) {
    pw::gru_time::apply<float>(s.h, x[1], x[2], x[0], u[0], u[1], u[2], 0, 0, 0, s.h, x[1], x[2],
                               x[0], s.kept);
  }
};
template <> struct RecurrentUnit<operations::RecurrentCell::tanh> {
  static constexpr int kParts = 1;
  static RENSA_FN void step(float (&x)[kParts], const float (&u)[kParts], UnitState& s) {
    pw::tanh_time::apply<float>(x[0], u[0], s.h);
  }
};
template <> struct RecurrentUnit<operations::RecurrentCell::relu> {
  static constexpr int kParts = 1;
  static RENSA_FN void step(float (&x)[kParts], const float (&u)[kParts], UnitState& s) {
    pw::relu_time::apply<float>(x[0], u[0], s.h);
  }
};

}  // namespace rensa
