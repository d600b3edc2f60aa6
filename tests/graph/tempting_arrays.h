// Tempting steps: arrays of the host program.
#pragma once

#include "tests/graph/tempting_steps.h"

namespace rensa::tempting {

inline Program closure(Device device) {
  auto h = shared(zeros(device));
  return {[h](const Variable& x) {
            *h = *h * 0.5f + x.array();
            return Variable(h->sum());
          },
          [](int) {}, [h] { return std::vector<Array>{*h}; }};
}

inline Program closure_with_history(Device device) {
  auto history = shared(std::vector<Array>{zeros(device)});
  return {[history](const Variable& x) {
            history->push_back(history->back() * 0.5f + x.array());
            return Variable(history->back().sum());
          },
          [](int) {}, [history] { return *history; }};
}

inline Program buffers_that_change_places(Device device) {
  auto buffers = shared(std::vector<Array>{zeros(device), xp::ones({3}, float32, device)});
  return {[buffers](const Variable& x) {
            Array &front = (*buffers)[0], &back = (*buffers)[1];
            back.assign(front * 0.5f + x.array());
            std::swap(front, back);
            return Variable(front.sum());
          },
          [](int) {}, [buffers] { return *buffers; }};
}

inline Program buffer_that_is_only_written(Device device) {
  auto buffers = shared(std::vector<Array>{zeros(device), zeros(device)});
  return {[buffers](const Variable& x) {
            std::swap((*buffers)[0], (*buffers)[1]);
            (*buffers)[0].assign(x.array());
            return x + 1;
          },
          [](int) {}, [buffers] { return *buffers; }};
}

inline Program in_place(Device device) {
  auto h = shared(zeros(device));
  return {[h](const Variable& x) {
            *h *= 0.5f;
            *h += x.array();
            return Variable(h->sum());
          },
          [](int) {}, [h] { return std::vector<Array>{*h}; }};
}

inline Program replaced_by_the_caller(Device device, int every) {
  auto h = shared(zeros(device));
  return {[h](const Variable& x) { return Variable(*h + x.array()); },
          [h, every, device](int i) {
            if (i % every == 0) *h = xp::full({3}, static_cast<float>(i), float32, device);
          }};
}

inline Program made_late(Device device) {
  auto h = shared(Array());
  auto calls = shared(0);
  return {[h, calls, device](const Variable& x) {
    if (++*calls == 2) *h = xp::ones({3}, float32, device);
    return h->defined() ? Variable(*h + x.array()) : x + 0;
  }};
}

inline Program kept(Device) {
  auto y = shared(Array());
  return {[y](const Variable& x) {
            *y = x.array() * 2.f;
            return Variable(*y + 1.f);
          },
          [](int) {}, [y] { return std::vector<Array>{*y}; }};
}

inline Program kept_and_cleared(Device) {
  auto y = shared(Array());
  return {[y](const Variable& x) {
            *y = x.array() * 2.f;
            return Variable(*y + 1.f);
          },
          [y](int) { *y = Array(); }, [y] { return std::vector<Array>{*y}; }};
}

inline Program writes_its_input(Device) {
  return {[](const Variable& x) {
    x.array() *= 2.f;
    return x + 1;
  }};
}

inline Program values_of_the_host(Device device) {
  auto calls = shared(0);
  return {[calls, device](const Variable& x) {
    auto n = static_cast<float>(++*calls);
    return Variable(x.array() * xp::array({n, 2 * n, 3 * n}, device));
  }};
}

}  // namespace rensa::tempting
