// Tempting steps: states, persistents and parameters.
#pragma once

#include "rensa/core/thread_state.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/graph/tempting_steps.h"

namespace rensa::tempting {

inline Program recurrent(Device device, int reset_every) {
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

inline Program recurrent_training(Device device) {
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

inline Program graph_into_the_call_before(Device device) {
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

inline Program states_that_change_places(Device device) {
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

inline Program states_of_one_array(Device device) {
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

inline Program states_as_they_were(Device device) {
  auto h = shared(State());
  *h = zeros(device);
  auto seen = shared(std::vector<Array>());
  return {[h](const Variable& x) {
            *h = h->value() * 0.5f + x;
            return F::sum(*h);
          },
          [h, seen](int) { seen->push_back(h->array()); }, [seen] { return *seen; }};
}

inline Program state_set_by_the_caller(Device device) {
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

inline Program state_of_another_object(Device, int every) {
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

inline Program state_within_the_step(Device device) {
  return {[device](const Variable& x) {
    State h;
    h = zeros(device);
    for (int i = 0; i < 3; ++i) h = h.value() * 0.5f + x;
    return h.value();
  }};
}

inline Program kept_result(Device device) {
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

inline Program averages(Device device) {
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

inline Program replaced_persistent(Device device) {
  auto mean = shared(Persistent(zeros(device)));
  return {[mean](const Variable& x) {
            *mean = Persistent(*mean * 0.9f + x.array());
            return Variable(mean->sum());
          },
          [](int) {}, [mean] { return std::vector<Array>{*mean}; }};
}

inline Program gradients_that_add_up(Device device) {
  auto link = shared(Weighted());
  link->to(device);
  return {[link](const Variable& x) {
            Variable loss = (*link)(x);
            loss.backward();
            return loss;
          },
          [](int) {}, [link] { return std::vector<Array>{link->w.grad()}; }};
}

inline Program second_model(Device device, bool training) {
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
inline Program parameters_that_are_copied(Device device) {
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

}  // namespace rensa::tempting
