// ParallelUpdater: the replicas, their optimizers and the iteration that they make together.
#include "rensa/training/parallel_updater.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "rensa/array/internal.h"
#include "rensa/autograd/gradient_watch.h"
#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/links/mute_reports.h"
#include "rensa/optimizers/host_numbers.h"
#include "rensa/training/batch_parts.h"
#include "rensa/training/gradient_sum.h"
#include "rensa/training/replica_team.h"
#include "rensa/training/step_inputs.h"

namespace rensa::training {

namespace {

/// The optimizer of a replica: the algorithm and the hooks of main's, states of its own.
class ReplicaOptimizer final : public Optimizer {
 public:
  explicit ReplicaOptimizer(const Optimizer& main) : Optimizer(main.state()->algorithm) {}
};

struct Replica {
  std::string name;
  Device device;
  std::unique_ptr<Link> model;  // null for main, which is the optimizer's
  Optimizer optimizer;
};

DynamicLossScale copy_of(const DynamicLossScale& main) {
  DynamicLossScale copy = main;
  for (Array* array : {&copy.scale, &copy.overflowed, &copy.enabled}) {
    if (array->defined()) *array = array->copy('K');
  }
  return copy;
}

/// Gives the optimizer of a replica the loss scale of main's.
void copy_scale(const Optimizer& from, const Optimizer& to) {
  if (from.state()->dynamic) *to.state()->dynamic = copy_of(*from.state()->dynamic);
}

/// Gives the optimizer of a replica the counts and states of main's.
void copy_states(const Optimizer& from, const Optimizer& to) {
  to.state()->t = from.state()->t;
  std::vector<ParameterRef> sources = from.target().params(), targets = to.target().params();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::shared_ptr<UpdateRule> source = from.state()->rule_of(sources[i]);
    std::shared_ptr<UpdateRule> target = to.state()->rule_of(targets[i]);
    target->t = source->t;
    target->states.clear();
    for (const Array& state : source->states) {
      target->states.push_back(state.copy(targets[i].device()));
    }
    const Array& wide = source->fp32_param;
    target->fp32_param = wide.defined()
                             ? detail::dense_as(wide.copy(targets[i].device()), targets[i].array())
                             : Array();
  }
}

/// Gives the parameters of a replica the values of main's, and the order in which their axes lie in
/// memory: gradients are added up element by element as they lie.
void copy_parameters(const Link& from, Link& to) {
  to.copyparams(from, false);
  std::vector<ParameterRef> sources = from.params(), targets = to.params();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].is_initialized()) continue;
    const Array &model = sources[i].array(), &own = targets[i].array();
    if (!rensa::detail::lies_as(own, model)) {
      autograd::set_array(targets[i], rensa::detail::dense_as(own, model));
    }
  }
}

/// Gives a replica what an update has changed in main.
void take_update(const Optimizer& from, const Optimizer& to) {
  std::vector<ParameterRef> sources = from.target().params(), targets = to.target().params();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].is_initialized()) targets[i].copydata(sources[i]);
  }
  if (!from.state()->dynamic) return;
  const DynamicLossScale &main = *from.state()->dynamic, &own = *to.state()->dynamic;
  for (Array DynamicLossScale::*array :
       {&DynamicLossScale::scale, &DynamicLossScale::overflowed, &DynamicLossScale::enabled}) {
    const Array &source = main.*array, &target = own.*array;
    if (source.defined() && target.defined()) target.assign(source.to(target.device()));
  }
}

/// What was set on main's since: hooks, values, what is left out.
void follow(const Optimizer& main, const Optimizer& replica) {
  replica.state()->follow(*main.state());
  replica.state()->epoch = main.state()->epoch;
  std::vector<ParameterRef> sources = main.target().params(), targets = replica.target().params();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    replica.state()->rule_of(targets[i])->follow(*main.state()->rule_of(sources[i]));
    targets[i].set_update_enabled(sources[i].update_enabled());
  }
}

/// The replicas share the algorithm and the hooks, each in its thread, and have to do the same.
void check_shared(const Optimizer& optimizer) {
  if (optimizer.state()->joint) {
    throw NotImplementedError(
        "ParallelUpdater: the optimizer works with other ranks (create_multi_node_optimizer), "
        "which "
        "its replicas do not; with .update_on_main = true main does");
  }
  const OptimizerAlgorithm& algorithm = *optimizer.state()->algorithm;
  const char* keeps =
      "ParallelUpdater: the {} {} shows members(), which calls may change, and would be shared by "
      "replicas that call it at the same time; have its asks_anew() give true where calls leave "
      "them "
      "alone, or train on one device";
  if (!algorithm.asks_anew() && shows_anything(algorithm)) {
    throw NotImplementedError(fmt::format(fmt::runtime(keeps), "optimizer", algorithm.name()));
  }
  HookList hooks = optimizer.state()->hooks;
  for (const ParameterRef& p : optimizer.target().params()) {
    if (!p.has_update_rule()) continue;
    const HookList& own = p.update_rule()->hooks();
    hooks.insert(hooks.end(), own.begin(), own.end());
  }
  for (const auto& hook : hooks) {
    if (hook->is_random()) {
      throw NotImplementedError(
          fmt::format("ParallelUpdater: the optimizer's hook {} makes other random numbers on each "
                      "device, with which the replicas would go apart",
                      hook->name()));
    }
    if (!hook->asks_anew() && shows_anything(*hook)) {
      throw NotImplementedError(fmt::format(fmt::runtime(keeps), "hook", hook->name()));
    }
  }
}

void check_options(const ParallelUpdaterOptions& options) {
  std::set<std::string> names;
  for (const auto& [name, device] : options.devices) {
    if (!names.insert(name).second) {
      throw ValueError(fmt::format("ParallelUpdater: two devices named \"{}\"", name));
    }
  }
  if (!names.count("main")) {
    throw ValueError("ParallelUpdater: one of its devices has to be named \"main\"");
  }
  if (options.reduction != "sum" && options.reduction != "mean") {
    throw ValueError(fmt::format(
        "ParallelUpdater: the reduction is \"sum\" or \"mean\", not \"{}\"", options.reduction));
  }
  if (options.accumulate < 1) {
    throw ValueError(
        fmt::format("ParallelUpdater: parts of a batch in {} parts", options.accumulate));
  }
  if (options.pack_bytes < 1) {
    throw ValueError(
        fmt::format("ParallelUpdater: gradients in packs of {} bytes", options.pack_bytes));
  }
}

/// Main in front.
ParallelUpdaterOptions ordered(ParallelUpdaterOptions options) {
  check_options(options);
  std::stable_partition(options.devices.begin(), options.devices.end(),
                        [](const auto& device) { return device.first == "main"; });
  return options;
}

bool has_waiting_parameters(const Link& model) {
  return !std::ranges::all_of(model.params(),
                              [](const ParameterRef& p) { return p.is_initialized(); });
}

std::vector<Device> devices_of(const ParallelUpdaterOptions& options) {
  std::vector<Device> devices;
  for (const auto& [name, device] : options.devices) devices.push_back(device);
  return devices;
}

class ParallelBody final : public UpdaterBody {
 public:
  ParallelBody(Iterator iterator, Optimizer optimizer, ParallelUpdaterOptions options)
      : UpdaterBody(std::move(iterator), std::move(optimizer)),
        options_(ordered(std::move(options))),
        converter_(options_.converter_options),
        sum_(devices_of(options_), options_.pack_bytes),
        cache_(options_.capture_options),
        team_(static_cast<int>(options_.devices.size())) {
    Link& main = this->optimizer().target();
    main.to(options_.devices[0].second);
    replicas_.push_back({"main", options_.devices[0].second, nullptr, this->optimizer()});
    CopyModeScope deep(CopyMode::copy);
    for (std::size_t i = 1; i < options_.devices.size(); ++i) {
      const auto& [name, device] = options_.devices[i];
      std::unique_ptr<Link> model = main.clone();
      model->to(device);
      ReplicaOptimizer replica_optimizer(this->optimizer());
      replica_optimizer.setup(*model);
      replicas_.push_back({name, device, std::move(model), replica_optimizer});
    }
  }

  Link& model(const std::string& name) {
    for (Replica& replica : replicas_) {
      if (replica.name == name) return replica.optimizer.target();
    }
    throw ValueError(fmt::format("ParallelUpdater: no device is named \"{}\"", name));
  }
  void synchronize() { synchronized_ = false; }
  const CaptureStats& capture_stats() const { return cache_.stats(); }

  void members(Visitor& v) override {
    UpdaterBody::members(v);
    if (Visitor::Reading* file = v.reading()) file->then([this] { synchronize(); });
  }

 protected:
  void update_core() override {
    Batch batch = next_batch();
    Variable main_loss;
    each_replica([&](Replica& replica) {
      replica.optimizer.target().copy_persistents(optimizer().target());
    });
    if (!synchronized_) {
      // Main goes first where its forward pass gives parameters their shapes and values.
      if (has_waiting_parameters(optimizer().target())) {
        main_loss = first_loss(columns(0, located(0, batch).gather()));
      }
      each_replica([&](Replica& replica) {
        copy_parameters(optimizer().target(), replica.optimizer.target());
        follow(optimizer(), replica.optimizer);
        if (!options_.update_on_main) copy_states(optimizer(), replica.optimizer);
        copy_scale(optimizer(), replica.optimizer);
      });
    }
    if (!options_.update_on_main) check_shared(optimizer());
    each_replica([&](Replica& replica) { follow(optimizer(), replica.optimizer); });
    bool captured = is_recorded() && synchronized_ && batch.size() >= members();
    synchronized_ = false;  // should a replica fail after another's update
    if (captured) update_captured(batch);
    else update_by_team(batch, std::move(main_loss));
    synchronized_ = true;
  }

 private:
  /// Those that are not main.
  template <class F> void each_replica(F use) {
    for (std::size_t i = 1; i < replicas_.size(); ++i) use(replicas_[i]);
  }
  Replica& replica(int member) { return replicas_[static_cast<std::size_t>(member)]; }
  /// Where nothing would be recorded threads do better.
  bool is_recorded() const {
    bool on_gpu = options_.devices[0].second.is_cuda();
    return options_.capture && (on_gpu || options_.capture_options.replay_lists);
  }
  int members() const { return static_cast<int>(options_.devices.size()); }

  /// Each replica by its thread. `main_loss`: main's, where it has been computed already.
  void update_by_team(const Batch& batch, Variable main_loss) {
    sum_.plan_early(optimizer().target());
    team_.run([&](int member) {
      Variables own = columns(member, located(member, batch).gather());
      backward(member, own, weight(member, batch), true,
               member == 0 ? std::move(main_loss) : Variable());
      sum_.collect(member, replica(member).optimizer.target());
      team_.barrier();  // all gradients are queued; whoever failed has been noticed
      sum_.fill_missing(member);
      team_.barrier();  // all have looked at what the others lack
      if (member == 0) sum_.sum();
      team_.barrier();
      sum_.finish_early(member);
      update(member);
    });
  }

  /// One after the other, as a step that is recorded.
  void update_captured(const Batch& batch) {
    std::vector<LocatedBatch> parts;
    Variables inputs;
    for (int member = 0; member < members(); ++member) {
      parts.push_back(located(member, batch));
      append_inputs(parts.back(), inputs);
    }
    auto step = [&](const Variables& in) {
      auto next = in.begin();
      for (int member = 0; member < members(); ++member) {
        Columns part = columns_of(parts[static_cast<std::size_t>(member)], next);
        MuteReports muted(member != 0);
        backward(member, columns(member, std::move(part)), weight(member, batch), false);
        sum_.collect(member, replica(member).optimizer.target());
      }
      for (int member = 0; member < members(); ++member) sum_.fill_missing(member);
      sum_.sum();
      for (int member = 0; member < members(); ++member) update(member);
      return Variables();
    };
    cache_.call(step, inputs);
  }

  Batch part(int member, const Batch& batch) const {
    return batch.strided(member, static_cast<std::int64_t>(replicas_.size()));
  }

  /// By how much a member's gradients count in the sum.
  double weight(int member, const Batch& batch) const {
    if (options_.reduction == "sum") return 1;
    return static_cast<double>(part(member, batch).size()) / static_cast<double>(batch.size());
  }

  /// The member's part of the batch, on its device; without columns when there is nothing in it.
  LocatedBatch located(int member, const Batch& batch) {
    Batch own = part(member, batch);
    if (own.size() == 0) return {};
    Device device = replica(member).device;
    DeviceScope on(device);
    if (options_.converter) return {options_.converter(own, device), {}};
    return converter_.locate(own, device);
  }

  /// Those of a member's part of a batch, as what the model takes.
  Variables columns(int member, Columns part) const {
    DeviceScope on(replicas_[static_cast<std::size_t>(member)].device);
    Variables columns;
    for (Array& column : part) columns.push_back(constant(std::move(column)));
    return columns;
  }

  Variable loss(int member, const Variables& part) {
    force_backprop_mode with_graph;
    return replica(member).optimizer.target().invoke(part);
  }

  /// Main's, of the first of the parts that backward() takes.
  Variable first_loss(const Variables& columns) {
    if (columns.empty()) return {};
    DeviceScope on(replica(0).device);
    Variable first;
    each_part(columns, options_.accumulate, [&](const Variables& part, double) {
      if (!first.defined()) first = loss(0, part);
    });
    return first;
  }

  /// Gradients of a member's part of a batch, which may be empty. `early`: those of its last part
  /// are shown to the sum. `first`, where it is defined, is the loss that first_loss() gave of it.
  void backward(int member, const Variables& columns, double weight, bool early,
                Variable first = {}) {
    DeviceScope on(replica(member).device);
    const Optimizer& optimizer = replica(member).optimizer;
    std::int64_t left = num_parts(columns, options_.accumulate);
    bool clear = true;
    if (columns.empty()) optimizer.target().cleargrads();
    else
      each_part(columns, options_.accumulate, [&](const Variables& part, double share) {
        Variable of_part = first.defined() ? std::exchange(first, {}) : loss(member, part);
        if (std::exchange(clear, false)) optimizer.target().cleargrads();
        std::optional<GradientWatchScope> watched;
        if (GradientWatch* watch =
                --left == 0 && early ? sum_.early(member, optimizer.target()) : nullptr) {
          watched.emplace(watch);
        }
        optimizer.backward(std::move(of_part), weight * share);
      });
  }

  /// With the sum of all gradients: the member's own update, or main's for all, which is made in
  /// main's thread as a whole.
  void update(int member) {
    if (!options_.update_on_main) return update_alone(member);
    if (member > 0) return;
    update_alone(0);
    for (int other = 1; other < members(); ++other) {
      DeviceScope on(replica(other).device);
      sum_.give_back(other);
      take_update(optimizer(), replica(other).optimizer);
    }
  }

  void update_alone(int member) {
    DeviceScope on(replica(member).device);
    sum_.give_back(member);
    replica(member).optimizer.update();
  }

  ParallelUpdaterOptions options_;
  Converter converter_;
  std::vector<Replica> replicas_;
  GradientSum sum_;
  CaptureCache cache_;
  bool synchronized_ = false;
  ReplicaTeam team_;  // last: its threads end before what they use
};

}  // namespace

ParallelUpdater::ParallelUpdater(Iterator iterator, Optimizer optimizer,
                                 ParallelUpdaterOptions options)
    : Updater(std::make_shared<ParallelBody>(std::move(iterator), std::move(optimizer),
                                             std::move(options))) {}

Link& ParallelUpdater::model(const std::string& name) const {
  return static_cast<ParallelBody&>(*body_).model(name);
}

const CaptureStats& ParallelUpdater::capture_stats() const {
  return static_cast<const ParallelBody&>(*body_).capture_stats();
}

void ParallelUpdater::synchronize() const { static_cast<ParallelBody&>(*body_).synchronize(); }

}  // namespace rensa::training
