// Tempting steps: what they set on the host, in generators, optimizers, hooks, models, iterators
// and the configuration.
#pragma once

#include "rensa/array/random.h"
#include "rensa/data/iterator.h"
#include "rensa/links/reporter.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "tests/graph/tempting_steps.h"
#include "tests/temporary_folder.h"

namespace rensa::tempting {

inline std::vector<Array> number(double value) {
  return {xp::array(static_cast<float>(value), cpu())};
}

/// x + noise, after `set(n)` of the n-th call.
template <class Set> Program drawing(const Set& set) {
  xp::random::seed(3);
  return {[set, n = shared(0)](const Variable& x) {
    set(++*n);
    return F::dropout(x, 0.5) + 1;
  }};
}

inline Program other_seed(Device) {
  return drawing([](int n) { xp::random::seed(static_cast<std::uint64_t>(n)); });
}

inline Program other_seed_of_the_device(Device device) {
  return drawing([device](int n) { xp::random::seed(static_cast<std::uint64_t>(n), device); });
}

inline Program one_generator_state(Device device) {
  return drawing([device](int) { xp::random::set_random_state({7, 64}, device); });
}

inline Program other_generator_offset(Device device) {
  return drawing([device](int n) { xp::random::set_random_state({7, n}, device); });
}

/// The state of a generator of one's own, which the caller reads.
inline Program own_generators_state(Device device) {
  auto generator = shared(xp::random::default_rng(5, device));
  return {[generator](const Variable& x) {
            generator->set_state({7, 64});
            return x + constant(generator->normal(0, 1, {3}, float32));
          },
          [](int) {},
          [generator] { return number(static_cast<double>(generator->get_state().offset)); }};
}

/// A link in training, whose step begins with `set`.
struct Training {
  explicit Training(Device device, Optimizer o = optimizers::MomentumSGD(0.01))
      : optimizer(std::move(o)) {
    link.to(device);
    optimizer.setup(link);
  }
  Weighted link;
  Optimizer optimizer;
  int calls = 0;
};

template <class Set>
Program training_that_sets(const std::shared_ptr<Training>& training, const Set& set) {
  return {[training, set](const Variable& x) {
            ++training->calls;
            set(*training);
            return training->optimizer.update(training->link, x);
          },
          [](int) {}, [training] { return std::vector<Array>{training->link.w.array()}; }};
}
template <class Set> Program training_that_sets(Device device, const Set& set) {
  return training_that_sets(std::make_shared<Training>(device), set);
}

inline Program hyperparameter_of_a_parameter(Device device) {
  return training_that_sets(
      device, [](Training& t) { t.link.w.update_rule()->set_hyperparam("lr", 0.01 / t.calls); });
}

inline Program hyperparameter_that_is_reset(Device device) {
  auto training = std::make_shared<Training>(device);
  Program program = training_that_sets(
      training, [](Training& t) { t.link.w.update_rule()->reset_hyperparam("lr"); });
  program.before = [training](int i) {
    if (i > 4) training->link.w.update_rule()->set_hyperparam("lr", 0.01 / i);
  };
  return program;
}

/// The hyperparameter through a reference that was taken before.
inline Program hyperparameter_by_reference(Device device) {
  auto training = std::make_shared<Training>(device);
  return training_that_sets(training,
                            [&lr = training->optimizer.attribute("lr")](Training&) { lr *= 0.5; });
}

template <class Hook, class Set> Program hook_that_changes(Device device, Hook hook, Set set) {
  auto training = std::make_shared<Training>(device);
  auto held = shared(std::move(hook));
  training->optimizer.add_hook(held);
  return training_that_sets(training, [held, set](Training&) { set(*held); });
}

inline Program rate_of_a_hook(Device device) {
  return hook_that_changes(device, optimizer_hooks::WeightDecay(0.1),
                           [](auto& hook) { hook.rate *= 0.5; });
}

inline Program threshold_of_a_hook(Device device) {
  return hook_that_changes(device, optimizer_hooks::GradientClipping(10),
                           [](auto& hook) { hook.threshold *= 0.5; });
}

inline Program rate_of_a_parameters_hook(Device device) {
  auto training = std::make_shared<Training>(device);
  auto hook = std::make_shared<optimizer_hooks::Lasso>(0.1);
  training->link.w.update_rule()->add_hook(hook);
  return training_that_sets(training, [hook](Training&) { hook->rate *= 0.5; });
}

/// A hook that the caller sets: followed.
inline Program rate_that_the_caller_sets(Device device) {
  auto training = std::make_shared<Training>(device);
  auto hook = std::make_shared<optimizer_hooks::WeightDecay>(0.1);
  training->optimizer.add_hook(hook);
  Program program = training_that_sets(training, [](Training&) {});
  program.before = [training, hook](int) {
    hook->rate *= 0.5;
    training->optimizer.attribute("lr") *= 0.75;
  };
  return program;
}

/// A hook of the user's own: it counts on the host.
struct CountingHook : OptimizerHook {
  std::int64_t calls = 0;
  const char* name() const override { return "CountingHook"; }
  void operator()(const UpdateCall&) override { ++calls; }
  void members(Visitor& v) override { v("calls", calls); }
};

inline Program hook_that_counts(Device device) {
  auto training = std::make_shared<Training>(device);
  auto hook = std::make_shared<CountingHook>();
  training->optimizer.add_hook(hook);
  Program program = training_that_sets(training, [](Training&) {});
  program.seen = [hook] { return number(static_cast<double>(hook->calls)); };
  return program;
}

/// The same with a Counter.
struct CounterHook : OptimizerHook {
  Counter calls;
  const char* name() const override { return "CounterHook"; }
  void operator()(const UpdateCall&) override { ++calls; }
  void members(Visitor& v) override { v("calls", calls); }
};

inline Program hook_with_a_counter(Device device) {
  auto training = std::make_shared<Training>(device);
  auto hook = std::make_shared<CounterHook>();
  training->optimizer.add_hook(hook);
  Program program = training_that_sets(training, [](Training&) {});
  program.seen = [hook] { return counted(hook->calls); };
  return program;
}

/// An algorithm of the user's own, whose number is in array expressions.
struct PlainSGD : OptimizerAlgorithm {
  double lr = 0.01;
  const char* name() const override { return "PlainSGD"; }
  NamedNumbers hyperparameters() override { return {{"lr", &lr}}; }
  void update(const UpdateCall& call) override {
    for (const UpdatedParameter& p : call.parameters) {
      double rate = lr;
      for (const auto& [known, value] : p.rule->own_hyperparams()) rate = value;
      p.array -= rate * p.grad;
    }
  }
};

/// Its hyperparameter, which `set(training, i)` sets before the i-th call.
template <class Set> Program own_algorithm(Device device, const Set& set) {
  auto training = std::make_shared<Training>(device, Optimizer(std::make_shared<PlainSGD>()));
  Program program = training_that_sets(training, [](Training&) {});
  program.before = [training, set](int i) { set(*training, i); };
  return program;
}

inline Program own_algorithms_number(Device device) {
  return own_algorithm(device, [](Training& t, int i) {
    if (i == 7) t.optimizer.attribute("lr") = 0.002;
  });
}

inline Program own_algorithms_number_each_time(Device device) {
  return own_algorithm(device, [](Training& t, int) { t.optimizer.attribute("lr") *= 0.5; });
}

inline Program own_algorithms_number_of_a_parameter(Device device) {
  return own_algorithm(device, [](Training& t, int i) {
    if (i == 6 || i == 9) t.link.w.update_rule()->set_hyperparam("lr", 0.01 / i);
  });
}

/// A hook whose number is in array expressions.
struct PlainDecay : OptimizerHook {
  double rate = 0.1;
  const char* name() const override { return "PlainDecay"; }
  void operator()(const UpdateCall& call) override {
    for (const UpdatedParameter& p : call.parameters) p.grad += rate * p.array;
  }
  void members(Visitor& v) override { v("rate", rate); }
};

inline Program own_hook_that_the_caller_sets(Device device) {
  auto training = std::make_shared<Training>(device);
  auto hook = std::make_shared<PlainDecay>();
  training->optimizer.add_hook(hook);
  Program program = training_that_sets(training, [](Training&) {});
  program.before = [hook](int i) {
    if (i == 7) hook->rate = 0.3;
  };
  return program;
}

/// A model whose output is its number times x.
struct Times : Chain<Times> {
  Parameter w{Initializer(0.5), {3}};
  double factor = 2;
  void members(Visitor& v) override { v("w", w), v("factor", factor); }
  Variable operator()(const Variable& x) { return w * x * factor; }
};

/// The step calls a model to which `give` gives another's number before the seventh call.
template <class Give> Program number_from_elsewhere(Device device, const Give& give) {
  auto link = shared(Times());
  link->to(device);
  return {[link](const Variable& x) { return (*link)(x); },
          [link, device, give](int i) {
            if (i != 7) return;
            Times other;
            other.to(device);
            other.factor = 5;
            give(other, *link);
          }};
}

inline Program number_of_a_file(Device device) {
  return number_from_elsewhere(device, [](Times& from, Times& to) {
    testing::TemporaryFolder folder;
    serializers::save_npz(folder / "a.npz", from);
    serializers::load_npz(folder / "a.npz", to);
  });
}

/// A target that is copied anew before each call, with its counts: replayed on.
inline Program counts_that_are_copied(Device device) {
  auto link = shared(Averages()), target = shared(Averages());
  link->to(device);
  target->to(device);
  return {[target](const Variable& x) { return (*target)(x); },
          [link, target, device](int) {
            (void)(*link)(constant(xp::full({3}, 0.5, float32, device)));
            if (target->mean.defined()) target->copyparams(*link);
          },
          [target] {
            std::vector<Array> seen = counted(target->calls);
            seen.push_back(target->mean);
            return seen;
          }};
}

inline Program number_that_is_copied(Device device) {
  return number_from_elsewhere(device, [](Times& from, Times& to) { to.copyparams(from); });
}

inline Program hook_that_comes_and_goes(Device device) {
  return training_that_sets(device, [](Training& t) {
    if (t.calls > 1) t.optimizer.remove_hook("WeightDecay");
    t.optimizer.add_hook(optimizer_hooks::WeightDecay(0.1 / t.calls));
  });
}

inline Program other_loss_scale(Device device) {
  return training_that_sets(device, [](Training& t) { t.optimizer.loss_scaling({.scale = 64}); });
}

inline Program other_width(Device device) {
  return training_that_sets(device,
                            [](Training& t) { t.optimizer.use_fp32_update(t.calls % 2 == 0); });
}

inline Program set_up_in_the_step(Device device) {
  auto training = std::make_shared<Training>(device, optimizers::Adam(0.01));
  return training_that_sets(training, [](Training& t) { t.optimizer.setup(t.link); });
}

inline Program epochs(Device device) {
  auto training = std::make_shared<Training>(device);
  Program program = training_that_sets(training, [](Training& t) { t.optimizer.new_epoch(); });
  program.seen = [training] { return number(static_cast<double>(training->optimizer.epoch())); };
  return program;
}

/// The caller has the parameter updated, the step does not leave it so.
inline Program update_enabled(Device device) {
  auto training = std::make_shared<Training>(device);
  return {[training](const Variable& x) {
            Variable loss = training->optimizer.update(training->link, x);
            training->link.w.set_update_enabled(false);
            return loss;
          },
          [training](int) { training->link.w.set_update_enabled(true); },
          [training] {
            std::vector<Array> seen = number(training->link.w.update_enabled() ? 1 : 0);
            seen.push_back(training->link.w.array());
            return seen;
          }};
}

/// A number of a model that is no Counter.
struct Counting : Chain<Counting> {
  Parameter w{Initializer(0.5), {3}};
  std::int64_t calls = 0;
  void members(Visitor& v) override { v("w", w), v("calls", calls); }
  Variable operator()(const Variable& x) {
    ++calls;
    return F::sum(F::square(w * x));
  }
};

inline Program number_of_a_model(Device device) {
  auto link = shared(Counting());
  link->to(device);
  auto optimizer = shared(optimizers::SGD(0.01));
  optimizer->setup(*link);
  return {[link, optimizer](const Variable& x) { return optimizer->update(*link, x); }, [](int) {},
          [link] { return number(static_cast<double>(link->calls)); }};
}

inline Program train_that_is_toggled(Device) {
  return {[](const Variable& x) {
            config().train = !config().train;
            return config().train ? x + 1 : x * 3;
          },
          [](int i) {
            if (i == 0) config().train = true;
          },
          [] {
            std::vector<Array> seen = number(config().train ? 1 : 0);
            config().train = true;
            return seen;
          }};
}

inline Program dtype_of_the_step(Device device) {
  return {[device](const Variable& x) {
            config().dtype = config().dtype == float32 ? float64 : float32;
            return x + 1;
          },
          [](int) { config().dtype = float32; },
          [] {
            std::vector<Array> seen = number(config().dtype == float32 ? 1 : 0);
            config().dtype = float32;
            return seen;
          }};
}

/// A scope of the step's own leaves nothing.
inline Program config_of_a_scope(Device) {
  return {[](const Variable& x) {
    UsingConfig<bool> evaluation(&Config::train, false);
    return F::dropout(x, 0.5) + 1;
  }};
}

inline Iterator small_iterator() {
  Dataset data(8, [](std::int64_t i) { return Columns{xp::array(static_cast<float>(i))}; });
  return iterators::SerialIterator(data, 3, {.shuffle = false});
}

inline Program batch_of_an_iterator(Device) {
  auto iterator = shared(small_iterator());
  return {[iterator](const Variable& x) {
            (void)iterator->next();
            return x + 1;
          },
          [](int) {}, [iterator] { return number(iterator->epoch_detail()); }};
}

inline Program iterator_that_is_reset(Device) {
  auto iterator = shared(small_iterator());
  return {[iterator](const Variable& x) {
            iterator->reset();
            return x + 1;
          },
          [iterator](int i) {
            if (i % 3 != 0) (void)iterator->next();
          },
          [iterator] { return number(iterator->epoch_detail()); }};
}

inline Program epoch_of_an_iterator(Device) {
  auto iterator = shared(small_iterator());
  return {[iterator](const Variable& x) { return x * static_cast<float>(1 + iterator->epoch()); },
          [iterator](int i) {
            if (i > 4) (void)iterator->next();
          }};
}

inline Program counter_that_is_set(Device) {
  auto n = shared(Counter());
  return {[n](const Variable& x) {
            *n = 5;
            ++*n;
            return x + 1;
          },
          [](int) {}, [n] { return counted(*n); }};
}

inline Program counter_that_is_replaced(Device) {
  auto n = shared(Counter());
  return {[n](const Variable& x) {
            *n = Counter(5);
            ++*n;
            return x + 1;
          },
          [](int) {}, [n] { return counted(*n); }};
}

/// Reports of the step go to an observation of its own.
inline Program scope_of_a_reporter(Device) {
  struct Watched {
    Reporter reporter;
    Observation inner;
  };
  auto watched = std::make_shared<Watched>();
  return {[watched](const Variable& x) {
            auto scope = watched->reporter.scope(watched->inner);
            report({{"x", x * 2}});
            return x + 1;
          },
          [watched](int) { watched->inner.clear(); },
          [watched] {
            return watched->inner.count("x") ? std::vector<Array>{watched->inner.at("x")}
                                             : std::vector<Array>();
          }};
}

}  // namespace rensa::tempting
