// Means of gradients over the ranks of a group.
#include "rensa/optimizers/multi_node_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <memory>

#include "rensa/array/agreement.h"
#include "rensa/array/creation.h"
#include "rensa/array/dtype_info.h"
#include "rensa/array/internal.h"
#include "rensa/array/manipulation.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/gradient_watch.h"
#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/optimizers/gradient_packs.h"
#include "rensa/optimizers/joint_update.h"
#include "rensa/optimizers/update_call.h"

namespace rensa {

namespace {

using detail::Alike;
using detail::Ends;
using detail::groups_of;
using detail::in_packs;
using detail::packs_of;

constexpr const char* kWayOut = "all ranks have to make the same model";

std::string line_of(const std::string& path, const Array& a) {
  return a.defined() ? fmt::format("{} {} {}\n", path, dtype_name(a.dtype()), a.shape().str())
                     : fmt::format("{} (waits for its shape)\n", path);
}

/// Gradients that are exchanged while backward goes on, each the owner's alone afterwards. Another
/// rank's reads as zeros, which take no memory.
class SharedOutGradients {
 public:
  void forget_all() { given_.clear(); }
  /// Adds a mean to the parameter's gradient; of another rank's, which is undefined, nothing.
  void give(const ParameterRef& p, const Array& mean) {
    if (mean.defined()) {
      Variable own = constant(detail::dense_as(mean, p.array()));
      autograd::store_grad(p.body(), autograd::added_to_grad(p.body(), own));
    } else {
      Array& zero = zeros_[p.update_rule()];
      if (!zero.defined() || zero.device() != p.device() || zero.dtype() != p.array().dtype()) {
        zero = xp::zeros({}, p.array().dtype(), p.device());
      }
      autograd::store_grad(p.body(), constant(zero.broadcast_to(p.array().shape())));
    }
    given_[p.update_rule()] = {p.grad().storage(), p.grad().storage()->version()};
  }
  /// Whether the parameter's gradient is all that was given.
  bool is_all(const ParameterRef& p) const {
    auto found = given_.find(p.update_rule());
    if (found == given_.end()) return false;
    Array now = p.grad();
    const Given& given = found->second;
    return now.defined() && now.storage() == given.storage &&
           now.storage()->version() == given.version;
  }
  /// Whether the parameter was given one. Throws ValueError where it has been changed since.
  bool has(const ParameterRef& p) const {
    if (!given_.contains(p.update_rule())) return false;
    if (is_all(p)) return true;
    throw ValueError(fmt::format(
        "create_multi_node_optimizer: the gradient of a parameter {} was changed after backward "
        "had exchanged it (sharded_gradients); change gradients in a hook, and have all of them "
        "come by Optimizer::backward",
        p.array().view().describe()));
  }

 private:
  struct Given {
    StoragePtr storage;
    std::uint32_t version;
  };
  template <class T> using ByRule = std::map<std::weak_ptr<const UpdateRule>, T, std::owner_less<>>;
  ByRule<Given> given_;  // since the last update
  ByRule<Array> zeros_;
};

/// Each update's gradients are their means over the ranks.
class MeanOverRanks : public JointUpdate, public GradientWatch {
 public:
  MeanOverRanks(Communicator communicator, MultiNodeOptimizerOptions options)
      : communicator_(std::move(communicator)),
        options_(options),
        loads_(static_cast<std::size_t>(communicator_.size())) {}

  bool fills_zeros() const override { return options_.zero_fill; }
  GradientWatch* watch() override { return options_.sharded_gradients ? this : nullptr; }

  void begin(const std::vector<ParameterRef>& parameters) override {
    std::vector<ParameterRef> fresh;
    for (const ParameterRef& p : parameters) {
      if (!known_.contains(p.update_rule())) fresh.push_back(p);
    }
    if (!fresh.empty()) {
      // Those that a file has brought are equal already, and their gradients each rank's own.
      std::vector<Array> arrays;
      std::string described;
      for (const ParameterRef& p : fresh) {
        described += fmt::format("a parameter, updated {} times,{}", p.update_rule()->t,
                                 line_of("", p.array()));
        if (p.update_rule()->t == 0) arrays.push_back(p.array()), arrays.push_back(p.grad());
      }
      check_agreement(communicator_, "the first update of parameters", described, kWayOut);
      in_packs(arrays, [&](const Array& pack) { return communicator_.bcast(pack, 0); });
      know(fresh);
    }
    what_ = name_of(parameters);
  }

  bool owns(const std::shared_ptr<UpdateRule>& rule) const override {
    if (!options_.sharded) return true;
    auto found = known_.find(rule);
    return found == known_.end() || found->second.owner == communicator_.rank();
  }

  bool join(const UpdateCall& call) override {
    if (options_.sharded) {
      join_shares(call);
    } else {
      in_packs(gradients_of(call), [&](const Array& pack) {
        return communicator_.allreduce(sent(pack), ReduceOp::mean, what_)
            .astype(pack.dtype(), false);
      });
    }
    return true;
  }

  Array total(const Array& own) const override {
    return options_.sharded ? communicator_.allreduce(own, ReduceOp::sum, "a total") : own;
  }

  void share(const UpdateCall& call) override {
    if (!options_.sharded) return;
    std::vector<Array> arrays;
    for (const UpdatedParameter& p : call.parameters) arrays.push_back(p.parameter.array());
    spread(arrays, owners_of(call));
  }

  /// Has every rank's states come to all.
  void gather_states(OptimizerState& optimizer, const Link& model) {
    if (!options_.sharded) return;
    std::vector<Array> arrays;
    std::vector<int> owners;
    for (const ParameterRef& p : model.params()) {
      if (!p.is_initialized() || !known_.contains(optimizer.rule_of(p))) continue;
      optimizer.prepare_for_update(p);
      const std::shared_ptr<UpdateRule>& rule = p.update_rule();
      std::vector<Array> kept = rule->states;
      if (rule->fp32_param.defined()) kept.push_back(rule->fp32_param);
      arrays.insert(arrays.end(), kept.begin(), kept.end());
      owners.insert(owners.end(), kept.size(), known(rule).owner);
    }
    spread(arrays, owners);
  }

  /// Parameters that are equal on all ranks, from now on.
  void know(std::vector<ParameterRef> parameters) {
    auto bytes = [](const ParameterRef& p) { return p.array().nbytes(); };
    std::ranges::stable_sort(parameters, std::ranges::greater(), bytes);
    for (const ParameterRef& p : parameters) {
      auto least = std::ranges::min_element(loads_);
      *least += bytes(p);
      known_[p.update_rule()] = {known_.size(), static_cast<int>(least - loads_.begin())};
    }
  }

 protected:
  static std::vector<Array> gradients_of(const UpdateCall& call) {
    std::vector<Array> gradients;
    for (const UpdatedParameter& p : call.parameters) gradients.push_back(p.grad);
    return gradients;
  }
  /// What goes to other ranks of a pack of gradients.
  Array sent(const Array& pack) const {
    return options_.allreduce_grad_dtype ? pack.astype(*options_.allreduce_grad_dtype, false)
                                         : pack;
  }
  /// The gradients that this update has: what ranks compare.
  const std::string& what() const { return what_; }

 private:
  struct Known {
    std::size_t place;  // when it came to be known
    int owner;          // the rank that has its states, where these are sharded
  };
  const Known& known(const std::shared_ptr<UpdateRule>& rule) const {
    return known_.find(rule)->second;
  }

  /// Says which parameters these are: the same on all ranks.
  std::string name_of(const std::vector<ParameterRef>& parameters) const {
    std::size_t sum = 0;
    for (const ParameterRef& p : parameters) sum = sum * 31 + known(p.update_rule()).place + 1;
    return fmt::format("{} gradients ({:x})", parameters.size(), sum & 0xffffff);
  }
  std::vector<int> owners_of(const std::vector<ParameterRef>& parameters) const {
    std::vector<int> owners;
    for (const ParameterRef& p : parameters) owners.push_back(known(p.update_rule()).owner);
    return owners;
  }
  std::vector<int> owners_of(const UpdateCall& call) const {
    std::vector<int> owners;
    for (const UpdatedParameter& p : call.parameters) owners.push_back(known(p.rule).owner);
    return owners;
  }

  /// A group's arrays by the rank that they belong to, one behind the other.
  std::vector<Ends> shares(const Alike& group, const std::vector<Array>& arrays,
                           const std::vector<int>& owners) const {
    std::vector<Ends> shares(loads_.size(), Ends(group.device, group.dtype));
    for (std::size_t i : group.members) shares[static_cast<std::size_t>(owners[i])].add(arrays[i]);
    return shares;
  }
  static std::vector<std::int64_t> counts_of(const std::vector<Ends>& shares) {
    std::vector<std::int64_t> counts;
    for (const Ends& share : shares) counts.push_back(share.size());
    return counts;
  }

  /// Gives take(group, own, means) what of each group's gradients belongs to this rank, and the
  /// means of those, end to end.
  template <class Take>
  void reduce_to_owners(const std::vector<Array>& gradients, const std::vector<int>& owners,
                        const std::string& what, Take&& take) {
    for (const Alike& group : groups_of(gradients)) {
      std::vector<Ends> all = shares(group, gradients, owners);
      std::vector<Array> joined;
      for (const Ends& share : all) {
        if (share.size() > 0) joined.push_back(share.joined());
      }
      Array every = joined.size() == 1 ? joined[0] : xp::concatenate(joined);
      Array means = communicator_.reduce_scatter(sent(every), counts_of(all), ReduceOp::mean, what);
      take(group, all[static_cast<std::size_t>(communicator_.rank())],
           means.astype(group.dtype, false));
    }
  }

  /// What backward has not exchanged yet.
  void join_shares(const UpdateCall& call) {
    std::vector<Array> gradients;
    std::vector<int> owners;
    for (const UpdatedParameter& p : call.parameters) {
      if (given_.has(p.parameter)) continue;
      gradients.push_back(p.grad), owners.push_back(known(p.rule).owner);
    }
    given_.forget_all();
    reduce_to_owners(gradients, owners, what_,
                     [](const Alike&, const Ends& own, const Array& mean) { own.assign(mean); });
  }

  // Of backward, with sharded gradients.
  void begin() override { complete_.clear(), gradients_.clear(), bytes_ = 0; }
  bool take(const std::shared_ptr<VariableBody>& leaf, const Variable& gradient) override {
    if (!leaf->parameter || gradient.creator()) return false;
    ParameterRef p(leaf);
    bool ours = p.update_enabled() && p.has_update_rule() && known_.contains(p.update_rule());
    if (!ours || (p.grad().defined() && !given_.is_all(p))) return false;
    complete_.push_back(p), gradients_.push_back(gradient.array());
    bytes_ += gradients_.back().nbytes();
    if (bytes_ >= detail::kPackBytes) end();
    return true;
  }
  void end() override {
    if (complete_.empty()) return;
    std::vector<int> owners = owners_of(complete_);
    std::vector<Array> means(complete_.size());
    reduce_to_owners(gradients_, owners, name_of(complete_),
                     [&](const Alike& group, const Ends&, const Array& own) {
                       Ends mine(group.device, group.dtype);
                       for (std::size_t i : group.members) {
                         if (owners[i] != communicator_.rank()) continue;
                         const Shape& shape = gradients_[i].shape();
                         bool is_all = gradients_[i].size() == own.size();  // and no copy is made
                         means[i] = is_all ? own.reshape(shape)
                                           : xp::empty(shape, group.dtype, group.device);
                         if (!is_all) mine.add(means[i]);
                       }
                       if (mine.size() > 0) mine.assign(own);
                     });
    for (std::size_t i = 0; i < complete_.size(); ++i) given_.give(complete_[i], means[i]);
    begin();
  }

  /// Gives all ranks the arrays of each one's own.
  void spread(const std::vector<Array>& arrays, const std::vector<int>& owners) {
    auto rank = static_cast<std::size_t>(communicator_.rank());
    for (const Alike& group : groups_of(arrays)) {
      std::vector<Ends> all = shares(group, arrays, owners);
      Array whole = communicator_.allgatherv(all[rank].joined(), counts_of(all), what_);
      std::int64_t at = 0;
      for (std::size_t owner = 0; owner < all.size(); ++owner) {
        if (owner != rank) all[owner].assign(whole, at);
        at += all[owner].size();
      }
    }
  }

  Communicator communicator_;
  MultiNodeOptimizerOptions options_;
  SharedOutGradients given_;
  std::vector<ParameterRef> complete_;  // and their gradients, which are to be exchanged next
  std::vector<Array> gradients_;
  std::int64_t bytes_ = 0;
  std::vector<std::int64_t> loads_;  // bytes of parameters that belong to each rank
  std::string what_;
  /// Of parameters that are equal on all ranks. Held by no address: another rule may have that of
  /// one that is gone.
  std::map<std::weak_ptr<const UpdateRule>, Known, std::owner_less<>> known_;
};

/// Means of the gradients of the update before, which another thread makes meanwhile.
class LateMeanOverRanks final : public MeanOverRanks {
 public:
  LateMeanOverRanks(const Communicator& communicator, const MultiNodeOptimizerOptions& options,
                    std::weak_ptr<OptimizerState> optimizer)
      : MeanOverRanks(communicator, options),
        behind_(communicator.on(cpu()).split(0, communicator.rank())),
        optimizer_(std::move(optimizer)) {}

  bool join(const UpdateCall& call) override {
    refuse_recording("gradients are exchanged by another thread (double_buffering)");
    double scale = loss_scale();
    std::vector<Ends> packs = packs_of(gradients_of(call));
    std::vector<Array> own;
    // Copies: the other thread reads them while the gradients get the means of the step before.
    for (const Ends& pack : packs) own.push_back(sent(pack.joined()).copy(cpu()));
    std::vector<Array> means;
    if (under_way_.valid()) means = under_way_.get();
    bool are_these = means.size() == packs.size() && what_under_way_ == what();
    double rescale = scale / scale_under_way_;
    under_way_ = std::async(std::launch::async, [c = behind_, what = what(), own] {
      std::vector<Array> all;
      for (const Array& a : own) all.push_back(c.allreduce(a, ReduceOp::mean, what));
      return all;
    });
    what_under_way_ = what(), scale_under_way_ = scale;
    if (!are_these) return false;  // of other parameters, or of none
    for (std::size_t i = 0; i < packs.size(); ++i) {
      Array mean = means[i].astype(packs[i].dtype(), false);
      packs[i].assign((rescale == 1 ? mean : mean * rescale).to(packs[i].device()));
    }
    return true;
  }

 private:
  /// That the gradients bear.
  double loss_scale() const {
    std::shared_ptr<OptimizerState> optimizer = optimizer_.lock();
    if (optimizer->dynamic) {
      throw NotImplementedError(
          "create_multi_node_optimizer: the gradients that are on their way (double_buffering) "
          "bear a scale that a dynamic loss scale has changed since; give it one that stays, "
          "loss_scaling({.scale = ...})");
    }
    return optimizer->loss_scale;
  }

  Communicator behind_;  // of the other thread
  std::weak_ptr<OptimizerState> optimizer_;
  std::future<std::vector<Array>> under_way_;
  std::string what_under_way_;
  double scale_under_way_ = 1;
};

/// Stages of one model.
class StagesOfOne final : public JointUpdate {
 public:
  explicit StagesOfOne(Communicator communicator) : communicator_(std::move(communicator)) {}
  bool of_equal_models() const override { return false; }
  void begin(const std::vector<ParameterRef>&) override {}
  bool join(const UpdateCall&) override { return true; }
  Array total(const Array& own) const override {
    return communicator_.allreduce(own, ReduceOp::sum, "a total over stages");
  }

 private:
  Communicator communicator_;
};

void check_alone(const char* function, const Optimizer& optimizer) {
  if (!optimizer.state()->joint) return;
  throw ValueError(
      fmt::format("{}: {} works with other ranks already", function, optimizer.state()->name()));
}

void join_updates(const Optimizer& optimizer, std::shared_ptr<JointUpdate> joint) {
  optimizer.state()->joint = std::move(joint);
  optimizer.state()->change_structure();
}

}  // namespace

void bcast_data(const Communicator& communicator, Link& model) {
  std::vector<Array> arrays;
  std::string described;
  for (const NamedParameter& p : model.namedparams()) {
    bool initialized = p.parameter.is_initialized();
    described += line_of(p.path, initialized ? p.parameter.array() : Array());
    if (initialized) arrays.push_back(p.parameter.array());
  }
  check_agreement(communicator, "bcast_data", described, kWayOut);
  in_packs(arrays, [&](const Array& pack) { return communicator.bcast(pack, 0); });
}

Optimizer create_multi_node_optimizer(Optimizer optimizer, const Communicator& communicator,
                                      const MultiNodeOptimizerOptions& options) {
  check_alone("create_multi_node_optimizer", optimizer);
  if (Dtype dtype = options.allreduce_grad_dtype.value_or(float32); dtype_kind(dtype) != 'f') {
    throw DtypeError(fmt::format(
        "create_multi_node_optimizer: gradients cannot be sent as {}; take bfloat16 or float16",
        dtype_name(dtype)));
  }
  if (options.double_buffering && options.sharded) {
    throw ValueError(
        "create_multi_node_optimizer: double_buffering and sharded, of which one update has but "
        "one");
  }
  if (options.sharded_gradients && !options.sharded) {
    throw ValueError("create_multi_node_optimizer: sharded_gradients wants sharded, too");
  }
  auto joint = options.double_buffering
                   ? std::make_shared<LateMeanOverRanks>(communicator, options, optimizer.state())
                   : std::make_shared<MeanOverRanks>(communicator, options);
  if (optimizer.state()->target) {
    bcast_data(communicator, optimizer.target());
    std::vector<ParameterRef> initialized;
    for (const ParameterRef& p : optimizer.target().params()) {
      if (!p.is_initialized()) continue;
      optimizer.state()->rule_of(p);  // which is known from now on
      initialized.push_back(p);
    }
    joint->know(std::move(initialized));
  }
  join_updates(optimizer, std::move(joint));
  return optimizer;
}

Optimizer create_pipeline_optimizer(Optimizer optimizer, const Communicator& communicator) {
  check_alone("create_pipeline_optimizer", optimizer);
  join_updates(optimizer, std::make_shared<StagesOfOne>(communicator));
  return optimizer;
}

void gather_states(const Optimizer& optimizer) {
  auto* joint = dynamic_cast<MeanOverRanks*>(optimizer.state()->joint.get());
  if (joint) joint->gather_states(*optimizer.state(), optimizer.target());
}

}  // namespace rensa
