// Hooks of functions: when they are called, and with what.
#include "rensa/autograd/function_hook.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "rensa/array/creation.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(FunctionHook, IsToldOfFunctionsBothWays) {
  struct Names final : FunctionHook {
    void forward_preprocess(const FunctionNode& f, const Variables& x) override {
      text += std::string("<") + f.name() + std::to_string(x.size());
    }
    void forward_postprocess(const FunctionNode&, const Variables&) override { text += ">"; }
    void backward_preprocess(const FunctionNode& f, const Variables& gy) override {
      text += std::string("[") + f.name() + std::to_string(gy.size());
    }
    void backward_postprocess(const FunctionNode&, const Variables&) override { text += "]"; }
    std::string text;
  } names;
  Variable x(xp::ones({2, 3})), W(xp::ones({2, 3}));
  {
    FunctionHookScope on(names);
    F::sum(F::linear(x, W)).backward();
    EXPECT_THROW((void)F::linear(x, Variable(xp::ones({2, 2}))), ShapeError);
  }
  (void)F::relu(x);
  EXPECT_TRUE(names.text.starts_with("<linear2><sum1>[sum1")) << names.text;
  EXPECT_NE(names.text.find("[linear1<matmul2><matmul2>]"), std::string::npos) << names.text;
  EXPECT_TRUE(names.text.ends_with("<linear2>")) << names.text;
}

/// Notes its scopes and results; throws where it is told to.
struct Notes final : FunctionHook {
  Notes(std::string& all, std::string letter) : text(all), name(std::move(letter)) {}
  void added() override { text += name + "+"; }
  void deleted() override { text += name + "-"; }
  void forward_preprocess(const FunctionNode&, const Variables&) override { note("<"); }
  void forward_result(const FunctionNode& f, const Variables&,
                      const std::vector<Array>& y) override {
    EXPECT_EQ(y.size(), 1u);
    note(std::string("(") + f.name() + y[0].shape().str() + ")");
  }
  void forward_postprocess(const FunctionNode&, const Variables&) override { note(">"); }
  void note(const std::string& what) {
    text += name + what;
    if (what == throws_at) throw ValueError("thrown by a hook");
  }
  std::string &text, name, throws_at;
};

TEST(FunctionHook, IsToldOfItsScopeAndOfResults) {
  std::string text;
  Notes outer(text, "a"), inner(text, "b");
  Variable x(xp::ones({2}));
  {
    FunctionHookScope first(outer);
    EXPECT_TRUE(FunctionHookScope::is_open());
    EXPECT_THROW(FunctionHookScope again(outer), ValueError);
    FunctionHookScope second(inner);
    (void)F::relu(x);
    // Hooks are the thread's.
    std::thread([&] {
      EXPECT_FALSE(FunctionHookScope::is_open());
      (void)F::relu(x);
    }).join();
  }
  EXPECT_FALSE(FunctionHookScope::is_open());
  EXPECT_EQ(text, "a+b+a<b<a(relu(2,))b(relu(2,))a>b>b-a-");
}

TEST(FunctionHook, WhatItThrowsTheCallThrowsAndOthersAreStillToldOfTheEnd) {
  std::string text;
  Notes outer(text, "a"), inner(text, "b");
  Variable x(xp::ones({2}));
  FunctionHookScope first(outer), second(inner);
  text.clear();
  inner.throws_at = "<";
  EXPECT_THROW((void)F::relu(x), ValueError);
  EXPECT_EQ(text, "a<b<a>");
  text.clear();
  inner.throws_at.clear(), outer.throws_at = ">";
  EXPECT_THROW((void)F::relu(x), ValueError);
  EXPECT_EQ(text, "a<b<a(relu(2,))b(relu(2,))a>b>");
  text.clear();
  outer.throws_at.clear();
  EXPECT_EQ(F::relu(x).array().to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(FunctionHook, RunsOnTheFunctionsDevice) {
  struct Devices final : FunctionHook {
    void forward_preprocess(const FunctionNode&, const Variables&) override { note(); }
    void backward_preprocess(const FunctionNode&, const Variables&) override { note(); }
    void note() {
      EXPECT_EQ(ThreadState::current().device, wanted);
      ++calls;
    }
    Device wanted;
    int calls = 0;
  } devices;
  for (Device device : testing::test_devices()) {
    Variable x(xp::ones({2}, float32, device));
    devices.wanted = device, devices.calls = 0;
    FunctionHookScope scope(devices);
    F::sum(F::relu(x)).backward();
    EXPECT_GE(devices.calls, 4);
  }
}

}  // namespace
}  // namespace rensa
