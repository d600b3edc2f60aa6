// Links against Chainer's: what they give and the gradients of their parameters, with parameters of
// Chainer's names (tests/answers/make_link_cases.py).
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/backward.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "tests/recorded.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// A link, and one call of it.
struct Called {
  std::shared_ptr<Link> link;
  std::function<Variables(const Variables&)> call;
};
struct LinkRow {
  const char* name;
  std::function<Called()> make;
};

template <class Make, class Call> LinkRow row(const char* name, Make make, Call call) {
  return {name, [=]() -> Called {
            auto link = std::make_shared<decltype(make())>(make());
            return {link, [link, call](const Variables& x) { return call(*link, x); }};
          }};
}

/// Of links that are called by the inputs and give one variable.
template <class Make> LinkRow row(const char* name, Make make) {
  return row(name, make, [](Link& link, const Variables& x) { return Variables{link.invoke(x)}; });
}

Variables both(std::pair<Variable, Variable> y) { return {y.first, y.second}; }

/// Layers over sequences, with the states given first or without.
template <class L> std::vector<LinkRow> n_step(const char* name, const char* at_first) {
  auto make = [] { return L(2, 3, 2, 0.5); };
  auto call = [](L& link, const Variables& x, std::size_t states) {
    auto state = [&](std::size_t i) { return i < states ? x[i] : Variable(); };
    Variables xs(x.begin() + static_cast<std::ptrdiff_t>(states), x.end()), all;
    auto add = [&](const auto& output) {
      all.insert(all.end(), output.ys.begin(), output.ys.end());
    };
    if constexpr (requires { link(state(0), state(1), xs); }) {
      auto output = link(state(0), state(1), xs);
      all = {output.hy, output.cy};
      add(output);
    } else {
      auto output = link(state(0), xs);
      all = {output.hy};
      add(output);
    }
    return all;
  };
  constexpr bool kHasC = requires(L & link, const Variable& v, const Variables& xs) {
    link(v, v, xs);
  };
  return {
      row(name, make, [=](L& link, const Variables& x) { return call(link, x, kHasC ? 2 : 1); }),
      row(at_first, make, [=](L& link, const Variables& x) { return call(link, x, 0); })};
}

L::WordTree tree() { return {L::WordTree(0, L::WordTree(1, 4)), L::WordTree(2, 3)}; }
L::WordTree huffman() {
  return L::BinaryHierarchicalSoftmax::create_huffman_tree(
      {{0, 8}, {1, 5}, {2, 6}, {3, 3}, {4, 1}, {5, 3}});
}

std::vector<LinkRow> connection_rows() {
  return {
      row("Linear", [] { return L::Linear(3, 2); }),
      row("EmbedID", [] { return L::EmbedID(5, 3); }),
      row("EmbedID ignore_label", [] { return L::EmbedID(5, 3, {.ignore_label = 2}); }),
      row("Bilinear", [] { return L::Bilinear(3, 2, 4); }),
      row("Bilinear nobias", [] { return L::Bilinear(3, 2, 4, {.nobias = true}); }),
      row("Bias", [] { return L::Bias(1, Shape{3}); }),
      row("Scale", [] { return L::Scale({.W_shape = Shape{3}, .bias_term = true}); }),
      row("Scale of arguments",
          [] { return L::Scale({.axis = 0, .bias_term = true, .bias_shape = Shape{2}}); }),
      row("Highway", [] { return L::Highway(3); }),
      row("Maxout", [] { return L::Maxout(3, 2, 4); }),
      row("Maxout of any input", [] { return L::Maxout(none, 2, 3); }),
      row("PReLU", [] { return L::PReLU(Shape{3}); }),
      row("Swish", [] { return L::Swish(Shape{3}); }),
      row("Swish of any input", [] { return L::Swish(none); }),
      row("SimplifiedDropconnect", [] { return L::SimplifiedDropconnect(3, 2); }),
      row("BinaryHierarchicalSoftmax", [] { return L::BinaryHierarchicalSoftmax(3, tree()); }),
      row("BinaryHierarchicalSoftmax of Huffman's tree",
          [] { return L::BinaryHierarchicalSoftmax(3, huffman()); }),
  };
}

std::vector<LinkRow> rnn_rows() {
  const Variable u;
  std::vector<LinkRow> rows = {
      row("LSTM", [] { return L::LSTM(3, 2); }),
      row("LSTM of any input", [] { return L::LSTM(2); }),
      row("LSTM of sequences that end", [] { return L::LSTM(3, 2); }),
      row(
          "StatelessLSTM", [] { return L::StatelessLSTM(3, 2); },
          [](auto& link, const Variables& x) { return both(link(x[0], x[1], x[2])); }),
      row(
          "StatelessLSTM at first", [] { return L::StatelessLSTM(3, 2); },
          [=](auto& link, const Variables& x) { return both(link(u, u, x[0])); }),
      row("StatefulPeepholeLSTM", [] { return L::StatefulPeepholeLSTM(3, 2); }),
      row("StatefulZoneoutLSTM", [] { return L::StatefulZoneoutLSTM(3, 2); }),
      row("GRU", [] { return L::GRU(3, 2); }),
      row("StatelessGRU", [] { return L::StatelessGRU(3, 2); }),
      row("StatefulMGU", [] { return L::StatefulMGU(3, 2); }),
      row("StatelessMGU", [] { return L::StatelessMGU(3, 2); }),
      row(
          "ChildSumTreeLSTM", [] { return L::ChildSumTreeLSTM(3, 2); },
          [](auto& link, const Variables& x) {
            return both(link({x[0], x[1], x[2]}, {x[3], x[4], x[5]}, x[6]));
          }),
      row(
          "ChildSumTreeLSTM of a leaf", [] { return L::ChildSumTreeLSTM(3, 2); },
          [](auto& link, const Variables& x) { return both(link({}, {}, x[0])); }),
      row(
          "ChildSumTreeLSTM of undefined ones", [] { return L::ChildSumTreeLSTM(3, 2); },
          [=](auto& link, const Variables& x) {
            return both(link({x[0], u}, {u, x[1]}, u));
          }),
      row(
          "NaryTreeLSTM", [] { return L::NaryTreeLSTM(3, 2); },
          [](auto& link, const Variables& x) {
            return both(link({x[0], x[1]}, {x[2], x[3]}, x[4]));
          }),
      row(
          "NaryTreeLSTM of undefined ones", [] { return L::NaryTreeLSTM(3, 2, 3); },
          [=](auto& link, const Variables& x) {
            return both(link({u, u, u}, {u, x[0], u}, x[1]));
          }),
  };
  auto add = [&](std::vector<LinkRow> more) { rows.insert(rows.end(), more.begin(), more.end()); };
  add(n_step<L::NStepLSTM>("NStepLSTM", "NStepLSTM at first"));
  add(n_step<L::NStepBiLSTM>("NStepBiLSTM", "NStepBiLSTM at first"));
  add(n_step<L::NStepGRU>("NStepGRU", "NStepGRU at first"));
  add(n_step<L::NStepBiGRU>("NStepBiGRU", "NStepBiGRU at first"));
  add(n_step<L::NStepRNNTanh>("NStepRNNTanh", "NStepRNNTanh at first"));
  add(n_step<L::NStepBiRNNTanh>("NStepBiRNNTanh", "NStepBiRNNTanh at first"));
  add(n_step<L::NStepRNNReLU>("NStepRNNReLU", "NStepRNNReLU at first"));
  add(n_step<L::NStepBiRNNReLU>("NStepBiRNNReLU", "NStepBiRNNReLU at first"));
  return rows;
}

std::vector<LinkRow> attention_rows() {
  auto make = [] { return L::MultiHeadAttention(4, 2); };
  auto padded = [](Device device) {
    return xp::array({{true, true, false}, {true, false, false}}, device).reshape({2, 1, 1, 3});
  };
  return {
      row("MultiHeadAttention", make),
      row("MultiHeadAttention nobias",
          [] { return L::MultiHeadAttention(4, 2, {.nobias = true}); }),
      row("MultiHeadAttention causal", make,
          [](auto& link, const Variables& x) { return Variables{link(x[0], {.causal = true})}; }),
      row("MultiHeadAttention of others", make,
          [](auto& link, const Variables& x) { return Variables{link(x[0], x[1], x[2])}; }),
      row("MultiHeadAttention of padded ones", make,
          [=, mask = std::make_shared<Array>()](auto& link, const Variables& x) {
            if (!mask->defined() || mask->device() != x[0].device()) *mask = padded(x[0].device());
            return Variables{link(x[0], {.mask = *mask})};
          }),
      row("TransformerEncoderLayer",
          [] { return L::TransformerEncoderLayer(4, 2, {.feedforward = 6}); }),
      row("TransformerEncoderLayer gelu norm_first",
          [] {
            auto gelu = [](const Variable& x) { return F::gelu(x); };
            return L::TransformerEncoderLayer(
                4, 2, {.feedforward = 6, .activate = gelu, .norm_first = true});
          }),
      row("TransformerDecoderLayer",
          [] { return L::TransformerDecoderLayer(4, 2, {.feedforward = 6}); }),
      row(
          "TransformerDecoderLayer norm_first causal",
          [] { return L::TransformerDecoderLayer(4, 2, {.feedforward = 6, .norm_first = true}); },
          [](auto& link, const Variables& x) {
            return Variables{link(x[0], x[1], {.causal = true})};
          }),
  };
}

std::vector<LinkRow> vision_rows() {
  auto sequences = [](auto& link, const Variables& x, bool transpose) {
    auto half = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
    return Variables{link({x.begin(), half}, {half, x.end()}, "mean", transpose)};
  };
  return {
      row("Convolution1D", [] { return L::Convolution1D(3, 2, 3); }),
      row("Convolution2D", [] { return L::Convolution2D(3, 2, 3, {.stride = 2, .pad = 1}); }),
      row("Convolution2D of any input",
          [] {
            return L::Convolution2D(none, 2, Shape{3, 2});
          }),
      row("Convolution2D groups", [] { return L::Convolution2D(4, 6, 3, {.groups = 2}); }),
      row("Convolution3D", [] { return L::Convolution3D(2, 2, 2); }),
      row("ConvolutionND", [] { return L::ConvolutionND(2, 3, 2, 2, {.nobias = true}); }),
      row("Deconvolution1D", [] { return L::Deconvolution1D(3, 2, 3); }),
      row("Deconvolution2D", [] { return L::Deconvolution2D(3, 2, 3, {.stride = 2, .pad = 1}); }),
      row("Deconvolution3D", [] { return L::Deconvolution3D(2, 2, 2); }),
      row("DeconvolutionND", [] { return L::DeconvolutionND(2, 3, 2, 2); }),
      row("DepthwiseConvolution2D", [] { return L::DepthwiseConvolution2D(3, 2, 3); }),
      row("DilatedConvolution2D",
          [] { return L::DilatedConvolution2D(3, 2, 3, {.pad = 2, .dilate = 2}); }),
      row("MLPConvolution2D",
          [] {
            return L::MLPConvolution2D(3, {4, 3, 2}, 3, {.stride = 2, .pad = 1});
          }),
      row("MLPConvolution2D of any input tanh",
          [] {
            auto tanh = [](const Variable& x) { return F::tanh(x); };
            return L::MLPConvolution2D(none, {4, 2}, 3, {.activation = tanh});
          }),
      row("Inception", [] { return L::Inception(3, 2, 2, 3, 2, 1, 2); }),
      row("Inception of any input", [] { return L::Inception(none, 2, 2, 3, 2, 1, 2); }),
      row("InceptionBN", [] { return L::InceptionBN(3, 2, 2, 3, 2, 3, L::PoolType::avg, 2); }),
      row("InceptionBN stride=2",
          [] { return L::InceptionBN(3, 0, 2, 3, 2, 3, L::PoolType::max, {}, {.stride = 2}); }),
      row("BatchNormalization", [] { return L::BatchNormalization(3); }),
      row("LayerNormalization", [] { return L::LayerNormalization(3); }),
      row("GroupNormalization", [] { return L::GroupNormalization(2, 4); }),
      row(
          "CRF1d", [] { return L::CRF1d(3); },
          [=](auto& link, const Variables& x) { return sequences(link, x, false); }),
      row(
          "CRF1d transpose", [] { return L::CRF1d(3); },
          [=](auto& link, const Variables& x) { return sequences(link, x, true); }),
      row(
          "CRF1d argmax", [] { return L::CRF1d(3); },
          [](auto& link, const Variables& x) {
            auto [score, labels] = link.argmax(x, true);
            Variables all{score + 0 * F::sum(link.cost)};
            for (const Array& l : labels) all.push_back(constant(l.astype(float32)));
            return all;
          }),
  };
}

std::vector<LinkRow> rare_rows() {
  return {
      row("DeformableConvolution2D",
          [] { return L::DeformableConvolution2D(3, 4, 3, {.pad = 1}); }),
      row("DeformableConvolution2D of any input stride=2,1",
          [] {
            return L::DeformableConvolution2D(none, 2, {2, 3},
                                              {.stride = {2, 1}, .deform_nobias = true});
          }),
  };
}

using Recorded = std::map<std::string, Array>;

struct Subject {
  const char* name;
  std::vector<LinkRow> (*rows)();
};
void PrintTo(const Subject& subject, std::ostream* os) { *os << subject.name; }

std::string key(const char* what, std::size_t call, std::size_t i) {
  return what + std::to_string(call) + "," + std::to_string(i);
}

/// The arrays "x2,0", "x2,1", ... on a device.
Arrays listed(const Recorded& recorded, const char* what, std::size_t call, Device device,
              Dtype dtype = float32) {
  Arrays arrays;
  for (std::size_t i = 0; recorded.count(key(what, call, i)); ++i) {
    Array array = recorded.at(key(what, call, i));
    bool floating = dtype_kind(array.dtype()) == 'f';
    arrays.push_back((floating ? array.astype(dtype) : array).to(device));
  }
  return arrays;
}

Variables constants(const Arrays& arrays) {
  Variables all;
  for (const Array& array : arrays) all.push_back(constant(array));
  return all;
}

void set_parameters(const Link& link, const Recorded& recorded) {
  std::set<std::string> known, wanted;
  for (const auto& [name, array] : recorded) {
    if (name.starts_with("W/")) wanted.insert(name);
  }
  for (const NamedParameter& named : link.namedparams()) {
    known.insert("W" + named.path);
    ASSERT_TRUE(recorded.count("W" + named.path)) << named.path;
    const Array& values = recorded.at("W" + named.path);
    named.parameter.initialize(values.shape());
    ASSERT_EQ(named.parameter.shape(), values.shape()) << named.path;
    named.parameter.array().assign(values.astype(float32).to(named.parameter.device()));
  }
  EXPECT_EQ(known, wanted);
}

class RecordedLinks : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    for (auto& [name, array] :
         testing::recorded_arrays(std::string("links/") + GetParam().name + ".npz")) {
      std::size_t bar = name.find('|');
      recorded_[name.substr(0, bar)].emplace(name.substr(bar + 1), array);
    }
  }
  std::map<std::string, Recorded> recorded_;
};

void expect_near(const Array& got, const Array& want, const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  EXPECT_TRUE(xp::allclose(got.to_cpu().astype(float64), want, 1e-5, 1e-5))
      << what << ": " << got.str() << ", not " << want.str();
}

TEST_P(RecordedLinks, AreThoseOfTheTable) {
  std::set<std::string> known, recorded;
  for (const LinkRow& row : GetParam().rows()) known.insert(row.name);
  for (const auto& [name, arrays] : recorded_) recorded.insert(name);
  EXPECT_EQ(known, recorded);
}

TEST_P(RecordedLinks, GiveWhatChainersGive) {
  UsingConfig<bool> off(&Config::train, false);
  for (Device device : testing::test_devices()) {
    for (const LinkRow& row : GetParam().rows()) {
      SCOPED_TRACE(std::string(row.name) + " on " + device.str());
      const Recorded& recorded = recorded_.at(row.name);
      Called called = row.make();
      called.link->to(device);
      set_parameters(*called.link, recorded);
      Variables all;
      for (std::size_t k = 0; recorded.count(key("x", k, 0)); ++k) {
        Variables y = called.call(constants(listed(recorded, "x", k, device)));
        Arrays want = listed(recorded, "y", k, device), gy = listed(recorded, "gy", k, device);
        ASSERT_EQ(y.size(), want.size());
        for (std::size_t i = 0; i < y.size(); ++i) {
          expect_near(y[i].array(), recorded.at(key("y", k, i)), key("y", k, i));
          y[i].set_grad(gy[i]);
          all.push_back(y[i]);
        }
      }
      called.link->cleargrads();
      Variable sum;
      for (const Variable& y : all) {
        Variable part = F::sum(y * constant(y.grad()));
        sum = sum.defined() ? sum + part : part;
      }
      sum.backward();
      for (const NamedParameter& named : called.link->namedparams()) {
        Array g = named.parameter.grad();
        if (!g.defined()) g = xp::zeros_like(named.parameter.array());
        expect_near(g, recorded.at("g" + named.path), "g" + named.path);
      }
    }
  }
}

// Made where config().dtype is mixed and given values of 16 bits: normalizations keep float32.
TEST_P(RecordedLinks, OfMixedDtypes) {
  UsingConfig<bool> off(&Config::train, false);
  for (Device device : testing::test_devices()) {
    for (auto [mixed, tolerance] : {std::pair{mixed16, 0.02}, {mixed_bf16, 0.12}}) {
      UsingConfig made(&Config::dtype, mixed);
      for (const LinkRow& row : GetParam().rows()) {
        SCOPED_TRACE(std::string(row.name) + " of " + std::string(dtype_name(mixed)) + " on " +
                     device.str());
        const Recorded& recorded = recorded_.at(row.name);
        Called called = row.make();
        called.link->to(device);
        set_parameters(*called.link, recorded);
        for (const NamedParameter& named : called.link->namedparams()) {
          bool precise = named.path.ends_with("gamma") || named.path.ends_with("beta");
          bool own = called.link->type_name() == "Swish";  // its beta is no normalization's
          EXPECT_EQ(named.parameter.dtype(), precise && !own ? float32 : Dtype(mixed))
              << named.path;
        }
        Variables all;
        for (std::size_t k = 0; recorded.count(key("x", k, 0)); ++k) {
          Variables y = called.call(constants(listed(recorded, "x", k, device, mixed)));
          for (std::size_t i = 0; i < y.size(); ++i) {
            Array got = y[i].array().to_cpu().astype(float64), want = recorded.at(key("y", k, i));
            ASSERT_EQ(got.shape(), want.shape());
            double scale = std::max(1.0, xp::max(xp::absolute(want)).item<double>());
            EXPECT_TRUE(xp::allclose(got, want, 0, tolerance * scale))
                << key("y", k, i) << ": " << got.str() << ", not " << want.str();
            bool labels = std::string_view(row.name) == "CRF1d argmax";  // made floating
            EXPECT_TRUE(labels || y[i].dtype() == mixed) << y[i].dtype();
            all.push_back(F::sum(F::cast(y[i], float32)));
          }
        }
        F::add(all).backward();
        for (const NamedParameter& named : called.link->namedparams()) {
          if (!named.parameter.grad().defined()) continue;
          EXPECT_EQ(named.parameter.grad().dtype(), named.parameter.dtype()) << named.path;
          EXPECT_TRUE(xp::isfinite(named.parameter.grad()).all().item<bool>()) << named.path;
        }
      }
    }
  }
}

TEST_P(RecordedLinks, AreReplayedBitForBit) {
  for (Device device : testing::test_devices()) {
    for (const LinkRow& row : GetParam().rows()) {
      SCOPED_TRACE(std::string(row.name) + " on " + device.str());
      const Recorded& recorded = recorded_.at(row.name);
      Variables x = constants(listed(recorded, "x", 0, device));
      no_backprop_mode inference;
      UsingConfig<bool> off(&Config::train, false);
      auto run = [&](bool captured) {
        Called called = row.make();
        called.link->to(device);
        set_parameters(*called.link, recorded);
        CaptureCache cache({.replay_lists = true});
        std::vector<float> all;
        for (int i = 0; i < 12; ++i) {
          if (i == 7) called.link->reset_state();
          for (const Variable& y : captured ? cache.call(called.call, x) : called.call(x)) {
            for (float value : y.array().to_vector<float>()) all.push_back(value);
          }
        }
        if (captured) {
          EXPECT_GT(cache.stats().replays, 3) << cache.stats().last_fallback;
        }
        return all;
      };
      EXPECT_EQ(run(true), run(false));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, RecordedLinks,
                         ::testing::Values(Subject{"connection", connection_rows},
                                           Subject{"rnn", rnn_rows},
                                           Subject{"attention", attention_rows},
                                           Subject{"vision", vision_rows},
                                           Subject{"rare", rare_rows}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rensa
