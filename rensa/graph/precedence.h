// What has to run after what in a recorded list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "rensa/graph/recording.h"

namespace rensa {

/// A set of operations, by their places in the list.
class OperationSet {
 public:
  /// An empty set that takes the operations before the `end`-th.
  explicit OperationSet(std::size_t end = 0) { clear(end); }
  /// Empties it; it takes the operations before the `end`-th now.
  void clear(std::size_t end) { words_.assign((end + 63) / 64, 0); }
  bool contains(int i) const {
    return (words_[word(i)] >> (static_cast<unsigned>(i) % 64) & 1) != 0;
  }
  void insert(int i) { words_[word(i)] |= std::uint64_t{1} << (static_cast<unsigned>(i) % 64); }
  void remove(int i) { words_[word(i)] &= ~(std::uint64_t{1} << (static_cast<unsigned>(i) % 64)); }
  /// Adds `other`, which takes no operations that this one does not.
  void merge(const OperationSet& other);
  /// Leaves what `other` has too, which takes at least the operations that this one does.
  void intersect(const OperationSet& other);
  /// The operations that `other` has too, in order.
  std::vector<int> common(const OperationSet& other) const;

 private:
  static std::size_t word(int i) { return static_cast<unsigned>(i) / 64; }
  std::vector<std::uint64_t> words_;
};

/// The order that a list's operations need: one that writes bytes comes after all before it that
/// read or write them, one that reads bytes after those that write them.
class Precedence {
 public:
  /// `uses` are the accesses of each operation. With `branches` off every operation follows the one
  /// before it.
  Precedence(const std::vector<std::vector<Access>>& uses, bool branches);

  /// For each operation, the earlier ones it must follow directly, the latest first; those behind
  /// them are implied and left out.
  const std::vector<std::vector<int>>& direct() const { return direct_; }
  /// Calls `visit(i, before)` for each operation in order, with all that are done before it starts.
  void for_each(const std::function<void(int i, const OperationSet& before)>& visit) const;
  /// For each operation the number of its lane, from 0. The operations of a lane follow one
  /// another; where several follow one, the lane goes on with that which has the longest way to go.
  std::vector<std::size_t> lanes() const;
  /// The same with at most `width` operations side by side on each device: the others wait for some
  /// that stand before them in the list. `devices` has a number for the device of each operation,
  /// -1 for one that takes no part in that: it only waits for a link. Empty: all are on one.
  Precedence narrowed(std::size_t width, const std::vector<int>& devices = {}) const;

 private:
  /// Of operations that come after `order` at least, the latest first.
  explicit Precedence(const std::vector<std::vector<int>>& order);

  std::vector<std::vector<int>> direct_;
};

}  // namespace rensa
