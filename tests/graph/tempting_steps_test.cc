// Steps that tempt a recording to freeze something: each is bit-equal to the same step run eagerly,
// replayed or with the reason why it is not.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <ostream>

#include "rensa/array/random.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/links/reporter.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<std::vector<float>>;

constexpr int kCalls = 14;

using Step = std::function<Variable(const Variable&)>;

/// A step, what its caller does before each call, and what can be seen after it.
struct Program {
  Step step;
  std::function<void(int)> before = [](int) {};
  std::function<std::vector<Array>()> seen = [] { return std::vector<Array>(); };
};

struct Row {
  const char* name;
  /// A new program; what its functions share they hold.
  std::function<Program(Device)> make;
  /// Part of stats().last_fallback; null where the step is replayed.
  const char* reason;
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

template <class T> std::shared_ptr<T> shared(T value) {
  return std::make_shared<T>(std::move(value));
}

Array zeros(Device device) { return xp::zeros({3}, float32, device); }

/// A recurrent link: h = tanh(W x + U h), c = c / 2 + h.
struct Recurrent : Chain<Recurrent> {
  L::Linear W{3, 3, {.initialW = 0.25}}, U{3, 3, {.nobias = true, .initialW = 0.5}};
  State h, c;
  void members(Visitor& v) override { v("W", W), v("U", U), v("h", h), v("c", c); }
  Variable operator()(const Variable& x) {
    Variable row = F::reshape(x, {1, 3});
    Variable y = F::tanh(h.defined() ? W(row) + U(h) : W(row));
    c = c.defined() ? c.value() * 0.5f + y : y;
    h = y;
    return F::reshape(c, {3});
  }
};

/// Moving averages as a batch normalization keeps them.
struct Averages : Chain<Averages> {
  Parameter scale{Initializer(2), {3}};
  Persistent mean, square;
  Counter calls;
  void members(Visitor& v) override {
    v("scale", scale), v("mean", mean), v("square", square), v("calls", calls);
  }
  Variable operator()(const Variable& x) {
    if (!mean.defined()) {
      mean = xp::zeros_like(x.array());
      square = xp::ones_like(x.array());
    }
    mean = mean * 0.9f + x.array() * 0.1f;
    square *= 0.9f;
    square += xp::square(x.array()) * 0.1f;
    ++calls;
    return (x - constant(mean)) * scale;
  }
};

std::vector<Array> counted(const Counter& counter) {
  return {xp::array(static_cast<float>(counter.value()), cpu())};
}

/// A parameter of one's own with a loss: gradients and what they leave behind.
struct Weighted : Chain<Weighted> {
  Parameter w{Initializer(0.5), {3}};
  State h;
  void members(Visitor& v) override { v("w", w), v("h", h); }
  Variable operator()(const Variable& x) { return F::sum(F::square(w * x)); }
};

// --- arrays ---

Program closure(Device device) {
  auto h = shared(zeros(device));
  return {[h](const Variable& x) {
            *h = *h * 0.5f + x.array();
            return Variable(h->sum());
          },
          [](int) {}, [h] { return std::vector<Array>{*h}; }};
}

Program closure_with_history(Device device) {
  auto history = shared(std::vector<Array>{zeros(device)});
  return {[history](const Variable& x) {
            history->push_back(history->back() * 0.5f + x.array());
            return Variable(history->back().sum());
          },
          [](int) {}, [history] { return *history; }};
}

Program buffers_that_change_places(Device device) {
  auto buffers = shared(std::vector<Array>{zeros(device), xp::ones({3}, float32, device)});
  return {[buffers](const Variable& x) {
            Array &front = (*buffers)[0], &back = (*buffers)[1];
            back.assign(front * 0.5f + x.array());
            std::swap(front, back);
            return Variable(front.sum());
          },
          [](int) {}, [buffers] { return *buffers; }};
}

Program buffer_that_is_only_written(Device device) {
  auto buffers = shared(std::vector<Array>{zeros(device), zeros(device)});
  return {[buffers](const Variable& x) {
            std::swap((*buffers)[0], (*buffers)[1]);
            (*buffers)[0].assign(x.array());
            return x + 1;
          },
          [](int) {}, [buffers] { return *buffers; }};
}

Program in_place(Device device) {
  auto h = shared(zeros(device));
  return {[h](const Variable& x) {
            *h *= 0.5f;
            *h += x.array();
            return Variable(h->sum());
          },
          [](int) {}, [h] { return std::vector<Array>{*h}; }};
}

Program replaced_by_the_caller(Device device, int every) {
  auto h = shared(zeros(device));
  return {[h](const Variable& x) { return Variable(*h + x.array()); },
          [h, every, device](int i) {
            if (i % every == 0) *h = xp::full({3}, static_cast<float>(i), float32, device);
          }};
}

Program made_late(Device device) {
  auto h = shared(Array());
  auto calls = shared(0);
  return {[h, calls, device](const Variable& x) {
    if (++*calls == 2) *h = xp::ones({3}, float32, device);
    return h->defined() ? Variable(*h + x.array()) : x + 0;
  }};
}

Program kept(Device) {
  auto y = shared(Array());
  return {[y](const Variable& x) {
            *y = x.array() * 2.f;
            return Variable(*y + 1.f);
          },
          [](int) {}, [y] { return std::vector<Array>{*y}; }};
}

Program kept_and_cleared(Device) {
  auto y = shared(Array());
  return {[y](const Variable& x) {
            *y = x.array() * 2.f;
            return Variable(*y + 1.f);
          },
          [y](int) { *y = Array(); }, [y] { return std::vector<Array>{*y}; }};
}

Program writes_its_input(Device) {
  return {[](const Variable& x) {
    x.array() *= 2.f;
    return x + 1;
  }};
}

Program values_of_the_host(Device device) {
  auto calls = shared(0);
  return {[calls, device](const Variable& x) {
    auto n = static_cast<float>(++*calls);
    return Variable(x.array() * xp::array({n, 2 * n, 3 * n}, device));
  }};
}

// --- links ---

Program recurrent(Device device, int reset_every) {
  auto link = shared(Recurrent());
  link->to(device);
  return {[link](const Variable& x) {
            no_backprop_mode off;
            return (*link)(x);
          },
          [link, reset_every](int i) {
            if (i % reset_every == reset_every - 1) link->reset_state();
          },
          [link] {
            return link->h.defined() ? std::vector<Array>{link->h.array(), link->c.array()}
                                     : std::vector<Array>();
          }};
}

Program recurrent_training(Device device) {
  auto link = shared(Recurrent());
  link->to(device);
  auto optimizer = shared(optimizers::MomentumSGD(0.1));
  optimizer->setup(*link);
  return {[link, optimizer](const Variable& x) {
            Variable loss = F::sum((*link)(x));
            for (int i = 0; i < 2; ++i) loss = loss + F::sum(F::square((*link)(x)));
            link->cleargrads();
            loss.backward();
            loss.unchain_backward();
            optimizer->update();
            return loss;
          },
          [link](int i) {
            if (i % 5 == 4) link->reset_state();
          },
          [link] {
            std::vector<Array> all;
            for (const ParameterRef& p : link->params()) {
              all.push_back(p.array());
              if (p.grad().defined()) all.push_back(p.grad());
            }
            return all;
          }};
}

Program graph_into_the_call_before(Device device) {
  auto link = shared(Weighted());
  link->to(device);
  link->h = zeros(device);
  return {[link](const Variable& x) {
            link->h = link->w * link->h.value() + x;
            Variable loss = F::sum(F::square(link->h));
            link->cleargrads();
            loss.backward();
            return loss;
          },
          [](int) {},
          [link] {
            return std::vector<Array>{link->w.grad(), link->h.array()};
          }};
}

Program states_that_change_places(Device device) {
  auto states = shared(std::pair<State, State>());
  states->first = zeros(device);
  states->second = xp::ones({3}, float32, device);
  return {[states](const Variable& x) {
            Variable a = states->first, b = states->second;
            states->first = b;
            states->second = a;
            return (a - b) * x;
          },
          [](int) {},
          [states] {
            return std::vector<Array>{states->first.array(), states->second.array()};
          }};
}

Program states_of_one_array(Device device) {
  auto states = shared(std::pair<State, State>());
  Array both = zeros(device);
  states->first = both;
  states->second = both;
  return {[states](const Variable& x) {
            states->first = states->first.value() + x;
            states->second = states->second.value() * 0.5f - x;
            return states->first.value() + states->second;
          },
          [](int) {},
          [states] {
            return std::vector<Array>{states->first.array(), states->second.array()};
          }};
}

Program states_as_they_were(Device device) {
  auto h = shared(State());
  *h = zeros(device);
  auto seen = shared(std::vector<Array>());
  return {[h](const Variable& x) {
            *h = h->value() * 0.5f + x;
            return F::sum(*h);
          },
          [h, seen](int) { seen->push_back(h->array()); }, [seen] { return *seen; }};
}

Program state_set_by_the_caller(Device device) {
  auto h = shared(State());
  return {[h](const Variable& x) {
            *h = h->value() * 0.5f + x;
            return F::sum(*h);
          },
          [h, device](int i) {
            if (i % 3 == 0) *h = xp::full({3}, static_cast<float>(i), float32, device);
          },
          [h] { return std::vector<Array>{h->array()}; }};
}

Program state_of_another_object(Device, int every) {
  auto y = shared(State());
  return {[y](const Variable& x) {
            *y = x * 2;
            return x + 1;
          },
          [y, every](int i) {
            if (i % every == 0) *y = State();
          },
          [y] { return std::vector<Array>{y->array()}; }};
}

Program state_within_the_step(Device device) {
  return {[device](const Variable& x) {
    State h;
    h = zeros(device);
    for (int i = 0; i < 3; ++i) h = h.value() * 0.5f + x;
    return h.value();
  }};
}

Program kept_result(Device device) {
  auto model = shared(L::Classifier(
      Averages(), [](const Variable& y, const Variable& t) { return F::sum(y * t); },
      [](const Variable& y, const Variable&) { return F::sum(y); }));
  model->to(device);
  return {
      [model](const Variable& x) { return (*model)(x, x); }, [](int) {},
      [model] {
        return std::vector<Array>{model->y.array(), model->loss.array(), model->accuracy.array()};
      }};
}

Program averages(Device device) {
  auto link = shared(Averages());
  link->to(device);
  return {[link](const Variable& x) { return (*link)(x); }, [](int) {},
          [link] {
            std::vector<Array> all = counted(link->calls);
            all.push_back(link->mean);
            all.push_back(link->square);
            return all;
          }};
}

Program replaced_persistent(Device device) {
  auto mean = shared(Persistent(zeros(device)));
  return {[mean](const Variable& x) {
            *mean = Persistent(*mean * 0.9f + x.array());
            return Variable(mean->sum());
          },
          [](int) {}, [mean] { return std::vector<Array>{*mean}; }};
}

Program gradients_that_add_up(Device device) {
  auto link = shared(Weighted());
  link->to(device);
  return {[link](const Variable& x) {
            Variable loss = (*link)(x);
            loss.backward();
            return loss;
          },
          [](int) {}, [link] { return std::vector<Array>{link->w.grad()}; }};
}

Program second_model(Device device, bool training) {
  auto link = shared(Weighted());
  link->to(device);
  auto optimizer = shared(optimizers::SGD(0.01));
  optimizer->setup(*link);
  return {[link, optimizer, training](const Variable& x) {
            return training ? optimizer->update(*link, x) : (*link)(x);
          },
          [link, optimizer, device](int i) {
            if (i != 6) return;
            *link = Weighted();
            link->w.array() += 1.f;
            link->to(device);
            optimizer->setup(*link);
          },
          [link] { return std::vector<Array>{link->w.array()}; }};
}

/// A target network, as reinforcement learning has it.
Program parameters_that_are_copied(Device device) {
  auto link = shared(Weighted()), target = shared(Weighted());
  link->to(device);
  target->to(device);
  auto optimizer = shared(optimizers::SGD(0.01));
  optimizer->setup(*link);
  return {[=](const Variable& x) {
            Variable loss = optimizer->update(*link, x), before = constant((*target)(x).array());
            target->copyparams(*link);
            return loss + before;
          },
          [](int) {}, [target] { return std::vector<Array>{target->w.array()}; }};
}

// --- host code ---

Program counter_that_is_read(Device) {
  auto n = shared(Counter());
  return {[n](const Variable& x) {
    ++*n;
    return x * static_cast<float>(n->value());
  }};
}

Program host_counter(Device) {
  auto n = shared(0);
  return {[n](const Variable& x) { return x * static_cast<float>(++*n); }};
}

Program hyperparameter(Device device) {
  auto link = shared(Weighted());
  link->to(device);
  auto optimizer = shared(optimizers::SGD(0.01));
  optimizer->setup(*link);
  return {[link, optimizer](const Variable& x) {
            optimizer->lr() *= 0.5;
            return optimizer->update(*link, x);
          },
          [](int) {}, [link] { return std::vector<Array>{link->w.array()}; }};
}

Program summary(Device) {
  auto sum = shared(Summary());
  return {[sum](const Variable& x) {
            Variable y = F::sum(x);
            sum->add(y.array());
            return y;
          },
          [](int) {},
          [sum] { return std::vector<Array>{xp::array(static_cast<float>(sum->mean()), cpu())}; }};
}

Program gradient_now_and_then(Device device) {
  auto link = shared(Weighted());
  link->to(device);
  auto n = shared(0);
  return {[link, n](const Variable& x) {
            if (++*n % 2 == 0) link->w.set_grad(link->w.array());
            else link->cleargrads();
            return x + 1;
          },
          [](int) {},
          [link] {
            Array g = link->w.grad();
            return g.defined() ? std::vector<Array>{g} : std::vector<Array>();
          }};
}

Program host_counter_of_a_branch(Device) {
  auto n = shared(0);
  return {[n](const Variable& x) { return ++*n % 2 == 0 ? x + 1 : x * 3; }};
}

Program list_that_grows(Device) {
  auto list = shared(std::vector<Array>());
  return {[list](const Variable& x) {
    list->push_back(x.array() * 2.f);
    Array sum = list->front();
    for (const Array& a : *list) sum = sum + a;
    return Variable(sum);
  }};
}

Program value_of_a_branch(Device) {
  return {[](const Variable& x) { return x.array()[0].item<float>() > 6 ? x + 1 : x * 3; }};
}

Program exception(Device device) {
  Program program = recurrent_training(device);
  auto call = shared(0);
  program.step = [step = program.step, call](const Variable& x) {
    Variable loss = step(x);
    int now = ++*call;
    if (now == 2 || now == 4) throw ValueError("as asked");
    return loss;
  };
  return program;
}

// --- random numbers ---

Program random_numbers(Device device) {
  xp::random::seed(5);
  auto saved = shared(xp::random::get_random_state(device));
  return {[](const Variable& x) { return F::dropout(x, 0.5) + 1; },
          [saved, device](int i) {
            if (i == 6) *saved = xp::random::get_random_state(device);
            if (i == 9) xp::random::set_random_state(*saved, device);
          },
          [device] {
            auto offset = static_cast<float>(xp::random::get_random_state(device).offset);
            return std::vector<Array>{xp::array(offset, cpu())};
          }};
}

Program random_state_in_the_step(Device device) {
  xp::random::seed(5);
  auto saved = shared(xp::random::get_random_state(device));
  return {
      [saved, device](const Variable& x) {
        *saved = xp::random::get_random_state(device);
        return F::dropout(x, 0.5) + 1;
      },
      [](int) {},
      [saved] { return std::vector<Array>{xp::array(static_cast<float>(saved->offset), cpu())}; }};
}

Program seeded_in_the_step(Device) {
  return {[](const Variable& x) {
    xp::random::seed(5);
    return F::dropout(x, 0.5) + 1;
  }};
}

Program generator_of_the_step(Device device) {
  return {[device](const Variable& x) {
    return x + constant(xp::random::default_rng(5, device).normal(0, 1, {3}, float32));
  }};
}

std::vector<Row> rows() {
  return {
      {"closure", closure, "reads another array float32 (3,)"},
      {"closure_with_history", closure_with_history, "reads another array float32 (3,)"},
      {"buffers_that_change_places", buffers_that_change_places, "another array float32 (3,)"},
      {"buffer_that_is_only_written", buffer_that_is_only_written, "writes another array"},
      {"in_place", in_place, nullptr},
      {"replaced_by_the_caller_now_and_then", [](Device d) { return replaced_by_the_caller(d, 6); },
       nullptr},
      {"replaced_by_the_caller_each_time", [](Device d) { return replaced_by_the_caller(d, 1); },
       "reads another array"},
      {"made_late", made_late, nullptr},
      {"kept", kept, nullptr},
      {"kept_and_cleared", kept_and_cleared, "replaced between its calls"},
      {"writes_its_input", writes_its_input, "writes into its inputs"},
      {"values_of_the_host", values_of_the_host, ""},
      {"recurrent", [](Device d) { return recurrent(d, kCalls); }, nullptr},
      {"recurrent_with_resets", [](Device d) { return recurrent(d, 3); }, nullptr},
      {"recurrent_training", recurrent_training, nullptr},
      {"graph_into_the_call_before", graph_into_the_call_before, "leads into the call before"},
      {"states_that_change_places", states_that_change_places, nullptr},
      {"states_of_one_array", states_of_one_array, nullptr},
      {"states_as_they_were", states_as_they_were, nullptr},
      {"state_set_by_the_caller", state_set_by_the_caller, nullptr},
      {"state_of_another_object_now_and_then",
       [](Device d) { return state_of_another_object(d, 6); }, nullptr},
      {"state_of_another_object_each_time", [](Device d) { return state_of_another_object(d, 1); },
       "replaced between its calls"},
      {"state_within_the_step", state_within_the_step, nullptr},
      {"kept_result", kept_result, nullptr},
      {"averages", averages, nullptr},
      {"replaced_persistent", replaced_persistent, "reads another array float32 (3,)"},
      {"gradients_that_add_up", gradients_that_add_up, "reads another array float32 (3,)"},
      {"second_model", [](Device d) { return second_model(d, false); }, nullptr},
      {"second_model_in_training", [](Device d) { return second_model(d, true); }, nullptr},
      {"parameters_that_are_copied", parameters_that_are_copied, nullptr},
      {"hyperparameter", hyperparameter, "asks an optimizer"},
      {"summary", summary, "adds to a Summary"},
      {"gradient_now_and_then", gradient_now_and_then, "what it does on the host"},
      {"counter_that_is_read", counter_that_is_read, "reads a Counter"},
      {"host_counter", host_counter, "has other numbers"},
      {"host_counter_of_a_branch", host_counter_of_a_branch, " was "},
      {"list_that_grows", list_that_grows, "another array"},
      {"value_of_a_branch", value_of_a_branch, "item"},
      {"exception", exception, nullptr},
      {"random_numbers", random_numbers, nullptr},
      {"random_state_in_the_step", random_state_in_the_step, "state of a generator"},
      {"seeded_in_the_step", seeded_in_the_step, nullptr},
      {"generator_of_the_step", generator_of_the_step, "makes a generator"},
  };
}

std::vector<Row> replayed_rows() {
  std::vector<Row> replayed = rows();
  std::erase_if(replayed, [](const Row& row) { return row.reason != nullptr; });
  return replayed;
}

struct Outcome {
  Values values;
  CaptureStats stats;
};

Outcome run(const Row& row, Device device, bool captured, CaptureOptions options = {}) {
  options.replay_lists = true;
  Program program = row.make(device);
  CaptureCache cache(options);
  CaptureCache::Step step = [&](const Variables& in) { return Variables{program.step(in[0])}; };
  Outcome outcome;
  auto note = [&](const Array& a) { outcome.values.push_back(a.to_vector<float>()); };
  for (int i = 0; i < kCalls; ++i) {
    program.before(i);
    Variables in{constant(xp::full({3}, static_cast<float>(i + 1), float32, device))};
    try {
      note((captured ? cache.call(step, in) : step(in))[0].array());
    } catch (const ValueError&) {
      outcome.values.push_back({-1});
    }
    note(in[0].array());
    for (const Array& a : program.seen()) note(a);
  }
  outcome.stats = cache.stats();
  return outcome;
}

class TemptingStep : public ::testing::TestWithParam<Row> {};

TEST_P(TemptingStep, IsReplayedRightOrStaysEager) {
  const Row& row = GetParam();
  for (Device device : testing::test_devices()) {
    Outcome eager = run(row, device, false), captured = run(row, device, true);
    EXPECT_EQ(eager.values, captured.values) << device.str();
    const CaptureStats& stats = captured.stats;
    if (row.reason) {
      EXPECT_THAT(stats.last_fallback, HasSubstr(row.reason)) << device.str();
      EXPECT_FALSE(stats.last_fallback.empty());
      EXPECT_GT(stats.fallbacks, 0);
    } else {
      EXPECT_EQ(stats.last_fallback, "") << device.str();
      EXPECT_GE(stats.replays, 3) << device.str();
    }
  }
}

class ReplayedStep : public TemptingStep {};

TEST_P(ReplayedStep, IsAsRightWhereItIsAudited) {
  const Row& row = GetParam();
  for (Device device : testing::test_devices()) {
    Outcome eager = run(row, device, false);
    Outcome audited = run(row, device, true, {.audit_every = 3});
    EXPECT_EQ(eager.values, audited.values) << device.str();
    EXPECT_GT(audited.stats.audits, 0) << device.str();
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, TemptingStep, ::testing::ValuesIn(rows()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(LeftBehind, ReportsThatAreKeptStayAsTheyWere) {
  for (Device device : testing::test_devices()) {
    Averages link;
    Reporter reporter;
    reporter.add_observer("main", link);
    auto step = capture(
        [&](const Variable& x) {
          report({{"twice", x * 2}}, link);
          return x + 1;
        },
        {.replay_lists = true});
    std::vector<Observation> kept(6);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      auto scope = reporter.scope(kept[i]);
      step(constant(xp::full({}, static_cast<float>(i), float32, device)));
    }
    for (std::size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(kept[i].at("main/twice").item<float>(), 2 * static_cast<float>(i)) << i;
    }
    EXPECT_EQ(step.stats().replays, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, ReplayedStep, ::testing::ValuesIn(replayed_rows()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rensa
