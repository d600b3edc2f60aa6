// L::LSTM and its kin: layers of long short-term memories.
#pragma once

#include <cstdint>
#include <utility>

#include "rensa/links/linear.h"

namespace rensa {
namespace links {

struct LSTMOptions {
  /// Of each gate's rows; LeCunNormal when left out.
  Initializer lateral_init = {}, upward_init = {};
  /// 0, and 1: memories begin by keeping what they hold.
  Initializer bias_init = 0, forget_bias_init = 1;
};

/// The weights of a memory: upward (4 * out, in) with a bias, lateral (4 * out, out) without.
class LSTMWeights {
 public:
  LSTMWeights(None, std::int64_t out, const LSTMOptions& options);
  LSTMWeights(std::int64_t in, std::int64_t out, const LSTMOptions& options);
  /// Shows both to a link's members().
  void show(Visitor& v) { v("upward", upward), v("lateral", lateral); }
  /// What goes into the cell: of x and, where it is defined, the last output.
  Variable gates(const Variable& x, const Variable& h) const;
  std::int64_t state_size() const { return state_size_; }  // elements of c and of h

  Linear upward, lateral;

 private:
  std::int64_t state_size_;
};

/// F::lstm(c, upward(x) + lateral(h)): its state is the caller's. The input size may be `none`.
class StatelessLSTM : public Chain<StatelessLSTM> {
 public:
  StatelessLSTM(std::int64_t in, std::int64_t out, const LSTMOptions& options = {});
  explicit StatelessLSTM(std::int64_t out, const LSTMOptions& options = {});
  StatelessLSTM(None, std::int64_t out, const LSTMOptions& options = {});
  void members(Visitor& v) override { weights.show(v); }

  /// The new c and h. Undefined ones are zeros.
  std::pair<Variable, Variable> operator()(const Variable& c, const Variable& h,
                                           const Variable& x) const;

  LSTMWeights weights;  // upward and lateral
};

/// A memory that keeps c and h from one call to the next: called with the values of each time. Of
/// sequences sorted by length, the longest first, later calls may have fewer rows; the state of
/// those that have ended stays. The input size may be `none`.
class LSTM : public Chain<LSTM> {
 public:
  LSTM(std::int64_t in, std::int64_t out, const LSTMOptions& options = {});
  explicit LSTM(std::int64_t out, const LSTMOptions& options = {});
  LSTM(None, std::int64_t out, const LSTMOptions& options = {});
  void members(Visitor& v) override { weights.show(v), v("c", c), v("h", h); }

  /// h of the rows that x has. Throws ShapeError for more rows than the last call had.
  Variable operator()(const Variable& x);
  /// Throws ShapeError where they have other rows than each other.
  void set_state(const Variable& new_c, const Variable& new_h);

  LSTMWeights weights;  // upward and lateral
  State c, h;
};

/// A memory whose gates see c: Gers and Schmidhuber, "Recurrent nets that time and count".
class StatefulPeepholeLSTM : public Chain<StatefulPeepholeLSTM> {
 public:
  StatefulPeepholeLSTM(std::int64_t in, std::int64_t out);
  void members(Visitor& v) override;

  Variable operator()(const Variable& x);
  /// Throws ShapeError where they have other rows than each other.
  void set_state(const Variable& new_c, const Variable& new_h);

  Linear upward, lateral, peep_i, peep_f, peep_o;  // of x, of h, and what gates see of c
  State c, h;                                      // the state; undefined ones are zeros
};

/// A memory each element of which stays as it is with the probabilities c_ratio and h_ratio
/// (F::zoneout): Krueger et al.
class StatefulZoneoutLSTM : public Chain<StatefulZoneoutLSTM> {
 public:
  StatefulZoneoutLSTM(std::int64_t in, std::int64_t out, double c_ratio = 0.5,
                      double h_ratio = 0.5);
  void members(Visitor& v) override;

  Variable operator()(const Variable& x);
  /// Throws ShapeError where they have other rows than each other.
  void set_state(const Variable& new_c, const Variable& new_h);

  Linear upward, lateral;  // of x, and of h
  double c_ratio, h_ratio;
  State c, h;  // the state; undefined ones are zeros
};

}  // namespace links

// Made once, in lstm.cc: what users' files would compile again for each of their own.
extern template class Chain<links::StatelessLSTM>;
extern template class Chain<links::LSTM>;

namespace L = links;

}  // namespace rensa
