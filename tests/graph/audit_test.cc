// Audits: host code that begins to decide otherwise after a step was recorded is reported.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <ostream>
#include <utility>

#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;
using Step = std::function<Variable(const Variable&)>;

constexpr int kCalls = 14;

template <class T> std::shared_ptr<T> shared(T value) {
  return std::make_shared<T>(std::move(value));
}

struct Weighted : Chain<Weighted> {
  Parameter w{Initializer(0.5), {3}};
  void members(Visitor& v) override { v("w", w); }
  Variable operator()(const Variable& x) { return F::sum(F::square(w * x)); }
};

/// Host code that decides otherwise from the eighth call on, which `now` counts.
struct Drifting {
  const char* name;
  std::function<Step(Device, std::shared_ptr<int> now)> make;
  const char* difference;
};
std::ostream& operator<<(std::ostream& os, const Drifting& row) { return os << row.name; }

std::vector<Drifting> drifting() {
  return {
      {"branch",
       [](Device, const std::shared_ptr<int>& now) -> Step {
         return [now](const Variable& x) { return *now < 8 ? x + 1 : x * 3; };
       },
       "operation 0 (multiply) was add before"},
      {"random_number",
       [](Device, const std::shared_ptr<int>& now) -> Step {
         return [now](const Variable& x) { return x * (*now < 8 ? 0.5f : 0.25f); };
       },
       "operation 0 (multiply) has other numbers than before"},
      {"list_that_grew",
       [](Device device, const std::shared_ptr<int>& now) -> Step {
         auto list = shared(std::vector<Array>{xp::zeros({3}, float32, device)});
         return [list, now](const Variable& x) {
           if (*now >= 8) list->push_back(list->front());
           Variable y = x;
           for (const Array& a : *list) y = y + constant(a);
           return y;
         };
       },
       "it has 2 operations, and had 1 before"},
      {"other_model",
       [](Device device, const std::shared_ptr<int>& now) -> Step {
         auto models = shared(std::pair<Weighted, Weighted>());
         models->first.to(device);
         models->second.to(device);
         return [models, now](const Variable& x) {
           return *now < 8 ? models->first(x) : models->second(x);
         };
       },
       "reads another array float32 (3,) than before"},
      {"slice",
       [](Device, const std::shared_ptr<int>& now) -> Step {
         return [now](const Variable& x) {
           std::int64_t start = *now < 8 ? 0 : 1;
           return Variable(x.array()[Slice(start, start + 2)] * 2.f);
         };
       },
       "operation 0 (multiply) reads other elements of float32 (2,) than before"},
  };
}

class DriftingStep : public ::testing::TestWithParam<Drifting> {};

TEST_P(DriftingStep, IsReportedByAnAudit) {
  for (Device device : testing::test_devices()) {
    auto now = shared(0);
    auto step = capture(GetParam().make(device, now), {.replay_lists = true, .audit_every = 4});
    int audited = 0;
    std::string text;
    for (int i = 1; i <= kCalls; ++i) {
      Variable x = constant(xp::full({3}, static_cast<float>(i), float32, device));
      *now = i;
      try {
        step(x);
      } catch (const CaptureError& error) {
        text = error.what();
        audited = i;
      }
    }
    EXPECT_GE(audited, 8);
    EXPECT_LE(audited, 8 + 3);
    EXPECT_THAT(text, HasSubstr(GetParam().difference)) << device.str();
    EXPECT_THAT(step.stats().last_fallback, HasSubstr(GetParam().difference));
    EXPECT_EQ(step.stats().fallbacks, kCalls - audited);  // eager from then on
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, DriftingStep, ::testing::ValuesIn(drifting()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Audit, IsOnInDebugMode) {
  for (bool debug : {false, true}) {
    UsingConfig<bool> mode(&Config::debug, debug);
    auto step = capture([](const Variable& x) { return Variable(x.array() + 1.f); },
                        {.replay_lists = true});
    for (int i = 0; i < 210; ++i) step(constant(xp::full({2}, static_cast<float>(i), float32)));
    EXPECT_EQ(step.stats().audits, debug ? 2 : 0);
  }
}

TEST(Audit, OfEveryCallReplaysNone) {
  auto step =
      capture([](const Variable& x) { return x + 1; }, {.replay_lists = true, .audit_every = 1});
  for (int i = 0; i < 6; ++i) {
    Variable y = step(constant(xp::full({2}, static_cast<float>(i), float32)));
    EXPECT_EQ(y.array().to_vector<float>(), std::vector<float>(2, static_cast<float>(i + 1)));
  }
  EXPECT_EQ(step.stats().replays, 0);
  EXPECT_EQ(step.stats().audits, 3);
}

}  // namespace
}  // namespace rensa
