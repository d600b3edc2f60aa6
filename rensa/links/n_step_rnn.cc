// Layers over sequences: their weights, and the order that the functions want.
#include "rensa/links/n_step_rnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>

#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/functions/rnn_internal.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

namespace {

using Places = std::vector<std::int64_t>;

Places inverse(const Places& order) {
  Places back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return back;
}

/// The sequences, the longest first.
Places sorted_by_length(const Places& lengths) {
  Places order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return lengths[static_cast<std::size_t>(a)] > lengths[static_cast<std::size_t>(b)];
  });
  return order;
}

}  // namespace

/// How sequences behind one another become times behind one another, on a device.
struct NStepLayers::Order {
  Places lengths;
  Device device;
  bool sorted = false;         // the sequences are, the longest first
  Array longest_first, given;  // orders of the sequences
  Array by_time, by_sequence;  // and of all rows
  Places batches;              // how many sequences reach each time
  Places cuts;                 // where sequences end, but the last

  Order(const Places& all, Device on) : lengths(all), device(on) {
    Places order = sorted_by_length(lengths), begins(lengths.size()), times;
    sorted = std::is_sorted(order.begin(), order.end());
    std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), std::int64_t{0});
    cuts.assign(begins.begin() + 1, begins.end());
    auto total = static_cast<std::size_t>(begins.back() + lengths.back());
    for (std::int64_t t = 0; times.size() < total; ++t) {
      std::int64_t reach = 0;
      for (std::int64_t sequence : order) {
        auto s = static_cast<std::size_t>(sequence);
        if (lengths[s] <= t) break;
        times.push_back(begins[s] + t);
        ++reach;
      }
      batches.push_back(reach);
    }
    auto there = [&](const Places& places) { return xp::array(places, cpu()).to(device); };
    longest_first = there(order), given = there(inverse(order));
    by_time = there(times), by_sequence = there(inverse(times));
  }
};

/// The orders of the latest batches: a batch of the same lengths finds its own on the device, where
/// a recorded step can read it.
class NStepLayers::Orders {
 public:
  std::shared_ptr<const Order> get(const Places& lengths, Device device) {
    std::lock_guard<std::mutex> hold(mutex_);
    auto found = std::find_if(latest_.begin(), latest_.end(), [&](const auto& order) {
      return order->lengths == lengths && order->device == device;
    });
    if (found != latest_.end()) {
      std::rotate(found, found + 1, latest_.end());
      return latest_.back();
    }
    if (latest_.size() == kMost) latest_.erase(latest_.begin());
    return latest_.emplace_back(std::make_shared<Order>(lengths, device));
  }

 private:
  static constexpr std::size_t kMost = 64;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Order>> latest_;  // the one used last is the last
};

void NStepLayers::Layer::members(Visitor& v) {
  for (std::size_t j = 0; j < w.size(); ++j) v("w" + std::to_string(j), w[j]);
  for (std::size_t j = 0; j < b.size(); ++j) v("b" + std::to_string(j), b[j]);
}

NStepLayers::NStepLayers(const functions::detail::SequenceNetwork& network, std::int64_t in,
                         std::int64_t out, const NStepOptions& options)
    : network_(network), out_(out), orders_(std::make_shared<Orders>()) {
  if (network.n_layers < 1 || in < 0 || out < 0) {
    throw ValueError(
        fmt::format("{}: {} layers, sizes {} and {}", network.name, network.n_layers, in, out));
  }
  Initializer weight =
      options.initialW ? options.initialW : Initializer(initializers::LeCunNormal());
  Initializer bias = options.initial_bias ? options.initial_bias : Initializer(0);
  std::size_t each = functions::detail::weights_of(network.kind);
  for (int i = 0; i < network.n_layers * network.directions; ++i) {
    Layer& layer = layers_.emplace_back();
    std::int64_t from = i < network.directions ? in : out * network.directions;
    for (std::size_t j = 0; j < each; ++j) {
      layer.w.emplace_back(weight, Shape{out, j < each / 2 ? from : out});
      layer.b.emplace_back(bias, Shape{out});
    }
  }
}

void NStepLayers::members(Visitor& v) {
  for (std::size_t i = 0; i < layers_.size(); ++i) v(std::to_string(i), layers_[i]);
}

Shape NStepLayers::state_shape(const Variables& xs) const {
  if (xs.empty()) throw ValueError(fmt::format("{}: no xs", network_.name));
  return {static_cast<std::int64_t>(layers_.size()), static_cast<std::int64_t>(xs.size()), out_};
}

Variable NStepLayers::zeros(const Variables& xs) const {
  Shape shape = state_shape(xs);
  return constant(xp::zeros(shape, xs[0].dtype(), xs[0].device()));
}

F::NStepLSTMOutput NStepLayers::run(const Variable& hx, const Variable& cx,
                                    const Variables& xs) const {
  Shape shape = state_shape(xs);
  Places lengths;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].ndim() != 2 || xs[i].shape(0) == 0 || xs[i].shape(1) != xs[0].shape(1)) {
      throw ShapeError(fmt::format("{}: xs[{}] is {}; all must be (length, in), the length above 0",
                                   network_.name, i, xs[i].array().view().describe()));
    }
    lengths.push_back(xs[i].shape(0));
  }
  for (const Variable* state : {&hx, &cx}) {
    if (state->defined() && state->shape() != shape) {
      throw ShapeError(fmt::format("{}: a state {} of {} sequences; it must be {}", network_.name,
                                   state->array().view().describe(), xs.size(), shape.str()));
    }
  }
  std::shared_ptr<const Order> order = orders_->get(lengths, xs[0].device());
  auto arranged = [&](const Variable& state, const Array& to, const Array& back) {
    if (!state.defined() || order->sorted) return state;
    return functions::detail::reorder(state, 1, to, back);
  };
  auto rows = [&](const Variable& x, const Array& to, const Array& back) {
    return xs.size() == 1 ? x : functions::detail::reorder(x, 0, to, back);
  };
  auto start = [&](const Variable& state) {
    return state.defined() ? arranged(state, order->longest_first, order->given) : zeros(xs);
  };
  functions::WeightLists ws, bs;
  for (const Layer& layer : layers_) {
    ws.emplace_back(layer.w.begin(), layer.w.end());
    bs.emplace_back(layer.b.begin(), layer.b.end());
  }
  Variable x = xs.size() == 1 ? xs[0] : F::concat(xs, 0);
  bool has_c = network_.kind == functions::detail::CellKind::lstm;
  auto output = functions::detail::run_sequences(
      network_, start(hx), has_c ? start(cx) : Variable(), ws, bs,
      {rows(x, order->by_time, order->by_sequence), order->batches});
  Variable y = rows(output.y, order->by_sequence, order->by_time);
  return {arranged(output.hy, order->given, order->longest_first),
          arranged(output.cy, order->given, order->longest_first),
          order->cuts.empty() ? Variables{y} : F::split_axis(y, order->cuts, 0)};
}

}  // namespace rensa::links
