// summary(): rows, shapes, parameters and work of models.
#include "rensa/links/summary.h"

#include <gmock/gmock.h>

#include <functional>
#include <sstream>

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/links/reporter.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

const ModelSummary::Row& row(const ModelSummary& summary, const std::string& path) {
  for (const auto& row : summary.rows) {
    if (row.path == path) return row;
  }
  throw ValueError("no row " + path);
}

struct Net : Chain<Net> {
  L::Convolution2D conv{none, 8, 3};
  L::BatchNormalization bn{8};
  L::Linear fc{10}, spare{3, 3};
  void members(Visitor& v) override {
    v("conv", conv), v("bn", bn), v("fc", fc), v("spare", spare);
  }
  Variable operator()(const Variable& x) {
    Variable h = F::relu(bn(conv(x)));
    return fc(F::max_pooling_2d(h, 2));
  }
};

TEST(Summary, HasARowForEachLinkWithParameters) {
  for (Device device : testing::test_devices()) {
    Net net;
    net.to(device);
    net.bn.disable_update();
    Array before = net.bn.avg_mean.copy();
    ModelSummary made = summary(net, Shape{2, 3, 8, 8});
    ASSERT_EQ(made.rows.size(), 4u);
    EXPECT_EQ(row(made, "/conv").type, "Convolution2D");
    EXPECT_EQ(row(made, "/conv").output_shape, (Shape{2, 8, 6, 6}));
    EXPECT_EQ(row(made, "/conv").parameters, 8 * 3 * 9 + 8);
    EXPECT_EQ(row(made, "/conv").multiply_adds, 2 * 8 * 6 * 6 * 3 * 9);
    EXPECT_EQ(row(made, "/bn").parameters, 16);
    EXPECT_EQ(row(made, "/bn").multiply_adds, 0);
    EXPECT_EQ(row(made, "/fc").output_shape, (Shape{2, 10}));
    EXPECT_EQ(row(made, "/fc").multiply_adds, 2 * 72 * 10);
    EXPECT_EQ(row(made, "/spare").calls, 0);
    EXPECT_EQ(row(made, "/spare").parameters, 12);
    EXPECT_EQ(made.parameters, net.count_params());
    EXPECT_EQ(made.trained_parameters, net.count_params() - 16);
    EXPECT_EQ(made.parameter_bytes, net.count_params() * 4);
    EXPECT_EQ(made.multiply_adds, 2 * 8 * 36 * 27 + 2 * 720);
    // In test mode: no statistics have moved.
    EXPECT_TRUE(xp::array_equal(net.bn.avg_mean, before));
    EXPECT_TRUE(config().train);
  }
}

TEST(Summary, PrintsATable) {
  auto model = Sequential(L::Linear(3, 1000), F::relu, L::Linear(1000, 2));
  std::ostringstream out;
  out << summary(model, Shape{5, 3});
  std::string text = out.str();
  EXPECT_THAT(text, HasSubstr(" of (5, 3)\n"));
  EXPECT_THAT(text, HasSubstr("link   class   output shape  parameters  multiply-adds\n"
                              "/0     Linear  (5, 1000)          4,000         15,000\n"
                              "/1     Linear  (5, 2)             2,002         10,000\n"
                              "total                             6,002         25,000\n"
                              "6,002 of 6,002 parameters are trained; they take 23.45 KiB\n"));
}

TEST(Summary, ShowsFunctionsWhereAsked) {
  Net net;
  ModelSummary made = summary(net, Shape{2, 3, 8, 8}, {.functions = true});
  std::vector<std::string> types;
  for (const auto& r : made.rows) types.push_back(r.type);
  EXPECT_EQ(types, (std::vector<std::string>{"Convolution2D", "BatchNormalization", "relu",
                                             "max_pooling_2d", "Linear", "Linear"}));
  EXPECT_EQ(made.rows[3].output_shape, (Shape{2, 8, 3, 3}));
}

/// Calls a link twice, multiplies outside of links, and has a parameter of its own.
struct Odd : Chain<Odd> {
  L::Linear twice{4, 4};
  Parameter W{Initializer(1.0), Shape{4, 6}};
  void members(Visitor& v) override { v("twice", twice), v("W", W); }
  Variable operator()(const Variable& x) const {
    Variable h = twice(twice(x));
    report({{"h", F::sum(h)}}, *this);
    h = F::matmul(h, h, false, true);
    return F::matmul(F::matmul(h, x), F::cast(W, float32));
  }
};

TEST(Summary, WorkOfNoLinkIsInTheTotal) {
  Odd model;
  Reporter reporter;
  Observation observation;
  ModelSummary made;
  {
    auto scope = reporter.scope(observation);  // which does not know the model
    made = summary(model, Shape{3, 4});
  }
  EXPECT_EQ(row(made, "/twice").calls, 2);
  EXPECT_EQ(row(made, "/twice").multiply_adds, 2 * 3 * 4 * 4);
  EXPECT_EQ(row(made, "/").parameters, 24);
  EXPECT_EQ(row(made, "/").output_shape, (Shape{3, 6}));
  EXPECT_EQ(row(made, "/").multiply_adds, 3 * 6 * 4);
  EXPECT_EQ(made.multiply_adds, 96 + 72 + 3 * 3 * 4 + 3 * 4 * 3);
  EXPECT_THAT(made.str(), HasSubstr("functions without parameters"));
  EXPECT_THAT(made.str(), HasSubstr("Linear, 2 times"));
  EXPECT_TRUE(observation.empty());
  EXPECT_THROW((void)summary(model, Shape{3, 5}), ShapeError);
  (void)model(xp::ones({3, 4}));  // the hooks are gone
}

TEST(Summary, WorkOfProductsOfAllKinds) {
  auto work = [](const std::function<Variable(const Variable&)>& f, const Shape& shape) {
    Sequential model(f);
    return summary(model, shape).multiply_adds;
  };
  Variable w(xp::ones({6, 4, 3, 3}));
  EXPECT_EQ(work([&](const Variable& x) { return F::convolution_2d(x, w, {}, {.groups = 2}); },
                 {2, 8, 5, 5}),
            2 * 6 * 3 * 3 * 4 * 9);
  EXPECT_EQ(work([&](const Variable& x) { return F::deconvolution_2d(x, w); }, {2, 6, 5, 5}),
            2 * 6 * 5 * 5 * 4 * 9);
  EXPECT_EQ(work(
                [](const Variable& x) {
                  return F::einsum("bij,bkj->bik", {x, x});
                },
                {2, 3, 5}),
            2 * 3 * 3 * 5);
  EXPECT_EQ(work([](const Variable& x) { return F::matmul(x, x, true, false); }, {2, 3, 5}),
            2 * 5 * 5 * 3);
  EXPECT_EQ(work([](const Variable& x) { return F::scaled_dot_product_attention(x, x, x); },
                 {2, 4, 7, 8}),
            2 * 4 * 7 * 7 * (8 + 8));
  EXPECT_EQ(work([](const Variable& x) { return F::exp(x); }, {2}), 0);
}

TEST(Summary, OfRecurrentLayersAndOfPublishedNetworks) {
  L::LSTM lstm(5, 7);
  ModelSummary of_lstm = summary(lstm, Shape{3, 5});
  EXPECT_EQ(of_lstm.parameters, lstm.count_params());
  EXPECT_EQ(row(of_lstm, "/upward").multiply_adds, 3 * 5 * 28);
  // 1.8 G multiply-adds and 11.69 M parameters, as is said of it everywhere.
  if (testing::quick()) return;
  L::ResNet18Layers resnet(L::ResNetOptions::torchvision());
  ModelSummary of_resnet = summary(resnet, Shape{1, 3, 224, 224});
  EXPECT_EQ(of_resnet.parameters, 11689512);
  EXPECT_EQ(of_resnet.multiply_adds, 1814073344);
}

}  // namespace
}  // namespace rensa
