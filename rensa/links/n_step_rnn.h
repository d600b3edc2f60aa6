// L::NStepLSTM, L::NStepGRU, L::NStepRNNTanh, L::NStepRNNReLU, and those in both directions:
// several layers over sequences of any lengths.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rensa/functions/rnn.h"
#include "rensa/links/link.h"

namespace rensa {
namespace links {

struct NStepOptions {
  Initializer initialW = {};      // LeCunNormal when left out
  Initializer initial_bias = {};  // 0 when left out
};

/// The layers of such a network: weights "0/w0", "0/b0", ... of the first layer, "1/w0" of the
/// second one, or of the first one backward.
class NStepLayers {
 public:
  NStepLayers(const functions::detail::SequenceNetwork& network, std::int64_t in, std::int64_t out,
              const NStepOptions& options);
  void members(Visitor& v);
  /// Of sequences xs[i] (length, in) in any order; hx and cx may be undefined: zeros.
  F::NStepLSTMOutput run(const Variable& hx, const Variable& cx, const Variables& xs) const;
  /// (layers * directions, n, out).
  Variable zeros(const Variables& xs) const;

 private:
  struct Layer {
    std::vector<Parameter> w, b;
    void members(Visitor& v);
  };
  struct Order;
  class Orders;
  Shape state_shape(const Variables& xs) const;

  functions::detail::SequenceNetwork network_;
  std::int64_t out_;
  std::vector<Layer> layers_;
  std::shared_ptr<Orders> orders_;  // of copies, too
};

/// What the classes below share: of sequences xs[i] (length, in), in any order and of any lengths
/// above 0, ys[i] (length, out, or 2 * out of both directions) and hy (layers, n, out) (or 2 *
/// layers, forward and backward in turns). hx is what they start from, zeros where it is undefined.
/// Dropped elements between the layers as F::n_step_lstm.
template <class Derived, functions::detail::CellKind kKind, int kDirections>
class NStepNetwork : public Chain<Derived> {
 public:
  NStepNetwork(int n_layers, std::int64_t in, std::int64_t out, double dropout,
               const NStepOptions& options = {})
      : layers_({Derived::kName, kKind, n_layers, kDirections, dropout}, in, out, options) {}
  void members(Visitor& v) override { layers_.members(v); }

  /// Throws ValueError for no xs, ShapeError for a sequence of another shape or of length 0.
  F::NStepOutput operator()(const Variable& hx, const Variables& xs) const
      requires(kKind != functions::detail::CellKind::lstm) {
    F::NStepLSTMOutput output = layers_.run(hx, {}, xs);
    return {output.hy, std::move(output.ys)};
  }
  F::NStepLSTMOutput operator()(const Variable& hx, const Variable& cx, const Variables& xs) const
      requires(kKind == functions::detail::CellKind::lstm) {
    return layers_.run(hx, cx, xs);
  }
  /// Zeros to start from.
  Variable init_hx(const Variables& xs) const { return layers_.zeros(xs); }

 private:
  NStepLayers layers_;
};

#define RENSA_N_STEP(name, kind, directions)                                               \
  class name : public NStepNetwork<name, functions::detail::CellKind::kind, directions> {  \
   public:                                                                                 \
    static constexpr const char* kName = #name;                                            \
    using NStepNetwork<name, functions::detail::CellKind::kind, directions>::NStepNetwork; \
  };
/// Their functions: F::n_step_lstm, F::n_step_gru, F::n_step_rnn, F::n_step_bilstm and so on.
RENSA_N_STEP(NStepLSTM, lstm, 1)
RENSA_N_STEP(NStepBiLSTM, lstm, 2)
RENSA_N_STEP(NStepGRU, gru, 1)
RENSA_N_STEP(NStepBiGRU, gru, 2)
RENSA_N_STEP(NStepRNNTanh, rnn_tanh, 1)
RENSA_N_STEP(NStepBiRNNTanh, rnn_tanh, 2)
RENSA_N_STEP(NStepRNNReLU, rnn_relu, 1)
RENSA_N_STEP(NStepBiRNNReLU, rnn_relu, 2)
#undef RENSA_N_STEP

}  // namespace links

namespace L = links;

}  // namespace rensa
