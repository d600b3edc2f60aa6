// First fit, operation by operation. The blocks that share a place come one after the other, and
// who comes behind the last of them comes behind all: a piece of free memory remembers that one.
// And first fit, block by block.
#include "rensa/graph/layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

namespace rensa {

namespace {

/// Neighbouring pieces, found one after the other, until there is room for `bytes`.
struct Room {
  std::int64_t bytes, begin = 0, end = 0;
  bool add(std::int64_t piece_begin, std::int64_t piece_end) {
    if (piece_begin != end) begin = piece_begin;
    end = piece_end;
    return end - begin >= bytes;
  }
};

/// The pieces that no block uses any more, each with the block that had it last. Those left by the
/// operations of one lane are kept together: where an operation does not come behind the first of
/// them, none is for it.
class FreePieces {
 public:
  explicit FreePieces(const Precedence& precedence)
      : lane_of_(precedence.lanes()), starts_(lane_of_.size()) {
    std::size_t count = lane_of_.empty() ? 0 : *std::ranges::max_element(lane_of_) + 1;
    lanes_.resize(count);
  }

  /// The bytes in use and free.
  std::int64_t size() const { return size_; }

  /// `block`, which the operations `last` used last, no longer needs [begin, end).
  void give(std::int64_t begin, std::int64_t end, std::size_t block, const std::vector<int>& last) {
    // Of several lanes the newest: the fewest operations come behind it.
    auto lane = [&](int i) { return lane_of_[static_cast<std::size_t>(i)]; };
    add(begin, {end, block, *std::ranges::max_element(last, {}, lane)});
  }

  /// Takes `bytes` at the lowest offset where all is free of blocks that `may_follow` forbids: of
  /// all whose last users are not done `before`.
  template <class MayFollow>
  std::int64_t take(std::int64_t bytes, const OperationSet& before, MayFollow&& may_follow) {
    Room room{bytes};
    if (!find(room, before, may_follow) && room.end != size_) room.begin = size_;
    cut_out(room.begin, room.begin + bytes);
    size_ = std::max(size_, room.begin + bytes);
    return room.begin;
  }

 private:
  struct Piece {
    std::int64_t end;
    std::size_t block;
    int user;  // one of the block's last
  };
  using Pieces = std::map<std::int64_t, Piece>;  // by their offsets
  /// Pieces that operations left which follow one another.
  struct Lane {
    Pieces pieces;
    std::multiset<int> users;
  };

  void add(std::int64_t begin, const Piece& piece) {
    std::size_t number = lane_of_[static_cast<std::size_t>(piece.user)];
    lane_at_.emplace(begin, number);
    change(lanes_[number], [&](Lane& lane) {
      lane.pieces.emplace(begin, piece);
      lane.users.insert(piece.user);
    });
  }

  Piece remove(Lane& changed, std::int64_t begin) {
    Piece piece = changed.pieces.at(begin);
    change(changed, [&](Lane& lane) {
      lane.pieces.erase(begin);
      lane.users.erase(lane.users.find(piece.user));
    });
    return piece;
  }

  template <class F> void change(Lane& lane, F&& f) {
    if (!lane.users.empty()) starts_.remove(*lane.users.begin());
    f(lane);
    if (!lane.users.empty()) starts_.insert(*lane.users.begin());
  }

  /// Goes through the pieces of all lanes that have some for us, the lowest first.
  template <class MayFollow>
  bool find(Room& room, const OperationSet& before, MayFollow&& may_follow) const {
    using Range = std::pair<Pieces::const_iterator, Pieces::const_iterator>;
    auto later = [](const Range& a, const Range& b) { return a.first->first > b.first->first; };
    std::vector<Range> ranges;  // what is left of each
    for (int user : before.common(starts_)) {
      const Pieces& pieces = lanes_[lane_of_[static_cast<std::size_t>(user)]].pieces;
      ranges.emplace_back(pieces.begin(), pieces.end());
    }
    std::ranges::make_heap(ranges, later);
    while (!ranges.empty()) {
      std::ranges::pop_heap(ranges, later);
      auto& [next, end] = ranges.back();
      const auto& [offset, piece] = *next;
      if (may_follow(piece.block) && room.add(offset, piece.end)) return true;
      if (++next == end) ranges.pop_back();
      else std::ranges::push_heap(ranges, later);
    }
    return false;
  }

  void cut_out(std::int64_t begin, std::int64_t end) {
    auto at = lane_at_.lower_bound(begin);
    while (at != lane_at_.end() && at->first < end) {
      Piece piece = remove(lanes_[at->second], at->first);
      at = lane_at_.erase(at);
      if (piece.end > end) add(end, piece);
    }
  }

  std::map<std::int64_t, std::size_t> lane_at_;  // of each piece, by its offset
  std::vector<std::size_t> lane_of_;             // by operation
  std::vector<Lane> lanes_;
  OperationSet starts_;  // the first of each lane to have left one
  std::int64_t size_ = 0;
};

/// The uses of a block that no other one comes before, and those that none comes after.
struct Life {
  std::vector<int> first, last;
};

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::vector<Life> lives_of(const std::vector<Block>& blocks, const Precedence& precedence) {
  std::vector<std::vector<std::size_t>> used_by(precedence.direct().size());  // blocks
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (int user : blocks[b].users) used_by[index(user)].push_back(b);
  }
  std::vector<Life> lives(blocks.size());
  precedence.for_each([&](int i, const OperationSet& before) {
    auto is_before = [&](int j) { return before.contains(j); };
    for (std::size_t b : used_by[index(i)]) {
      Life& life = lives[b];
      if (std::ranges::none_of(life.first, is_before)) life.first.push_back(i);
      std::erase_if(life.last, is_before);
      life.last.push_back(i);
    }
  });
  return lives;
}

class Layout {
 public:
  Layout(std::vector<Block>& blocks, const Precedence& precedence)
      : blocks_(blocks),
        precedence_(precedence),
        lives_(lives_of(blocks, precedence)),
        free_(precedence) {
    std::size_t n = precedence.direct().size();
    begin_at_.resize(n), end_at_.resize(n);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      begin_at_[index(blocks[b].users.front())].push_back(b);
      end_at_[index(blocks[b].users.back())].push_back(b);
    }
  }

  std::int64_t run() {
    find_common();
    precedence_.for_each([&](int i, const OperationSet& before) {
      for (std::size_t b : begin_at_[index(i)]) place(b, before);
      for (std::size_t b : end_at_[index(i)]) {
        free_.give(blocks_[b].offset, blocks_[b].offset + blocks_[b].bytes, b, lives_[b].last);
      }
    });
    return free_.size();
  }

 private:
  /// Of blocks that are first used in several places (in parts, say): what is done before each.
  void find_common() {
    std::vector<std::vector<std::size_t>> firsts(begin_at_.size());
    bool any = false;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (lives_[b].first.size() == 1) continue;
      any = true;
      for (int i : lives_[b].first) firsts[index(i)].push_back(b);
    }
    if (!any) return;
    precedence_.for_each([&](int i, const OperationSet& before) {
      for (std::size_t b : firsts[index(i)]) {
        auto [common, is_new] = common_.try_emplace(b, before);
        if (!is_new) common->second.intersect(before);
      }
    });
  }

  void place(std::size_t b, const OperationSet& before_first) {
    auto common = common_.find(b);
    const OperationSet& before = common == common_.end() ? before_first : common->second;
    blocks_[b].offset = free_.take(blocks_[b].bytes, before, [&](std::size_t earlier) {
      const std::vector<int>& last = lives_[earlier].last;
      return std::ranges::all_of(last, [&](int i) { return before.contains(i); });
    });
  }

  std::vector<Block>& blocks_;
  const Precedence& precedence_;
  std::vector<Life> lives_;
  std::vector<std::vector<std::size_t>> begin_at_, end_at_;  // blocks, by operation
  std::unordered_map<std::size_t, OperationSet> common_;     // by block
  FreePieces free_;
};

}  // namespace

std::int64_t place_blocks(std::vector<Block>& blocks, const Precedence& precedence) {
  return Layout(blocks, precedence).run();
}

std::int64_t place_largest_first(std::vector<Block>& blocks, const Precedence& precedence) {
  std::vector<Life> lives = lives_of(blocks, precedence);
  std::vector<OperationSet> before_of;
  precedence.for_each([&](int, const OperationSet& before) { before_of.push_back(before); });
  auto comes_before = [&](std::size_t a, std::size_t b) {
    return std::ranges::all_of(lives[b].first, [&](int later) {
      return std::ranges::all_of(
          lives[a].last, [&](int i) { return i < later && before_of[index(later)].contains(i); });
    });
  };
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t b) { return blocks[b].bytes; });
  std::int64_t total = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (std::size_t placed = 0; placed < order.size(); ++placed) {
    Block& block = blocks[order[placed]];
    taken.clear();
    for (std::size_t k = 0; k < placed; ++k) {
      if (comes_before(order[k], order[placed]) || comes_before(order[placed], order[k])) continue;
      const Block& other = blocks[order[k]];
      taken.emplace_back(other.offset, other.offset + other.bytes);
    }
    std::ranges::sort(taken);
    block.offset = 0;
    for (auto [begin, end] : taken) {
      if (block.offset + block.bytes <= begin) break;
      block.offset = std::max(block.offset, end);
    }
    total = std::max(total, block.offset + block.bytes);
  }
  return total;
}

}  // namespace rensa
