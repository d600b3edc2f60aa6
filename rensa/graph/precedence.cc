// Dependencies from byte ranges. For every byte only the last writer and the readers since then are
// looked at: everybody before them is implied.
#include "rensa/graph/precedence.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <utility>

namespace rensa {

namespace {

/// Who wrote each byte last, and who has read it since.
class ByteHistory {
 public:
  /// Notes that operation `i` reads; adds the operations that it has to follow to `before`.
  void read(int i, const Access& access, std::vector<int>& before) {
    auto [first, last] = spans_of(access);
    for (auto span = first; span != last; ++span) {
      Span& s = span->second;
      if (s.writer >= 0) before.push_back(s.writer);
      if (s.readers.empty() || s.readers.back() != i) s.readers.push_back(i);
    }
  }
  void write(int i, const Access& access, std::vector<int>& before) {
    auto [first, last] = spans_of(access);
    if (first == last) return;
    for (auto span = first; span != last; ++span) {
      const Span& s = span->second;
      if (s.writer >= 0) before.push_back(s.writer);
      before.insert(before.end(), s.readers.begin(), s.readers.end());
    }
    first->second = {access.end, i, {}};
    spans_.erase(std::next(first), last);
  }

 private:
  struct Span {
    const char* end;
    int writer = -1;  // none
    std::vector<int> readers;
  };
  using Spans = std::map<const char*, Span>;  // by their first bytes

  /// The first span at or behind `byte`, after one that it lies in has been cut there.
  Spans::iterator cut(const char* byte) {
    auto next = spans_.lower_bound(byte);
    if (next == spans_.begin()) return next;
    auto before = std::prev(next);
    if (before->second.end <= byte) return next;
    auto behind = spans_.emplace_hint(next, byte, before->second);
    before->second.end = byte;
    return behind;
  }

  /// The spans that the access consists of, new ones among them where nobody has been yet.
  std::pair<Spans::iterator, Spans::iterator> spans_of(const Access& access) {
    auto last = cut(access.end), first = cut(access.begin);
    const char* reached = access.begin;
    for (auto span = first; reached < access.end; ++span) {
      const char* next = span == last ? access.end : span->first;
      if (reached < next) {
        span = spans_.emplace_hint(span, reached, Span{next, -1, {}});
        if (reached == access.begin) first = span;
      }
      reached = span->second.end;
    }
    return {first, last};
  }

  Spans spans_;
};

/// For each operation what it has to follow for what it reads and writes, the latest first.
std::vector<std::vector<int>> find_order(const std::vector<std::vector<Access>>& uses) {
  std::vector<std::vector<int>> order(uses.size());
  ByteHistory history;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    auto operation = static_cast<int>(i);
    for (const Access& use : uses[i]) {
      if (!use.write) history.read(operation, use, order[i]);
    }
    for (const Access& use : uses[i]) {
      if (use.write) history.write(operation, use, order[i]);
    }
    std::ranges::sort(order[i], std::greater<>());
    order[i].erase(std::unique(order[i].begin(), order[i].end()), order[i].end());
    std::erase(order[i], operation);  // that changes bytes in place
  }
  return order;
}

/// Each after the one before it.
std::vector<std::vector<int>> list_order(std::size_t length) {
  std::vector<std::vector<int>> order(length);
  for (std::size_t i = 1; i < length; ++i) order[i] = {static_cast<int>(i) - 1};
  return order;
}

/// Calls `visit(i, before, needed)` for each operation: with all that are done before it, and those
/// of order[i] that the others do not imply. A set is kept until its last follower has been.
template <class Visit> void walk(const std::vector<std::vector<int>>& order, Visit&& visit) {
  std::vector<std::size_t> last_follower(order.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (int j : order[i]) last_follower[static_cast<std::size_t>(j)] = i;
  }
  std::vector<OperationSet> sets(order.size()), spare;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (spare.empty()) spare.emplace_back();
    OperationSet before = std::move(spare.back());
    spare.pop_back();
    before.clear(i);
    std::vector<int> needed;
    for (int j : order[i]) {
      if (before.contains(j)) continue;
      before.merge(sets[static_cast<std::size_t>(j)]);
      before.insert(j);
      needed.push_back(j);
    }
    for (int j : order[i]) {
      auto earlier = static_cast<std::size_t>(j);
      if (last_follower[earlier] == i) spare.push_back(std::move(sets[earlier]));
    }
    visit(static_cast<int>(i), before, needed);
    (last_follower[i] > i ? sets[i] : spare.emplace_back()) = std::move(before);
  }
}

}  // namespace

void OperationSet::merge(const OperationSet& other) {
  for (std::size_t w = 0; w < other.words_.size(); ++w) words_[w] |= other.words_[w];
}

void OperationSet::intersect(const OperationSet& other) {
  for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
}

std::vector<int> OperationSet::common(const OperationSet& other) const {
  std::vector<int> result;
  for (std::size_t w = 0; w < std::min(words_.size(), other.words_.size()); ++w) {
    for (std::uint64_t left = words_[w] & other.words_[w]; left != 0; left &= left - 1) {
      result.push_back(static_cast<int>(w) * 64 + std::countr_zero(left));
    }
  }
  return result;
}

Precedence::Precedence(const std::vector<std::vector<int>>& order) : direct_(order.size()) {
  walk(order, [&](int i, const OperationSet&, std::vector<int>& needed) {
    direct_[static_cast<std::size_t>(i)] = std::move(needed);
  });
}

Precedence::Precedence(const std::vector<std::vector<Access>>& uses, bool branches)
    : Precedence(branches ? find_order(uses) : list_order(uses.size())) {}

void Precedence::for_each(
    const std::function<void(int i, const OperationSet& before)>& visit) const {
  walk(direct_, [&](int i, const OperationSet& before, std::vector<int>&) { visit(i, before); });
}

std::vector<std::size_t> Precedence::lanes() const {
  std::size_t n = direct_.size();
  std::vector<std::size_t> way_to_go(n, 0), heir(n, n), lane_of(n, 0);
  for (std::size_t i = n; i-- > 0;) {
    for (int before : direct_[i]) {
      auto j = static_cast<std::size_t>(before);
      if (way_to_go[i] + 1 < way_to_go[j]) continue;
      way_to_go[j] = way_to_go[i] + 1;
      heir[j] = i;
    }
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    lane_of[i] = count;
    for (int before : direct_[i]) {
      auto j = static_cast<std::size_t>(before);
      if (heir[j] == i) lane_of[i] = std::min(lane_of[i], lane_of[j]);
    }
    count += lane_of[i] == count;
  }
  return lane_of;
}

Precedence Precedence::narrowed(std::size_t width, const std::vector<int>& devices) const {
  struct Track {
    int latest = -1;
    std::size_t lane = 0;
  };
  std::map<int, std::vector<Track>> tracks_of;
  std::vector<std::size_t> lane_of = lanes();
  std::vector<std::vector<int>> order = direct_;
  for (std::size_t i = 0; i < order.size(); ++i) {
    int device = devices.empty() ? 0 : devices[i];
    if (device < 0) continue;
    std::vector<Track>& tracks = tracks_of.try_emplace(device, width).first->second;
    // A lane stays on its track while no other one takes that, then goes to the one longest unused.
    auto on_track = [&](const Track& t) { return t.latest >= 0 && t.lane == lane_of[i]; };
    auto track = std::ranges::find_if(tracks, on_track);
    if (track == tracks.end()) track = std::ranges::min_element(tracks, {}, &Track::latest);
    if (track->latest >= 0) order[i].push_back(track->latest);
    std::ranges::sort(order[i], std::greater<>());
    *track = {static_cast<int>(i), lane_of[i]};
  }
  return Precedence(order);
}

}  // namespace rensa
