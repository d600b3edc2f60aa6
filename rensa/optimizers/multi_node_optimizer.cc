// Means of gradients over the ranks of a group.
#include "rensa/optimizers/multi_node_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <ranges>

#include "rensa/array/agreement.h"
#include "rensa/array/creation.h"
#include "rensa/array/dtype_info.h"
#include "rensa/array/internal.h"
#include "rensa/array/manipulation.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/optimizers/joint_update.h"
#include "rensa/optimizers/update_call.h"

namespace rensa {

namespace {

constexpr const char* kWayOut = "all ranks have to make the same model";

std::string line_of(const std::string& path, const Array& a) {
  return a.defined() ? fmt::format("{} {} {}\n", path, dtype_name(a.dtype()), a.shape().str())
                     : fmt::format("{} (waits for its shape)\n", path);
}

/// Arrays of one device and dtype.
struct Alike {
  Device device;
  Dtype dtype;
  std::vector<std::size_t> members;  // places among the arrays
};

/// In the order of the first of each.
std::vector<Alike> groups_of(const std::vector<Array>& arrays) {
  std::vector<Alike> groups;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Array& a = arrays[i];
    auto same = std::ranges::find_if(groups, [&](const Alike& group) {
      return group.device == a.device() && group.dtype == a.dtype();
    });
    if (same == groups.end()) same = groups.insert(same, {a.device(), a.dtype(), {}});
    same->members.push_back(i);
  }
  return groups;
}

/// Arrays end to end, in one dimension.
class Ends {
 public:
  Ends(Device device, Dtype dtype) : device_(device), dtype_(dtype) {}
  void add(const Array& a) { arrays_.push_back(a), size_ += a.size(); }
  Device device() const { return device_; }
  Dtype dtype() const { return dtype_; }
  std::int64_t size() const { return size_; }
  Array joined() const {
    if (arrays_.size() == 1) return arrays_[0].ravel();
    std::vector<Array> flat;
    for (const Array& a : arrays_) flat.push_back(a.ravel());
    return flat.empty() ? xp::empty({0}, dtype_, device_) : xp::concatenate(flat);
  }
  /// Gives the arrays the values of `joined` from `at` on.
  void assign(const Array& joined, std::int64_t at = 0) const {
    std::vector<detail::CopyPair> parts;
    for (const Array& a : arrays_) {
      parts.push_back({joined[Slice(at, at + a.size())].reshape(a.shape()), a});
      at += a.size();
    }
    detail::copy_parts("multi_node_optimizer", parts);
  }

 private:
  Device device_;
  Dtype dtype_;
  std::vector<Array> arrays_;
  std::int64_t size_ = 0;
};

/// What goes at once: larger packs take no less time, and begin later.
constexpr std::int64_t kPackBytes = 25 << 20;

/// The arrays of each dtype and device, end to end, in packs of about kPackBytes: the last ones
/// first, whose gradients are there first. So a captured step exchanges them under backward.
std::vector<Ends> packs_of(const std::vector<Array>& arrays) {
  std::vector<Ends> packs;
  for (const Alike& group : groups_of(arrays)) {
    std::int64_t bytes = 0;
    for (std::size_t i : std::views::reverse(group.members)) {
      if (bytes == 0 || bytes + arrays[i].nbytes() > kPackBytes) {
        packs.emplace_back(group.device, group.dtype);
        bytes = 0;
      }
      packs.back().add(arrays[i]);
      bytes += arrays[i].nbytes();
    }
  }
  return packs;
}

/// Replaces arrays by what `make` gives for one array of each pack.
template <class Make> void in_packs(const std::vector<Array>& arrays, Make&& make) {
  for (const Ends& pack : packs_of(arrays)) pack.assign(make(pack.joined()));
}

class MeanOverRanks : public JointUpdate {
 public:
  MeanOverRanks(Communicator communicator, MultiNodeOptimizerOptions options)
      : communicator_(std::move(communicator)),
        options_(options),
        loads_(static_cast<std::size_t>(communicator_.size())) {}

  bool fills_zeros() const override { return options_.zero_fill; }

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
    std::size_t sum = 0;
    for (const ParameterRef& p : parameters) sum = sum * 31 + known(p.update_rule()).place + 1;
    what_ = fmt::format("{} gradients ({:x})", parameters.size(), sum & 0xffffff);
  }

  bool owns(const std::shared_ptr<UpdateRule>& rule) const override {
    if (!options_.sharded) return true;
    auto found = known_.find(rule);
    return found == known_.end() || found->second.owner == communicator_.rank();
  }

  bool join(const UpdateCall& call) override {
    std::vector<Array> gradients = gradients_of(call);
    if (options_.sharded) {
      join_shares(call, gradients);
    } else {
      in_packs(gradients, [&](const Array& pack) {
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

  void join_shares(const UpdateCall& call, const std::vector<Array>& gradients) {
    std::vector<int> owners = owners_of(call);
    for (const Alike& group : groups_of(gradients)) {
      std::vector<Ends> all = shares(group, gradients, owners);
      std::vector<Array> joined;
      for (const Ends& share : all) joined.push_back(share.joined());
      Array own = communicator_.reduce_scatter(sent(xp::concatenate(joined)), counts_of(all),
                                               ReduceOp::mean, what_);
      all[static_cast<std::size_t>(communicator_.rank())].assign(own.astype(group.dtype, false));
    }
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
