// Functions against Chainer's answers: values, gradients and gradients of gradients, in every
// floating dtype, of contiguous and transposed inputs, eager and recorded, on every device.
#include "tests/functions/function_cases.h"
#include "tests/optional_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/gradient_check.h"
#include "rensa/functions/functions.h"
#include "rensa/functions/rnn_internal.h"
#include "rensa/functions/rnn_rows.h"
#include "rensa/graph/capture.h"
#include "tests/ranks.h"
#include "tests/recorded.h"
#include "tests/testing.h"

namespace rensa {

std::vector<testing::FunctionSubject>& testing::function_subjects() {
  static std::vector<FunctionSubject> subjects;
  return subjects;
}

namespace {

using testing::FunctionRow;

/// Arrays by their keys x0, y0, gy0, ... (tests/answers/make_function_cases.py says what they are).
struct RecordedCase {
  std::string name;
  std::map<std::string, Array> arrays;

  bool has(const std::string& key, std::size_t k) const {
    return arrays.count(key + std::to_string(k)) != 0;
  }
  const Array& get(const std::string& key, std::size_t k) const {
    return arrays.at(key + std::to_string(k));
  }
  std::size_t count(const std::string& key) const {
    std::size_t n = 0;
    while (has(key, n)) ++n;
    return n;
  }
  /// The row's name.
  std::string function() const { return name.substr(0, name.find('|')); }
};

std::vector<RecordedCase> read_cases(const std::string& subject) {
  std::vector<RecordedCase> cases;
  for (auto& [path, array] : testing::recorded_arrays("functions/" + subject + ".npz")) {
    std::size_t slash = path.rfind('/');
    std::string name = path.substr(0, slash);
    if (cases.empty() || cases.back().name != name) cases.push_back({name, {}});
    cases.back().arrays.emplace(path.substr(slash + 1), std::move(array));
  }
  return cases;
}

/// The same values in memory of the reversed order of axes.
Array transposed(const Array& a) { return a.transpose().ascontiguous().transpose(); }

struct Setting {
  Device device;
  Dtype dtype = float32;
  bool transposed = false;

  Array operator()(const Array& a) const {
    Array moved = a.to(device);
    if (dtype_kind(a.dtype()) == 'f') moved = moved.astype(dtype, false);
    return transposed ? rensa::transposed(moved) : moved;
  }
};

/// A case's inputs: leaves where a gradient was recorded.
Variables inputs_of(const RecordedCase& c, const Setting& setting) {
  Variables x;
  for (std::size_t k = 0; k < c.count("x"); ++k) {
    x.emplace_back(setting(c.get("x", k)), c.has("g", k));
  }
  return x;
}

/// Outputs y, gradients g and, where they were recorded, gradients of gradients h of a function.
/// An input that no gradient reaches has zeros.
std::map<std::string, Array> run(const FunctionRow& row, const RecordedCase& c, const Variables& x,
                                 const Setting& setting) {
  std::map<std::string, Array> results;
  Variables y = row.f(x), outputs, weights, leaves;
  for (std::size_t k = 0; k < y.size(); ++k) {
    results["y" + std::to_string(k)] = y[k].array();
    if (!c.has("gy", k)) continue;
    outputs.push_back(y[k]);
    weights.push_back(constant(setting(c.get("gy", k))));
  }
  if (outputs.empty()) return results;
  std::vector<std::size_t> indexes;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!c.has("g", k)) continue;
    leaves.push_back(x[k]);
    indexes.push_back(k);
  }
  auto or_zeros = [&](const Variable& g, std::size_t i) {
    return g.defined() ? g.array() : xp::zeros_like(leaves[i].array());
  };
  Variables g = grad(outputs, leaves, weights), first, directions;
  for (std::size_t i = 0; i < g.size(); ++i) {
    results["g" + std::to_string(indexes[i])] = or_zeros(g[i], i);
  }
  if (std::none_of(indexes.begin(), indexes.end(), [&](auto k) { return c.has("h", k); })) {
    return results;
  }
  g = grad(outputs, leaves, weights, true);
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (!g[i].defined() || !g[i].creator() || !c.has("v", indexes[i])) continue;
    first.push_back(g[i]);
    directions.push_back(constant(setting(c.get("v", indexes[i]))));
  }
  Variables h(leaves.size());
  if (!first.empty()) h = grad(first, leaves, directions);
  for (std::size_t i = 0; i < h.size(); ++i) {
    results["h" + std::to_string(indexes[i])] = or_zeros(h[i], i);
  }
  return results;
}

/// Elements within `tolerance` of the greatest one there is, or of `scale` where that is greater.
void expect_near(const Array& got, const Array& want, double tolerance, const std::string& what,
                 double scale = 0) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  for (double value : b) {
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance * (scale + std::abs(b[i])))
        << what << " element " << i << ": " << a[i] << ", not " << b[i];
  }
}

class FunctionCases : public ::testing::TestWithParam<testing::FunctionSubject> {
 protected:
  void SetUp() override {
    xp::random::seed(13);
    for (const FunctionRow& row : GetParam().rows) {
      EXPECT_TRUE(rows_.emplace(row.name, row).second) << "two rows " << row.name;
    }
    cases_ = read_cases(GetParam().name);
  }

  /// Calls f(row, case) for each case, on each device.
  template <class F> void for_each(F&& f) {
    for (Device device : testing::test_devices()) {
      for (const RecordedCase& c : cases_) {
        auto row = rows_.find(c.function());
        if (row == rows_.end()) continue;  // the first test says so
        SCOPED_TRACE(c.name + " on " + device.str());
        try {
          f(row->second, c, device);
        } catch (const std::exception& error) {
          if (!testing::left_out(error.what())) ADD_FAILURE() << error.what();
        }
      }
    }
  }

  std::map<std::string, FunctionRow> rows_;
  std::vector<RecordedCase> cases_;
};

TEST_P(FunctionCases, AreThoseOfTheTable) {
  std::set<std::string> recorded;
  for (const RecordedCase& c : cases_) {
    recorded.insert(c.function());
    EXPECT_TRUE(rows_.count(c.function())) << c.name << " is recorded and has no row";
  }
  for (const auto& [name, row] : rows_) {
    EXPECT_TRUE(recorded.count(name)) << name << " has a row and is not recorded";
  }
}

TEST_P(FunctionCases, AreChainers) {
  for_each([](const FunctionRow& row, const RecordedCase& c, Device device) {
    for (auto [dtype, tolerance] : {std::pair{float32, 1e-5}, {float64, 2e-7}}) {
      for (bool transposed : {false, true}) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + (transposed ? ", transposed" : ""));
        Setting setting{device, dtype, transposed};
        Variables x = inputs_of(c, setting);
        for (const auto& [key, got] : run(row, c, x, setting)) {
          auto want = c.arrays.find(key);
          ASSERT_NE(want, c.arrays.end()) << key;
          bool floating = dtype_kind(want->second.dtype()) == 'f';
          EXPECT_EQ(got.dtype(), floating ? dtype : got.dtype()) << key;
          expect_near(got, want->second, tolerance, key);
        }
      }
    }
  });
}

// Against float64 of the same inputs: those that were recorded are others. Inputs and the outputs'
// gradients are around 1, and so is what they round to.
TEST_P(FunctionCases, OfHalfTypes) {
  for_each([](const FunctionRow& row, const RecordedCase& c, Device device) {
    for (auto [dtype, tolerance] : {std::pair{float16, 1e-2}, {bfloat16, 8e-2}}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)));
      Setting half{device, dtype}, exact{device, float64};
      Variables x = inputs_of(c, half), wide;
      for (const Variable& v : x) {
        bool floating = dtype_kind(v.dtype()) == 'f';
        wide.emplace_back(floating ? v.array().astype(float64) : v.array(), v.requires_grad());
      }
      auto want = run(row, c, wide, exact);
      for (const auto& [key, got] : run(row, c, x, half)) {
        bool floating = dtype_kind(want.at(key).dtype()) == 'f';
        EXPECT_EQ(got.dtype(), floating ? dtype : want.at(key).dtype()) << key;
        expect_near(got.astype(float64), want.at(key).astype(float64), tolerance, key, 1);
      }
    }
  });
}

TEST_P(FunctionCases, HaveTheDerivativesOfTheirDifferences) {
  for_each([](const FunctionRow& row, const RecordedCase& c, Device device) {
    Setting setting{device, float64};
    Variables x = inputs_of(c, setting);
    Arrays leaves, weights;
    for (const Variable& v : x) {
      if (v.size() == 0) return;
      if (v.requires_grad()) leaves.push_back(v.array());
    }
    for (std::size_t k = 0; k < c.count("y"); ++k) {
      if (c.has("gy", k)) weights.push_back(setting(c.get("gy", k)));
    }
    if (leaves.empty() || weights.empty()) return;
    auto f = [&](const Variables& v) {
      Variables all, outputs;
      std::size_t next = 0;
      for (const Variable& input : x) {
        all.push_back(input.requires_grad() ? v[next++] : input);
      }
      Variables y = row.f(all);
      for (std::size_t k = 0; k < y.size(); ++k) {
        if (c.has("gy", k)) outputs.push_back(y[k]);
      }
      return outputs;
    };
    if (row.derivatives > 0) gradient_check::check_backward(f, leaves, weights);
    if (row.derivatives > 1) gradient_check::check_double_backward(f, leaves, weights);
  });
}

TEST_P(FunctionCases, AreReplayedBitForBit) {
  for_each([](const FunctionRow& row, const RecordedCase& c, Device device) {
    bool empty = std::any_of(c.arrays.begin(), c.arrays.end(),
                             [](const auto& a) { return a.second.size() == 0; });
    if (!row.captured || empty) return;  // there is nothing to record of empty arrays
    Setting setting{device, float32};
    RecordedCase there = c;  // a step that is replayed copies nothing from the host
    for (auto& [key, array] : there.arrays) array = setting(array);
    Variables constants;
    for (const Variable& v : inputs_of(there, setting)) constants.push_back(constant(v.array()));
    auto step = [&](const Variables& in) {
      Variables x, results;
      for (std::size_t k = 0; k < in.size(); ++k) x.emplace_back(in[k].array(), c.has("g", k));
      for (auto& [key, array] : run(row, there, x, setting)) results.push_back(constant(array));
      return results;
    };
    Variables want = step(constants);
    CaptureCache cache({.replay_lists = true});
    for (int i = 0; i < 5; ++i) {
      Variables got = cache.call(step, constants);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        EXPECT_TRUE(xp::array_equal(got[k].array(), want[k].array(), true)) << "call " << i;
      }
    }
    EXPECT_GT(cache.stats().replays, 0) << cache.stats().last_fallback;
  });
}

/// Function nodes by which `outputs` were made.
std::vector<std::shared_ptr<FunctionNode>> nodes_of(const Variables& outputs) {
  std::vector<std::shared_ptr<FunctionNode>> nodes, pending;
  std::set<FunctionNode*> seen;
  auto visit = [&](const std::shared_ptr<FunctionNode>& node) {
    if (node && seen.insert(node.get()).second) pending.push_back(node);
  };
  for (const Variable& y : outputs) visit(y.creator());
  while (!pending.empty()) {
    nodes.push_back(pending.back());
    pending.pop_back();
    for (const auto& input : nodes.back()->inputs()) visit(input->creator);
  }
  return nodes;
}

std::map<std::string_view, autograd::AutocastKind> autocast_kinds() {
  std::map<std::string_view, autograd::AutocastKind> kinds;
  for (const auto& row : autograd::autocast_rows()) {
    EXPECT_TRUE(kinds.emplace(row.name, row.kind).second) << "two rows " << row.name;
  }
  return kinds;
}

/// The name of the row that a case's function has, where it has one.
std::string cast_as(const RecordedCase& c) {
  std::string name = c.function();
  name = name.substr(0, name.find(' '));
  return name == "attention" ? "scaled_dot_product_attention" : name;
}

/// What `node` took is what its row says.
void expect_kind(const FunctionNode& node, autograd::AutocastKind kind, Dtype narrow) {
  std::set<Dtype> dtypes;
  for (const auto& input : node.inputs()) {
    if (dtype_kind(input->dtype) == 'f') dtypes.insert(input->dtype);
  }
  switch (kind) {
    case autograd::AutocastKind::narrow:
      EXPECT_EQ(dtypes, std::set<Dtype>{narrow}) << node.name();
      break;
    case autograd::AutocastKind::wide:
      EXPECT_EQ(dtypes, std::set<Dtype>{float32}) << node.name();
      break;
    case autograd::AutocastKind::widest: EXPECT_EQ(dtypes.size(), 1u) << node.name(); break;
    case autograd::AutocastKind::as_given: break;
  }
}

// Of inputs that are all float32, and of those of which the first one, or all others, are of 16
// bits.
TEST_P(FunctionCases, ComputeInTheDtypesOfAutocastsTable) {
  auto kinds = autocast_kinds();
  for_each([&](const FunctionRow& row, const RecordedCase& c, Device device) {
    for (auto [narrow, tolerance] : {std::pair{float16, 1e-2}, {bfloat16, 8e-2}}) {
      for (std::size_t rest : {0u, 1u, 2u}) {
        SCOPED_TRACE(std::string(dtype_name(narrow)) + ", " + std::to_string(rest));
        Variables x, wide;
        for (const Variable& v : inputs_of(c, {device, narrow})) {
          bool floating = dtype_kind(v.dtype()) == 'f', keep = rest == (x.empty() ? 1 : 2);
          Array values = floating && !keep ? v.array().astype(float32) : v.array();
          x.emplace_back(values, v.requires_grad());
          values = floating ? values.astype(float64) : values;
          wide.emplace_back(values, v.requires_grad());
        }
        auto want = run(row, c, wide, {device, float64});
        Variables y;
        std::string function = cast_as(c);
        {
          Autocast on(narrow);
          y = row.f(x);
        }
        for (const auto& node : nodes_of(y)) {
          auto kind = kinds.find(node->name());
          ASSERT_NE(kind, kinds.end()) << "no row in autograd/autocast.def: " << node->name();
          // What a function is made of that is cast as one takes what that has.
          if (node->name() == function || !kinds.count(function)) {
            expect_kind(*node, kind->second, narrow);
          }
        }
        Variables outputs, weights, leaves;
        std::vector<std::string> names;
        for (std::size_t k = 0; k < y.size(); ++k) {
          std::string key = "y" + std::to_string(k);
          expect_near(y[k].array().astype(float64), want.at(key).astype(float64), tolerance, key,
                      1);
          if (!c.has("gy", k)) continue;
          outputs.push_back(y[k]);
          weights.push_back(constant(c.get("gy", k).astype(y[k].dtype()).to(device)));
        }
        for (std::size_t k = 0; k < x.size(); ++k) {
          if (!c.has("g", k)) continue;
          leaves.push_back(x[k]);
          names.push_back("g" + std::to_string(k));
        }
        if (outputs.empty()) continue;
        Variables g = grad(outputs, leaves, weights);
        for (std::size_t i = 0; i < g.size(); ++i) {
          if (!g[i].defined()) continue;
          EXPECT_EQ(g[i].dtype(), leaves[i].dtype()) << names[i];
          expect_near(g[i].array().astype(float64), want.at(names[i]), tolerance, names[i], 1);
        }
      }
    }
  });
}

// Each row is a node of some case, or a function that has cases.
TEST(AutocastTable, HasNoRowOfNothing) {
  if (!testing::has_lapack()) GTEST_SKIP() << "needs RENSA_BLAS";
  std::set<std::string> met;
  Variable m(xp::eye(3) * 2);
  Array order = xp::array({2, 0, 1}), back = xp::array({1, 2, 0});
  Variables without_cases{F::inv(m),
                          F::det(m),
                          F::cholesky(m),
                          F::dropout(m, 0.5),
                          F::detail::reorder(m, 0, order, back),
                          F::detail::resize_blocks({m}, {{1, 3, 4}}, xp::zeros({1}))[0],
                          F::forget([](const Variable& x) { return F::exp(x); }, m)};
  for (const auto& node : nodes_of(without_cases)) met.insert(node->name());
  std::mutex mutex;
  testing::run_ranks(2, [&](const Communicator& c) {
    Variable x(xp::ones({2}));
    Variables all = F::alltoall(c, {x, x});
    Variables ys{all[0],
                 F::allreduce(c, x),
                 F::bcast(c, x),
                 F::gather(c, x)[0],
                 F::pseudo_connect({}, x),
                 F::scatter(c, c.rank() == 0 ? all : Variables{}),
                 F::alltoallv(c, x, {1, 1}, {1, 1}),
                 F::to_parts(c, x),
                 F::sum_of_parts(c, x),
                 F::part_of(c, x, 0),
                 F::join_parts(c, x, 0)};
    ys.push_back(c.rank() == 0 ? F::send(c, x, 1) : F::recv(c, 0, x));
    std::lock_guard lock(mutex);
    for (const auto& node : nodes_of(ys)) met.insert(node->name());
  });
  for (const testing::FunctionSubject& subject : testing::function_subjects()) {
    std::map<std::string, FunctionRow> rows;
    for (const FunctionRow& row : subject.rows) rows.emplace(row.name, row);
    for (const RecordedCase& c : read_cases(subject.name)) {
      std::string name = c.function();
      met.insert(cast_as(c));
      Variables x;
      for (const Variable& v : inputs_of(c, {cpu(), float32})) {
        x.emplace_back(v.array(), dtype_kind(v.dtype()) == 'f');
      }
      for (const auto& node : nodes_of(rows.at(name).f(x))) met.insert(node->name());
    }
  }
  for (const auto& [name, kind] : autocast_kinds()) {
    EXPECT_TRUE(met.count(std::string(name))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, FunctionCases, ::testing::ValuesIn(testing::function_subjects()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rensa
