// Graphs in Graphviz's language.
#include "rensa/autograd/computational_graph.h"

#include <gtest/gtest.h>

#include <memory>

#include "rensa/array/creation.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using computational_graph::build_computational_graph;

TEST(ComputationalGraph, DumpsWhatLedToAVariable) {
  for (Device device : testing::test_devices()) {
    std::string on = ", float32, " + device.str();
    Variable x(xp::ones({2, 3}, float32, device)), W(xp::ones({4, 3}, float32, device));
    W.body()->name = "W";
    Variable y = F::sum(F::relu(F::linear(x, W)));
    std::string dot = build_computational_graph({y}).dump();
    std::string variable = ", shape=\"octagon\", fillcolor=\"#E0E0E0\", style=\"filled\"];\n",
                function = ", shape=\"record\", fillcolor=\"#6495ED\", style=\"filled\"];\n";
    EXPECT_EQ(
        dot,
        "digraph graphname {\nrankdir=TB;\n"
        "v0 [label=\"float32, " +
            device.str() + "\"" + variable + "f1 [label=\"sum\"" + function + "v2 [label=\"(2, 4)" +
            on + "\"" + variable + "f3 [label=\"relu\"" + function + "v4 [label=\"(2, 4)" + on +
            "\"" + variable + "f5 [label=\"linear\"" + function + "v6 [label=\"(2, 3)" + on + "\"" +
            variable + "v7 [label=\"W: (4, 3)" + on + "\"" + variable +
            "f1 -> v0;\nf3 -> v2;\nv2 -> f1;\nf5 -> v4;\nv4 -> f3;\nv6 -> f5;\nv7 -> f5;\n}\n");
    EXPECT_EQ(build_computational_graph({y}, {.variable_style = {},
                                              .function_style = {{"shape", "box"}},
                                              .rankdir = "LR",
                                              .remove_variable = true})
                  .dump(),
              "digraph graphname {\nrankdir=LR;\nf1 [label=\"sum\", shape=\"box\"];\n"
              "f3 [label=\"relu\", shape=\"box\"];\nf5 [label=\"linear\", shape=\"box\"];\n"
              "f3 -> f1;\nf5 -> f3;\n}\n");
  }
}

TEST(ComputationalGraph, NamesMayBeGivenOrLeftOut) {
  Variable x(xp::ones({2})), w(xp::ones({2}));
  w.body()->name = "w";
  Variable y = x * w;
  auto labels = [&](computational_graph::GraphOptions options) {
    std::string text;
    for (const auto& node : build_computational_graph({y}, options).nodes) {
      text += node.label(options.show_name) + "; ";
    }
    return text;
  };
  std::string product = y.creator()->name();
  EXPECT_EQ(labels({}),
            "(2,), float32, cpu; " + product + "; (2,), float32, cpu; w: (2,), float32, cpu; ");
  EXPECT_EQ(labels({.show_name = false}),
            "(2,), float32, cpu; " + product + "; (2,), float32, cpu; (2,), float32, cpu; ");
  EXPECT_EQ(
      labels({.names = {{"/l1/w", w}, {"y", y}}}),
      "y: (2,), float32, cpu; " + product + "; (2,), float32, cpu; /l1/w: (2,), float32, cpu; ");
}

TEST(ComputationalGraph, ADiamondAndSeveralOutputsAreDrawnOnce) {
  Variable x(xp::ones({2}));
  Variable h = F::exp(x), a = F::sin(h), b = F::cos(h), twice = h + h;
  auto graph = build_computational_graph({a, b, twice, a});
  EXPECT_EQ(graph.nodes.size(), 9u);  // x, h, a, b, twice and what made them
  std::string text = graph.dump();
  auto count = [&](const std::string& part) {
    int n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++n;
    }
    return n;
  };
  EXPECT_EQ(count("label=\"exp\""), 1);
  EXPECT_EQ(count(" -> "), 8);  // h + h takes h twice, by one arrow
}

TEST(ComputationalGraph, KeepsNothingAliveAndIsNotDeep) {
  std::weak_ptr<FunctionNode> made;
  computational_graph::ComputationalGraph graph;
  {
    Variable y(xp::ones({1}));
    for (int i = 0; i < 20000; ++i) y = F::identity(y) + 1;
    made = y.creator();
    graph = build_computational_graph({y}, {.names = {{"y", y}}});
  }
  EXPECT_TRUE(made.expired());
  EXPECT_GT(graph.nodes.size(), 40000u);
  EXPECT_TRUE(graph.dump().ends_with("}\n"));
}

TEST(ComputationalGraph, LabelsAreQuoted) {
  struct Odd final : FunctionNode {
    Odd() : FunctionNode("a|b \"c\" {x} <y> \\") {}
    Arrays forward(const Arrays& x) override { return {x[0].copy()}; }
    Variables backward(const Indexes&, const Variables& gy) override { return gy; }
  };
  std::string text = build_computational_graph({apply<Odd>({Variable(xp::ones({1}))})[0]}).dump();
  EXPECT_NE(text.find("label=\"a\\|b \\\"c\\\" \\{x\\} \\<y\\> \\\\\""), std::string::npos) << text;
}

TEST(ComputationalGraph, WhatHasNoGraphIsANodeAlone) {
  no_backprop_mode off;
  Variable y = F::exp(Variable(xp::ones({2})));
  auto graph = build_computational_graph({y});
  EXPECT_EQ(graph.nodes.size(), 1u);
  EXPECT_TRUE(graph.edges.empty());
  EXPECT_THROW(build_computational_graph({Variable()}), ValueError);
  EXPECT_THROW(build_computational_graph({y}, {.rankdir = "up"}), ValueError);
}

}  // namespace
}  // namespace rensa
