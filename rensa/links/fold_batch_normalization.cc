// Which batch normalizations belong to which layers, as a run shows it, and their common weights.
#include "rensa/links/fold_batch_normalization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "rensa/array/common_ufuncs.h"
#include "rensa/array/creation.h"
#include "rensa/array/dtype_info.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/function_hook.h"
#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/renewal.h"
#include "rensa/device/tracer.h"
#include "rensa/links/convolution_links.h"
#include "rensa/links/linear.h"
#include "rensa/links/normalization_links.h"

namespace rensa::links {

namespace {

using Node = std::shared_ptr<VariableNode>;

/// A layer that may take a normalization in.
struct Layer {
  std::string path;
  Link* link;
  Parameter *W, *b;
  int out_axis = 0;           // of W
  std::vector<Node> outputs;  // of its calls

  /// Of what it gives there.
  int channel_axis(const Node& y) const {
    return dynamic_cast<Linear*>(link) ? y->shape.ndim() - 1 : 1;
  }
};

struct Normalization {
  std::string path;
  BatchNormalization* link;
  std::vector<Node> inputs;  // of its calls
  bool in_training = false, changes_dtype = false;
};

/// Who else takes a variable: a weight, or what a layer gives.
struct Takers {
  const Link* owner;       // of a weight; null for what a layer gives
  int functions = 0;       // outside of the owner, and of the normalizations
  int normalizations = 0;  // calls of them
};

/// What a run shows of a model.
struct Seen {
  explicit Seen(Link& model);
  void watch(const Link& owner, const Parameter& weight) {
    if (weight.defined()) takers.emplace(weight.node().get(), Takers{&owner});
  }

  std::vector<Layer> layers;
  std::vector<Normalization> normalizations;
  std::unordered_map<const VariableNode*, Takers> takers;
  std::unordered_map<const VariableNode*, Layer*> layer_of;  // that gave what is there
  std::map<const VariableBody*, int> links_of;               // by parameters
};

Seen::Seen(Link& model) {
  auto layer = [&](const std::string& path, Link& link, auto& with_weights) {
    layers.push_back({path, &link, &with_weights.W, &with_weights.b, 0, {}});
  };
  for (auto& [path, link] : model.namedlinks()) {
    for (const auto& known : HookedLink{*link}.parameters())
      ++links_of[known.parameter->body().get()];
    if (auto* filters = dynamic_cast<Filters*>(link)) layer(path, *link, *filters);
    if (auto* linear = dynamic_cast<Linear*>(link)) layer(path, *link, *linear);
    if (auto* depthwise = dynamic_cast<DepthwiseConvolution2D*>(link))
      layer(path, *link, *depthwise);
    if (auto* local = dynamic_cast<LocalConvolution2D*>(link)) layer(path, *link, *local);
    auto* normalization = dynamic_cast<BatchNormalization*>(link);
    auto* renormalization = dynamic_cast<BatchRenormalization*>(link);
    if (renormalization)
      normalization = &renormalization->statistics;  // what it calls in test mode
    if (!normalization || normalization->folded) continue;
    normalizations.push_back({path, normalization, {}});
    watch(*normalization, normalization->gamma), watch(*normalization, normalization->beta);
  }
  for (const Layer& l : layers) watch(*l.link, *l.W), watch(*l.link, *l.b);
}

/// Notes the calls of layers and normalizations.
class Calls final : public LinkHook {
 public:
  struct Call {
    const Link* link;
    const VariableNode* normalized;  // what a normalization is called with
  };
  explicit Calls(Seen& seen) : seen_(seen) {
    for (Layer& l : seen.layers) layers_[l.link] = &l;
    for (Normalization& n : seen.normalizations) normalizations_[n.link] = &n;
  }
  std::string name() const override { return "fold_batch_normalization"; }
  std::unique_ptr<LinkHook> clone() const override {
    throw NotImplementedError("fold_batch_normalization: its hook is not copied");
  }
  void forward_preprocess(HookedCall& call) override {
    const Link* link = &call.link().link;
    auto known = normalizations_.find(link);
    if (known == normalizations_.end()) return calls_.push_back({link, nullptr});
    const Node& x = call.x()[0].node();
    known->second->inputs.push_back(x);
    known->second->in_training |= config().train;
    auto takers = seen_.takers.find(x.get());
    if (takers != seen_.takers.end()) ++takers->second.normalizations;
    calls_.push_back({link, x.get()});
  }
  void forward_postprocess(HookedCall& call, const Variable& y) override {
    const Link* link = &call.link().link;
    while (calls_.back().link != link) calls_.pop_back();  // calls within that threw
    calls_.pop_back();
    if (auto known = layers_.find(link); known != layers_.end()) {
      known->second->out_axis = call.link().out_axis;
      known->second->outputs.push_back(y.node());
      seen_.layer_of[y.node().get()] = known->second;
      seen_.takers.emplace(y.node().get(), Takers{nullptr});
    }
    if (auto known = normalizations_.find(link); known != normalizations_.end()) {
      known->second->changes_dtype |= y.dtype() != call.x()[0].dtype();
    }
  }
  /// The innermost call in progress; null where there is none.
  const Call* current() const { return calls_.empty() ? nullptr : &calls_.back(); }

 private:
  Seen& seen_;
  std::unordered_map<const Link*, Layer*> layers_;
  std::unordered_map<const Link*, Normalization*> normalizations_;
  std::vector<Call> calls_;
};

/// Notes which functions take what is watched.
class Functions final : public FunctionHook {
 public:
  Functions(Seen& seen, const Calls& calls) : seen_(seen), calls_(calls) {}
  void forward_preprocess(const FunctionNode&, const Variables& inputs) override {
    const Calls::Call* call = calls_.current();
    for (const Variable& input : inputs) {
      const VariableNode* node = input.node().get();
      auto known = seen_.takers.find(node);
      if (known == seen_.takers.end()) continue;
      bool is_meant = call && (known->second.owner ? call->link == known->second.owner
                                                   : call->normalized == node);
      if (!is_meant) ++known->second.functions;
    }
  }

 private:
  Seen& seen_;
  const Calls& calls_;
};

bool has_hooks(const Link& link) {
  const auto* known = dynamic_cast<const HasHooks*>(&link);
  return known && !known->hook_names().empty();
}

/// The one layer that gave all that the normalization was called with; else null, and why not.
std::pair<Layer*, std::string> layer_before(const Seen& seen, const Normalization& n) {
  Layer* layer = nullptr;
  for (const Node& x : n.inputs) {
    auto known = seen.layer_of.find(x.get());
    if (known == seen.layer_of.end()) {
      return {nullptr, "its input is not what a layer of filters or a Linear gives"};
    }
    if (layer && layer != known->second) {
      return {nullptr,
              fmt::format("it is called behind {} and {}", layer->path, known->second->path)};
    }
    layer = known->second;
  }
  return {layer, {}};
}

/// Whether it has a mean for each channel of what the layer gave there.
bool is_along_channels(const BatchNormalization& link, const Layer& layer, const Node& y) {
  int channels = layer.channel_axis(y), axes = y->shape.ndim();
  if (link.avg_mean.ndim() != 1 || link.avg_mean.shape(0) != y->shape[channels]) return false;
  if (!link.axis().given()) return channels == 1;
  return std::ranges::none_of(link.axis().values(), [&](std::int64_t axis) {
    return axis == channels || axis + axes == channels;
  });
}

/// Why weights of `link` cannot be replaced; empty where they can.
std::string reason_of_weights(const Seen& seen, const std::string& path, const Link& link) {
  if (has_hooks(link)) return path + " has hooks";
  for (const auto& [name, parameter] : HookedLink{link}.parameters()) {
    auto links = seen.links_of.find(parameter->body().get());
    if (links != seen.links_of.end() && links->second > 1) {
      return fmt::format("{} of {} is another link's as well", name, path);
    }
    auto takers = seen.takers.find(parameter->node().get());
    if (takers != seen.takers.end() && takers->second.functions > 0) {
      return fmt::format("a function outside of {} takes its {}", path, name);
    }
  }
  return {};
}

/// Why the normalization is not folded into the layer; empty where it is.
std::string reason_against(const Seen& seen, const Normalization& n, const Layer& layer) {
  if (layer.outputs.size() != n.inputs.size()) {
    return fmt::format("{} was called {} times, the normalization {} times", layer.path,
                       layer.outputs.size(), n.inputs.size());
  }
  for (const Node& y : layer.outputs) {
    const Takers& takers = seen.takers.at(y.get());
    if (takers.functions > 0) return "a function takes what " + layer.path + " gives as well";
    if (takers.normalizations != 1) {
      return "what " + layer.path + " gives is normalized " +
             (takers.normalizations == 0 ? "only at times" : "more than once");
    }
    if (!y->body.expired()) return "what " + layer.path + " gives is kept, or given by the model";
    if (!is_along_channels(*n.link, layer, y)) {
      return "it does not normalize along the channels of " + layer.path;
    }
  }
  if (n.changes_dtype) return "it gives another dtype than it takes";
  std::string reason = reason_of_weights(seen, layer.path, *layer.link);
  return reason.empty() ? reason_of_weights(seen, n.path, *n.link) : reason;
}

// --- weights ---

/// `scale` (channels,) beside W.
Array beside_weights(const Layer& layer, const Array& scale) {
  const Array& W = layer.W->array();
  Shape shape = Shape::filled(W.ndim(), 1);
  if (dynamic_cast<DepthwiseConvolution2D*>(layer.link)) {  // channel c * multiplier + m is W[m, c]
    shape[0] = W.shape(0), shape[1] = W.shape(1);
    return scale.reshape({W.shape(1), W.shape(0)}).transpose().reshape(shape);
  }
  if (layer.out_axis == 0) {
    shape[0] = W.shape(0);
    return scale.reshape(shape);
  }
  // (in, out / groups, ...), the rows of the groups behind one another.
  std::int64_t out = W.shape(1), groups = scale.size() / out;
  shape[0] = W.shape(0), shape[1] = out;
  return xp::broadcast_to(scale.reshape({groups, 1, out}), {groups, W.shape(0) / groups, out})
      .reshape(shape);
}

/// What a layer gets.
struct Weights {
  Layer* layer;
  Normalization* normalization;
  Array W, b;
};

Weights folded_weights(Layer& layer, Normalization& n) {
  const BatchNormalization& link = *n.link;
  auto wide = [](const Array& a) { return a.astype(float64); };
  auto [gamma, beta] = link.scale_and_shift();
  Array scale = wide(gamma.array()) / xp::sqrt(wide(link.avg_var) + link.eps);
  Array shift = wide(beta.array()) - wide(link.avg_mean) * scale;
  const Array& W = layer.W->array();
  Weights made{&layer, &n, xp::empty_like(W, {.order = 'K'}), {}};
  made.W.assign((wide(W) * beside_weights(layer, scale)).astype(W.dtype()));
  bool is_local = dynamic_cast<LocalConvolution2D*>(layer.link);  // whose b has a row per place
  Shape of_b = is_local ? Shape{W.shape(0), W.shape(1), W.shape(2)} : scale.shape();
  if (is_local) scale = scale.reshape({-1, 1, 1}), shift = shift.reshape({-1, 1, 1});
  Array b = layer.b->defined() ? wide(layer.b->array()) * scale + shift
                               : Array(xp::broadcast_to(shift, of_b));
  made.b = b.astype(layer.b->defined() ? layer.b->dtype() : W.dtype()).ascontiguous();
  return made;
}

/// Whether values that were finite are so in the weights' dtype.
bool fits(const Weights& made) {
  auto finite = [](const Array& a) { return xp::isfinite(a).all().item<bool>(); };
  return (finite(made.W) && finite(made.b)) || !finite(made.layer->W->array());
}

/// The weights in place; without keep(), what was there comes back.
class Replaced {
 public:
  explicit Replaced(std::vector<Weights> made) : made_(std::move(made)) {
    before_.reserve(made_.size());
  }
  /// Replaces them; what was done of it when an error is thrown is undone with this object.
  void replace() {
    for (Weights& w : made_) {
      Parameter &W = *w.layer->W, &b = *w.layer->b;
      before_.emplace_back(W.array(), b.defined() ? b.array() : Array());
      if (!b.defined()) {
        b = Parameter(Initializer(0).of(w.b.dtype()));
        b.body()->name = "b";
        b.set_update_enabled(W.update_enabled());
      }
      autograd::set_array(W, w.W), autograd::set_array(b, w.b);
      w.normalization->link->folded = true;
    }
  }
  ~Replaced() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      Layer& layer = *made_[i].layer;
      const auto& [W, b] = before_[i];
      autograd::set_array(*layer.W, W);
      if (b.defined()) autograd::set_array(*layer.b, b);
      else *layer.b = Parameter();
      made_[i].normalization->link->folded = false;
    }
  }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

  void keep() {
    for (const Weights& w : made_) {
      w.layer->W->cleargrad(), w.layer->b->cleargrad();
      BatchNormalization& link = *w.normalization->link;
      link.gamma = Parameter(), link.beta = Parameter();
      link.avg_mean = Persistent(), link.avg_var = Persistent();
    }
    before_.clear();
  }

 private:
  std::vector<Weights> made_;
  std::vector<std::pair<Array, Array>> before_;  // of W and b
};

// --- the check ---

Variables run_in_test(const std::function<Variables()>& run) {
  UsingConfig off(&Config::train, false);
  no_backprop_mode no_graph;
  return run();
}

std::optional<double> epsilon_of(Dtype dtype) {
  if (dtype_kind(dtype) != 'f') return std::nullopt;
  return xp::finfo(dtype).eps;
}

/// Of what the model gives, and of what folded layers do: an Autocast may narrow between.
double tolerance_of(const Variables& given, const std::vector<Weights>& made) {
  double greatest = 0;
  for (const Variable& y : given) greatest = std::max(greatest, epsilon_of(y.dtype()).value_or(0));
  for (const Weights& w : made) {
    for (Dtype dtype : {w.W.dtype(), w.layer->outputs[0]->dtype}) {
      greatest = std::max(greatest, epsilon_of(dtype).value_or(0));
    }
  }
  return std::sqrt(greatest);
}

/// How far the values have moved, as a part of the greatest one's magnitude; nothing where none is
/// floating and finite.
std::optional<double> distance(const Variables& before, const Variables& after) {
  constexpr double kOther = std::numeric_limits<double>::infinity();
  if (before.size() != after.size()) return kOther;
  std::optional<double> moved;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].shape() != after[i].shape()) return kOther;
    if (dtype_kind(before[i].dtype()) != 'f' || before[i].size() == 0) continue;
    Array was = before[i].array().astype(float64), is = after[i].array().astype(float64);
    Array known = xp::isfinite(was);
    if (!known.any().item<bool>()) continue;
    Array size = xp::where(known, xp::absolute(was), 0.0),
          way = xp::where(known, xp::absolute(is - was), 0.0);
    double by = way.max().item<double>(), of = size.max().item<double>();
    if (!(by <= std::numeric_limits<double>::max())) return kOther;
    moved = std::max(moved.value_or(0), by == 0 ? 0 : of > 0 ? by / of : kOther);
  }
  return moved;
}

}  // namespace

std::string FoldedNormalizations::str() const {
  std::string text = fmt::format("{} of {} batch normalizations folded", folded.size(),
                                 folded.size() + left.size());
  for (const Left& l : left) text += fmt::format("\n{}: {}", l.normalization, l.reason);
  return text;
}

FoldedNormalizations fold_batch_normalization(Link& model, const std::function<Variables()>& run,
                                              const FoldOptions& options) {
  stay_eager("fold_batch_normalization gives layers other weights");
  model.check_members();
  Seen seen(model);
  Variables before;
  {
    Calls calls(seen);
    Functions functions(seen, calls);
    LinkHookScope of_links(calls);
    FunctionHookScope of_functions(functions);
    before = run_in_test(run);
  }
  FoldedNormalizations found;
  std::vector<Weights> made;
  for (Normalization& n : seen.normalizations) {
    auto [layer, reason] = layer_before(seen, n);
    if (n.inputs.empty()) reason = "it was not called";
    else if (n.in_training) reason = "it was called in training";
    else if (layer) reason = reason_against(seen, n, *layer);
    if (reason.empty()) {
      Weights weights = folded_weights(*layer, n);
      if (fits(weights)) made.push_back(std::move(weights));
      else reason = fmt::format("{} cannot hold the weights", dtype_name(layer->W->dtype()));
    }
    if (reason.empty()) found.folded.push_back({n.path, layer->path});
    else found.left.push_back({n.path, reason});
  }
  if (made.empty()) return found;
  double tolerance = options.tolerance.value_or(tolerance_of(before, made));
  Replaced replaced(std::move(made));
  replaced.replace();
  std::optional<double> moved = distance(before, run_in_test(run));
  if (!moved) {
    throw ValueError(fmt::format(
        "fold_batch_normalization: {} gives no finite floating numbers, so nothing tells whether "
        "folding keeps them; the model is left as it was: give a callable that returns scores",
        model.type_name()));
  }
  found.moved = *moved;
  if (!(found.moved <= tolerance)) {
    throw ValueError(fmt::format(
        "fold_batch_normalization: what {} gives would move by {:.3g} of its greatest magnitude, "
        "more than {:.3g}, and the model is left as it was: it works with a layer's array outside "
        "of functions, keeps a state from run to run, draws random numbers, or magnifies rounding "
        "errors (then give a greater .tolerance)",
        model.type_name(), found.moved, tolerance));
  }
  replaced.keep();
  renew_recordings();
  return found;
}

FoldedNormalizations fold_batch_normalization(Link& model, const Variables& x,
                                              const FoldOptions& options) {
  return fold_batch_normalization(
      model, [&] { return Variables{model.invoke(x)}; }, options);
}

FoldedNormalizations fold_batch_normalization(Link& model, const Variable& x,
                                              const FoldOptions& options) {
  return fold_batch_normalization(model, Variables{x}, options);
}

}  // namespace rensa::links
