// L::GRU and its kin: layers of gated recurrent units, and of minimal ones.
#pragma once

#include <cstdint>

#include "rensa/links/linear.h"

namespace rensa {
namespace links {

struct GRUOptions {
  Initializer init = {}, inner_init = {};  // of W and of U; LeCunNormal when left out
  Initializer bias_init = {};              // 0 when left out
};

/// r = sigmoid(W_r x + U_r h), z = sigmoid(W_z x + U_z h), n = tanh(W x + U (r * h)),
/// h' = (1 - z) * h + z * n: Cho et al., "On the properties of neural machine translation". The
/// state is the caller's.
class StatelessGRU : public Chain<StatelessGRU> {
 public:
  StatelessGRU(std::int64_t in, std::int64_t out, const GRUOptions& options = {});
  void members(Visitor& v) override;

  Variable operator()(const Variable& h, const Variable& x) const;

  Linear W_r, U_r, W_z, U_z, W, U;
};

/// One that keeps h from one call to the next: called with the values of each time.
class StatefulGRU : public Chain<StatefulGRU> {
 public:
  StatefulGRU(std::int64_t in, std::int64_t out, const GRUOptions& options = {});
  void members(Visitor& v) override { cell.members(v), v("h", h); }

  Variable operator()(const Variable& x);
  void set_state(const Variable& new_h) { h = new_h; }  // the h that the next call starts from

  StatelessGRU cell;  // the weights
  State h;
};
using GRU = StatefulGRU;

/// f = sigmoid(W_f [h, x]), h' = (1 - f) * h + f * tanh(W_h [f * h, x]): Zhou et al., "Minimal
/// gated unit for recurrent neural networks". The state is the caller's.
class StatelessMGU : public Chain<StatelessMGU> {
 public:
  StatelessMGU(std::int64_t in, std::int64_t out);
  void members(Visitor& v) override { v("W_f", W_f), v("W_h", W_h); }

  Variable operator()(const Variable& h, const Variable& x) const;

  Linear W_f, W_h;
};

/// One that keeps h from one call to the next, zeros at first.
class StatefulMGU : public Chain<StatefulMGU> {
 public:
  StatefulMGU(std::int64_t in, std::int64_t out);
  void members(Visitor& v) override { cell.members(v), v("h", h); }

  Variable operator()(const Variable& x);
  void set_state(const Variable& new_h) { h = new_h; }  // the h that the next call starts from

  StatelessMGU cell;  // the weights
  State h;
};

}  // namespace links

namespace L = links;

}  // namespace rensa
