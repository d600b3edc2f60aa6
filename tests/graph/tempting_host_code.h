// Tempting steps: what the host computes, counts, draws and throws.
#pragma once

#include "rensa/array/random.h"
#include "rensa/core/error.h"
#include "rensa/links/reporter.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/graph/tempting_links.h"

namespace rensa::tempting {

inline Program counter_that_is_read(Device) {
  auto n = shared(Counter());
  return {[n](const Variable& x) {
    ++*n;
    return x * static_cast<float>(n->value());
  }};
}

inline Program host_counter(Device) {
  auto n = shared(0);
  return {[n](const Variable& x) { return x * static_cast<float>(++*n); }};
}

inline Program hyperparameter(Device device) {
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

inline Program summary(Device) {
  auto sum = shared(Summary());
  return {[sum](const Variable& x) {
            Variable y = F::sum(x);
            sum->add(y.array());
            return y;
          },
          [](int) {},
          [sum] { return std::vector<Array>{xp::array(static_cast<float>(sum->mean()), cpu())}; }};
}

inline Program gradient_now_and_then(Device device) {
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

inline Program host_counter_of_a_branch(Device) {
  auto n = shared(0);
  return {[n](const Variable& x) { return ++*n % 2 == 0 ? x + 1 : x * 3; }};
}

inline Program list_that_grows(Device) {
  auto list = shared(std::vector<Array>());
  return {[list](const Variable& x) {
    list->push_back(x.array() * 2.f);
    Array sum = list->front();
    for (const Array& a : *list) sum = sum + a;
    return Variable(sum);
  }};
}

inline Program value_of_a_branch(Device) {
  return {[](const Variable& x) { return x.array()[0].item<float>() > 6 ? x + 1 : x * 3; }};
}

inline Program exception(Device device) {
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

/// Reports under "n" what `report_it` does, into one observation per call.
template <class F> Program reporting(const F& report_it) {
  struct Watched {
    Reporter reporter;
    Observation now;
    std::unique_ptr<Reporter::Scope> scope;
  };
  auto watched = std::make_shared<Watched>();
  return {[report_it](const Variable& x) {
            report_it();
            return x + 1;
          },
          [watched](int) {
            watched->now.clear();
            watched->scope.reset();
            watched->scope = std::make_unique<Reporter::Scope>(watched->reporter, watched->now);
          },
          [watched] { return std::vector<Array>{watched->now.at("n")}; }};
}

inline Program reported_host_counter(Device) {
  return reporting([n = shared(0)] { report({{"n", ++*n}}); });
}

inline Program reported_constant(Device) {
  return reporting([] { report({{"n", 3}}); });
}

inline Program reported_function(Device) {
  auto optimizer = shared(optimizers::SGD(0.01));
  Program program = reporting([optimizer] {
    report({{"n", [optimizer] { return optimizer->lr(); }}});
  });
  program.before = [optimizer, open = program.before](int i) {
    optimizer->lr() *= 0.5;
    open(i);
  };
  return program;
}

inline Program counter_of_uneven_steps(Device) {
  auto calls = shared(0);
  auto n = shared(Counter());
  return {[calls, n](const Variable& x) {
            *n += ++*calls;
            return x + 1;
          },
          [](int) {}, [n] { return counted(*n); }};
}

inline Program random_numbers(Device device) {
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

inline Program random_state_in_the_step(Device device) {
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

inline Program seeded_in_the_step(Device) {
  return {[](const Variable& x) {
    xp::random::seed(5);
    return F::dropout(x, 0.5) + 1;
  }};
}

inline Program generator_of_the_step(Device device) {
  return {[device](const Variable& x) {
    return x + constant(xp::random::default_rng(5, device).normal(0, 1, {3}, float32));
  }};
}

}  // namespace rensa::tempting
