// L::NegativeSampling and L::BinaryHierarchicalSoftmax.
#include "rensa/links/sampling_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <tuple>

#include "rensa/array/creation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/sorting.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

WordTree::WordTree(WordTree left, WordTree right)
    : children_(
          std::make_shared<std::pair<WordTree, WordTree>>(std::move(left), std::move(right))) {}

WordSampler::WordSampler(const char* link, const std::vector<double>& counts, double power) {
  double sum = 0;
  for (double count : counts) {
    if (!(count >= 0)) throw ValueError(fmt::format("{}: a count of {}", link, count));
    sum += std::pow(count, power);
  }
  if (!(sum > 0)) throw ValueError(fmt::format("{}: no word has a count above 0", link));
  std::vector<double> cumulated;
  double up_to = 0;
  for (double count : counts) cumulated.push_back((up_to += std::pow(count, power)) / sum);
  cumulated_ = xp::array(cumulated, cpu());
}

Array WordSampler::draw(const Shape& shape) const {
  Array u = xp::random::uniform(0, 1, shape, float64, cumulated_.device());
  // The last word's share ends at 1, from which rounding may keep it.
  return xp::minimum(xp::searchsorted(cumulated_, u, "right"), cumulated_.size() - 1);
}

NegativeSampling::NegativeSampling(std::int64_t in, const std::vector<double>& counts,
                                   int sample_size, double power)
    : W(0, {static_cast<std::int64_t>(counts.size()), in}),
      sample_size(sample_size),
      sampler_("NegativeSampling", counts, power) {
  W.body()->name = "W";
  sampler_.to(W.device());
}

void NegativeSampling::move_to(Device device) {
  Link::move_to(device);
  sampler_.to(device);
}

Variable NegativeSampling::operator()(const Variable& x, const Variable& t,
                                      std::string_view reduce) const {
  auto draw = [&](const Shape& shape) { return sampler_.draw(shape); };
  return F::negative_sampling(x, t, W, draw, sample_size, {.reduce = std::string(reduce)});
}

BlackOut::BlackOut(std::int64_t in, const std::vector<double>& counts, int sample_size)
    : W(Initializer(initializers::LeCunNormal()), {static_cast<std::int64_t>(counts.size()), in}),
      sample_size(sample_size),
      sampler_("BlackOut", counts, 1) {
  if (sample_size < 0) throw ValueError(fmt::format("BlackOut: a sample_size of {}", sample_size));
  W.body()->name = "W";
  sampler_.to(W.device());
}

void BlackOut::move_to(Device device) {
  Link::move_to(device);
  sampler_.to(device);
}

Variable BlackOut::operator()(const Variable& x, const Variable& t) const {
  return F::black_out(x, t, W, constant(sampler_.draw({x.shape(0), sample_size})));
}

namespace {

/// The ways from the root to the words.
struct Paths {
  struct Step {
    std::int64_t node;
    double code;
  };
  std::vector<std::vector<Step>> of_words;
  std::int64_t nodes = 0;

  /// Without recursion: a tree of many words may be a list.
  explicit Paths(const WordTree& root) {
    struct Pending {
      const WordTree* tree;
      std::vector<Step> path;
    };
    std::vector<Pending> pending{{&root, {}}};
    while (!pending.empty()) {
      auto [tree, path] = std::move(pending.back());
      pending.pop_back();
      if (tree->is_word()) {
        add(tree->word(), std::move(path));
        continue;
      }
      std::vector<Step> right = path;
      path.push_back({nodes, 1}), right.push_back({nodes, -1});
      ++nodes;
      pending.push_back({&tree->right(), std::move(right)});
      pending.push_back({&tree->left(), std::move(path)});
    }
  }

 private:
  void add(std::int64_t word, std::vector<Step> path) {
    if (word < 0) {
      throw ValueError(fmt::format("BinaryHierarchicalSoftmax: a word {} in the tree", word));
    }
    auto at = static_cast<std::size_t>(word);
    if (of_words.size() <= at) of_words.resize(at + 1);
    if (!of_words[at].empty()) {
      throw ValueError(
          fmt::format("BinaryHierarchicalSoftmax: the word {} twice in the tree", word));
    }
    of_words[at] = std::move(path);
  }
};

}  // namespace

BinaryHierarchicalSoftmax::BinaryHierarchicalSoftmax(std::int64_t in, const WordTree& tree)
    : W(Initializer(initializers::Uniform{1})) {
  Paths paths(tree);
  if (paths.nodes == 0) throw ValueError("BinaryHierarchicalSoftmax: a tree of a single word");
  W.body()->name = "W";
  W.initialize({paths.nodes, in});
  std::size_t words = paths.of_words.size(), depth = 1;
  for (const auto& path : paths.of_words) depth = std::max(depth, path.size());
  std::vector<std::int64_t> nodes(words * depth);
  std::vector<float> codes(words * depth);
  for (std::size_t word = 0; word < words; ++word) {
    for (std::size_t k = 0; k < paths.of_words[word].size(); ++k) {
      nodes[word * depth + k] = paths.of_words[word][k].node;
      codes[word * depth + k] = static_cast<float>(paths.of_words[word][k].code);
    }
  }
  Shape shape{static_cast<std::int64_t>(words), static_cast<std::int64_t>(depth)};
  paths_ = xp::array(nodes, cpu()).reshape(shape).to(W.device());
  codes_ = xp::array(codes, cpu()).reshape(shape).to(W.device());
}

void BinaryHierarchicalSoftmax::move_to(Device device) {
  Link::move_to(device);
  paths_ = paths_.to(device);
  codes_ = codes_.to(device);
}

WordTree BinaryHierarchicalSoftmax::create_huffman_tree(
    const std::vector<std::pair<std::int64_t, std::int64_t>>& word_counts) {
  if (word_counts.empty()) throw ValueError("create_huffman_tree: no words");
  using Entry = std::tuple<std::int64_t, std::size_t, WordTree>;  // of equal counts the first one
  auto later = [](const Entry& a, const Entry& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) > std::tie(std::get<0>(b), std::get<1>(b));
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> rarest(later);
  for (std::size_t i = 0; i < word_counts.size(); ++i) {
    rarest.emplace(word_counts[i].second, i, WordTree(word_counts[i].first));
  }
  while (rarest.size() > 1) {
    Entry a = rarest.top();
    rarest.pop();
    Entry b = rarest.top();
    rarest.pop();
    rarest.emplace(std::get<0>(a) + std::get<0>(b), std::min(std::get<1>(a), std::get<1>(b)),
                   WordTree(std::get<2>(a), std::get<2>(b)));
  }
  return std::get<2>(rarest.top());
}

Variable BinaryHierarchicalSoftmax::operator()(const Variable& x, const Variable& t) const {
  if (x.ndim() != 2 || t.ndim() != 1 || t.shape(0) != x.shape(0) || x.shape(1) != W.shape(1)) {
    throw ShapeError(
        fmt::format("BinaryHierarchicalSoftmax: x {} and t {}; x must be (n, {}) and t (n,)",
                    x.array().view().describe(), t.array().view().describe(), W.shape(1)));
  }
  xp::TakeOptions words{.axis = 0, .mode = IndexMode::strict};
  Variable nodes = constant(xp::take(paths_, t.array(), words));
  Array codes = xp::take(codes_, t.array(), words).astype(x.dtype());
  Variable rows = F::embed_id(nodes, W);
  Variable scores = F::sum(rows * F::reshape(x, {x.shape(0), 1, x.shape(1)}), 2);
  Array zero = xp::zeros({}, x.dtype(), x.device());
  return F::sum(F::where(codes != zero, F::softplus(-(scores * constant(codes))), constant(zero)));
}

}  // namespace rensa::links
