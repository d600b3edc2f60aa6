// MemoryReport: bytes by functions and links at the peak; hooks of functions.
#include "rensa/links/memory_report.h"

#include <gtest/gtest.h>

#include <sstream>

#include "rensa/array/creation.h"
#include "rensa/autograd/autocast.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Holder = MemoryReport::Holder;

struct Net : Chain<Net> {
  L::Linear l1{16, 1024}, l2{1024, 4};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2); }
  Variable operator()(const Variable& x) const { return l2(F::relu(l1(x))); }
};

/// What `function` of `link` holds; nothing where it is not among them.
Holder held_by(const MemoryReport& report, const std::string& function, const std::string& link) {
  for (const Holder& h : report.holders()) {
    if (h.function == function && h.link == link) return h;
  }
  return {};
}

constexpr std::int64_t kHidden = 64 * 1024 * 4;  // bytes of a float32 activation between the layers

TEST(MemoryReport, TellsWhoHoldsWhatAtThePeak) {
  for (Device device : testing::test_devices()) {
    Net net;
    net.to(device);
    Array x = xp::ones({64, 16}, float32, device), t = xp::zeros({64}, int32, device);
    MemoryReport report(device, net);
    Variable loss = F::softmax_cross_entropy(net(constant(x)), constant(t));
    EXPECT_EQ(held_by(report, "linear", "/l1").bytes, kHidden);
    EXPECT_EQ(held_by(report, "linear", "/l1").blocks, 1);
    EXPECT_EQ(held_by(report, "relu", "").bytes, kHidden);
    EXPECT_GE(held_by(report, "linear", "/l2").bytes, 64 * 4 * 4);
    EXPECT_EQ(held_by(report, "parameter", "/l1").bytes, (16 * 1024 + 1024) * 4);
    EXPECT_EQ(held_by(report, "linear, backward", "/l1").bytes, 0);
    net.cleargrads();
    loss.backward();
    // The gradients of l1's W and b, or of its input's, came last or not: the peak has at least the
    // gradient between the layers.
    EXPECT_GE(held_by(report, "linear, backward", "/l2").bytes, kHidden);
    std::int64_t sum = 0;
    for (const Holder& h : report.holders()) sum += h.bytes;
    EXPECT_EQ(sum, report.peak_bytes());
    std::ostringstream text;
    text << report;
    EXPECT_NE(text.str().find("linear, backward"), std::string::npos) << text.str();
    EXPECT_NE(text.str().find("at the peak"), std::string::npos) << text.str();
  }
}

TEST(MemoryReport, WhatIsGivenBackIsHeldNoLonger) {
  for (Device device : testing::test_devices()) {
    MemoryReport report(device);
    for (int i = 0; i < 5; ++i) (void)xp::ones({1024, 256}, float32, device);
    EXPECT_EQ(report.peak_bytes(), 1024 * 256 * 4);
    Array kept = xp::ones({1024, 256}, float32, device);
    Variable y = F::relu(Variable(kept));
    EXPECT_EQ(report.peak_bytes(), 2 * 1024 * 256 * 4);
    EXPECT_EQ(held_by(report, "", "").bytes, 1024 * 256 * 4);
    EXPECT_EQ(held_by(report, "relu", "").blocks, 1);
    EXPECT_NE(report.str().find("outside of functions"), std::string::npos);
  }
}

TEST(MemoryReport, CastParametersAreTheirLinks) {
  for (Device device : testing::test_devices()) {
    Net net;
    net.to(device);
    Array x = xp::ones({64, 16}, float32, device);
    MemoryReport report(device, net);
    Autocast on;
    Variable y = net(constant(x));
    EXPECT_EQ(held_by(report, "linear", "/l1").bytes, kHidden / 2);
    EXPECT_EQ(held_by(report, "relu", "").bytes, kHidden / 2);
    EXPECT_EQ(held_by(report, "cast", "/l1").bytes, (16 * 1024 + 1024) * 2);
  }
}

TEST(MemoryReport, EndsWithItsScope) {
  for (Device device : testing::test_devices()) {
    MemoryReport outer(device);
    Array first = xp::ones({1024}, float32, device);
    {
      MemoryReport inner(device);
      Array second = xp::ones({1024}, float32, device);
      EXPECT_EQ(inner.peak_bytes(), 4096);
    }
    first = {};
    Array third = xp::ones({1024}, float32, device);
    EXPECT_GE(outer.peak_bytes(), 4096);
    EXPECT_LE(outer.peak_bytes(), 8192);
  }
}

}  // namespace
}  // namespace rensa
