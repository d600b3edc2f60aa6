// L::NegativeSampling and L::BinaryHierarchicalSoftmax: losses over a few of many words.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/links/link.h"

namespace rensa {
namespace links {

/// Draws words with probabilities that go with counts[word]^power.
class WordSampler {
 public:
  /// Throws ValueError, naming `link`, for counts that are negative, or no count above 0.
  WordSampler(const char* link, const std::vector<double>& counts, double power);
  Array draw(const Shape& shape) const;  // words, each with its probability
  void to(Device device) { cumulated_ = cumulated_.to(device); }  // moves what draws there

 private:
  Array cumulated_;  // the probabilities of all words up to each
};

/// F::negative_sampling with a parameter W (words, in), 0 at first, and words drawn with
/// probabilities that go with counts[word]^power.
class NegativeSampling : public Chain<NegativeSampling> {
 public:
  /// Throws ValueError for counts that are negative, or no count above 0.
  NegativeSampling(std::int64_t in, const std::vector<double>& counts, int sample_size,
                   double power = 0.75);
  void members(Visitor& v) override { v("W", W); }
  void move_to(Device device) override;

  /// Of x (n, in) and words t (n,): the sum, or with `reduce` "no" each one's loss. Throws as
  /// F::negative_sampling.
  Variable operator()(const Variable& x, const Variable& t, std::string_view reduce = "sum") const;

  Parameter W;
  int sample_size;  // words that are drawn for each sample

 private:
  WordSampler sampler_;
};

/// F::black_out with a parameter W (words, in), LeCunNormal at first, and `sample_size` words drawn
/// with probabilities that go with their counts.
class BlackOut : public Chain<BlackOut> {
 public:
  /// Throws ValueError for counts that are negative, or no count above 0.
  BlackOut(std::int64_t in, const std::vector<double>& counts, int sample_size);
  void members(Visitor& v) override { v("W", W); }
  void move_to(Device device) override;

  /// Of x (n, in) and words t (n,): the mean. Throws as F::black_out.
  Variable operator()(const Variable& x, const Variable& t) const;

  Parameter W;
  int sample_size;

 private:
  WordSampler sampler_;
};

/// A binary tree with words as its leaves.
class WordTree {
 public:
  WordTree(std::int64_t word) : word_(word) {}
  WordTree(WordTree left, WordTree right);
  bool is_word() const { return !children_; }                  // whether it is a leaf
  std::int64_t word() const { return word_; }                  // of a leaf; -1 of others
  const WordTree& left() const { return children_->first; }    // not of a leaf
  const WordTree& right() const { return children_->second; }  // not of a leaf

 private:
  std::int64_t word_ = -1;
  std::shared_ptr<const std::pair<WordTree, WordTree>> children_;
};

/// The sum over a word's ancestors of log(1 + exp(-+x W[ancestor])), - where the word is to the
/// left of it: Morin and Bengio, "Hierarchical probabilistic neural network language model". W is
/// (inner nodes, in), U[-1, 1) at first, its rows in the order in which the tree is walked, each
/// node before its left part and that before its right one.
class BinaryHierarchicalSoftmax : public Chain<BinaryHierarchicalSoftmax> {
 public:
  /// Throws ValueError for words that are negative or stand twice.
  BinaryHierarchicalSoftmax(std::int64_t in, const WordTree& tree);
  void members(Visitor& v) override { v("W", W); }
  void move_to(Device device) override;

  /// Huffman's tree, of words with their counts: frequent ones are near the root. Throws ValueError
  /// for no words.
  static WordTree create_huffman_tree(
      const std::vector<std::pair<std::int64_t, std::int64_t>>& word_counts);

  /// The sum of the losses of x (n, in) and words t (n,). A word that is not in the tree counts for
  /// nothing, one beyond the greatest throws IndexError, on a GPU at the next wait. Throws
  /// ShapeError, DtypeError.
  Variable operator()(const Variable& x, const Variable& t) const;

  Parameter W;

 private:
  Array paths_;  // int64 (words, depth): the ancestors of each word, then zeros
  Array codes_;  // (words, depth): 1 to the left, -1 to the right, then zeros
};

}  // namespace links

namespace L = links;

}  // namespace rensa
