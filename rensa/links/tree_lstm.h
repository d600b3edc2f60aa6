// L::ChildSumTreeLSTM and L::NaryTreeLSTM: memories along the edges of trees.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "rensa/links/linear.h"

namespace rensa {
namespace links {

/// A node's new c and h of those of any number of children and its input x: W_x and W_h_aio make
/// the gates of x and of the sum of the children's h, W_h_f a forget gate for each child: Tai et
/// al., "Improved semantic representations from tree-structured long short-term memory networks".
/// Undefined variables are zeros; of an undefined x a child tells the number of rows.
class ChildSumTreeLSTM : public Chain<ChildSumTreeLSTM> {
 public:
  ChildSumTreeLSTM(std::int64_t in, std::int64_t out);
  void members(Visitor& v) override { v("W_x", W_x), v("W_h_aio", W_h_aio), v("W_h_f", W_h_f); }

  /// Throws ValueError for lists of two lengths and where all is undefined.
  std::pair<Variable, Variable> operator()(const Variables& cs, const Variables& hs,
                                           const Variable& x) const;

  Linear W_x, W_h_aio, W_h_f;

 private:
  std::int64_t in_, out_;
};

/// Of a fixed number of children, with weights W_h1, W_h2, ... of their own: the gates are W_x(x) +
/// W_h1(hs[0]) + W_h2(hs[1]) + ... Undefined variables as above.
class NaryTreeLSTM : public Chain<NaryTreeLSTM> {
 public:
  NaryTreeLSTM(std::int64_t in, std::int64_t out, int n_ary = 2);
  void members(Visitor& v) override;

  std::pair<Variable, Variable> operator()(const Variables& cs, const Variables& hs,
                                           const Variable& x) const;

  Linear W_x;
  std::vector<Linear> W_h;  // of each child

 private:
  std::int64_t in_, out_;
};

}  // namespace links

namespace L = links;

}  // namespace rensa
