// Which actions a step's parts are made of, and which marks they need.
#include "rensa/device/step_parts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace rensa::cuda {

namespace {

/// The order of one GPU's nodes: what is urgent as soon as all before it are there, and of what is
/// alike what the step has first. Where a GPU may begin several kernels, it begins them in the
/// order in which the graph got them: the first find room, and others fill what is left.
std::vector<std::size_t> urgent_first(const std::vector<StepNode>& nodes) {
  std::vector<std::vector<std::size_t>> after(nodes.size());
  std::vector<std::size_t> missing(nodes.size());
  std::set<std::pair<bool, std::size_t>> ready;  // false, so first: urgent
  auto make_ready = [&](std::size_t i) { ready.emplace(!nodes[i].urgent, i); };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (int j : nodes[i].dependencies) after[static_cast<std::size_t>(j)].push_back(i);
    missing[i] = nodes[i].dependencies.size();
    if (missing[i] == 0) make_ready(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    std::size_t next = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(next);
    for (std::size_t i : after[next]) {
      if (--missing[i] == 0) make_ready(i);
    }
  }
  return order;
}

/// The order of several GPUs' nodes, and of their marks: that of when they may be done. A sum or a
/// copy between GPUs takes as long as some other nodes, so that gradients which are ready meanwhile
/// are told before it.
std::vector<std::size_t> first_done_first(const std::vector<StepNode>& nodes) {
  constexpr std::size_t kBetween = 4;
  std::vector<std::size_t> order(nodes.size()), done(nodes.size(), 0);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (int j : nodes[i].dependencies) {
      done[i] = std::max(done[i], done[static_cast<std::size_t>(j)]);
    }
    done[i] += nodes[i].operation->is_between_devices() ? kBetween : 1;
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return done[i]; });
  return order;
}

/// The devices of an operation's operands.
class TouchedDevices final : public OperandVisitor {
 public:
  explicit TouchedDevices(Operation& operation) { operation.visit(*this); }
  void read(Operand& operand) override { devices_.push_back(operand.view.device); }
  void write(Operand& operand) override { devices_.push_back(operand.view.device); }
  bool contains(Device device) const {
    return std::ranges::find(devices_, device) != devices_.end();
  }

 private:
  std::vector<Device> devices_;
};

class Builder {
 public:
  Builder(const std::vector<Device>& devices, const std::vector<StepNode>& nodes,
          const std::vector<StepPlace>& results)
      : devices_(devices),
        nodes_(nodes),
        results_(results),
        parts_(devices.size()),
        heard_(devices.size(), std::vector<Heard>(devices.size())),
        tells_(devices.size()),
        starts_(devices.size(), 0),
        ends_(devices.size(), Numbers(devices.size(), 0)),
        place_(nodes.size(), 0),
        mark_(nodes.size(), 0),
        touched_(nodes.size()),
        told_(nodes.size()) {}

  std::vector<StepPart> build() {
    find_who_is_told();
    add_starts();
    for (std::size_t i : parts_.size() > 1 ? first_done_first(nodes_) : urgent_first(nodes_))
      add(i);
    add_results();
    add_ends();
    return std::move(parts_);
  }

 private:
  using Numbers = std::vector<int>;          // of a mark of each part; 0: of none
  using Heard = std::map<int, std::size_t>;  // marks of a part, and the actions that await them
  /// A mark's place in the order of all, and the action that tells it.
  struct Tell {
    int time;
    std::size_t action;
  };

  std::size_t part_of(Device device) const {
    return static_cast<std::size_t>(std::ranges::find(devices_, device) - devices_.begin());
  }
  std::size_t part_of(int node) const {
    return part_of(nodes_[static_cast<std::size_t>(node)].device);
  }

  void find_who_is_told() {
    auto needs = [&](std::size_t p, int node) {
      std::vector<std::size_t>& told = told_[static_cast<std::size_t>(node)];
      if (part_of(node) != p && std::ranges::find(told, p) == told.end()) told.push_back(p);
    };
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const StepNode& node = nodes_[i];
      for (int j : node.dependencies) needs(part_of(node.device), j);
      if (!node.operation->is_between_devices()) continue;
      TouchedDevices touched(*node.operation);
      for (std::size_t p = 0; p < parts_.size(); ++p) {
        if (devices_[p] == node.device || !touched.contains(devices_[p])) continue;
        touched_[i].push_back(p);
        needs(p, static_cast<int>(i));
      }
    }
    for (const StepPlace& result : results_) {
      for (int j : result.writers) needs(part_of(result.device), j);
    }
  }

  /// Tells the other parts whose nodes touch this one's memory that it has begun.
  void add_starts() {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      std::vector<std::size_t> told;
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        std::size_t q = part_of(nodes_[i].device);
        if (std::ranges::find(touched_[i], p) == touched_[i].end()) continue;
        if (std::ranges::find(told, q) == told.end()) told.push_back(q);
      }
      starts_[p] = tell(p, std::move(told), {});
    }
  }

  /// Returns the mark's number; 0 where nobody is told.
  int tell(std::size_t p, std::vector<std::size_t> told, std::vector<std::size_t> after) {
    if (told.empty()) return 0;
    if (!tells_[p].empty()) after.push_back(tells_[p].back().action);
    tells_[p].push_back({time_++, parts_[p].actions.size()});
    StepAction action;
    action.kind = StepAction::Kind::tell;
    action.marks = {{p, static_cast<int>(tells_[p].size())}};
    action.told = std::move(told);
    action.after = std::move(after);
    parts_[p].actions.push_back(std::move(action));
    return static_cast<int>(tells_[p].size());
  }

  /// Has part `p` await those marks of `needed` that it has not awaited yet, no sooner than it is
  /// done with `after`; returns the actions by which it then knows of them. (It may know of later
  /// ones already, for which it would wait longer.)
  std::vector<std::size_t> await(std::size_t p, const Numbers& needed,
                                 std::vector<std::size_t> after) {
    StepAction action;
    action.kind = StepAction::Kind::await;
    action.after = std::move(after);
    std::vector<std::size_t> known_by;
    int time = 0;  // of the last mark
    for (std::size_t q = 0; q < needed.size(); ++q) {
      if (needed[q] == 0) continue;
      auto [heard, is_new] = heard_[p][q].try_emplace(needed[q], parts_[p].actions.size());
      known_by.push_back(heard->second);
      if (!is_new) continue;
      action.marks.push_back({q, needed[q]});
      time = std::max(time, tells_[q][static_cast<std::size_t>(needed[q] - 1)].time);
    }
    if (action.marks.empty()) return known_by;
    auto later = std::ranges::upper_bound(tells_[p], time, {}, &Tell::time);
    if (later != tells_[p].begin()) action.after.push_back(std::prev(later)->action);
    parts_[p].actions.push_back(std::move(action));
    return known_by;
  }

  /// What follows `before` on part `p`, and what of `needed` the others have told.
  std::vector<std::size_t> followed(std::size_t p, const std::vector<int>& before, Numbers needed) {
    std::vector<std::size_t> after;
    for (int j : before) {
      std::size_t q = part_of(j);
      if (q == p) after.push_back(place_[static_cast<std::size_t>(j)]);
      else needed[q] = std::max(needed[q], mark_[static_cast<std::size_t>(j)]);
    }
    // What waits takes room on the GPU: only what is needed next is awaited.
    for (std::size_t action : await(p, needed, after)) after.push_back(action);
    return after;
  }

  void add(std::size_t i) {
    std::size_t p = part_of(nodes_[i].device);
    Numbers needed(parts_.size(), 0);
    for (std::size_t q : touched_[i]) needed[q] = starts_[q];  // whose inputs it may read
    StepAction action;
    action.node = i;
    action.after = followed(p, nodes_[i].dependencies, std::move(needed));
    place_[i] = parts_[p].actions.size();
    parts_[p].actions.push_back(std::move(action));
    mark_[i] = tell(p, told_[i], {place_[i]});
    for (std::size_t q : touched_[i]) ends_[q][p] = mark_[i];
  }

  void add_results() {
    for (const StepPlace& result : results_) {
      std::size_t p = part_of(result.device);
      parts_[p].results.push_back(followed(p, result.writers, Numbers(parts_.size(), 0)));
    }
  }

  /// A part ends after the others' nodes that touch its memory.
  void add_ends() {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      Numbers needed = ends_[p];
      for (std::size_t q = 0; q < parts_.size(); ++q) {
        const Heard& heard = heard_[p][q];
        if (!heard.empty() && heard.rbegin()->first >= needed[q]) needed[q] = 0;
      }
      await(p, needed, {});
    }
  }

  const std::vector<Device>& devices_;
  const std::vector<StepNode>& nodes_;
  const std::vector<StepPlace>& results_;
  std::vector<StepPart> parts_;
  std::vector<std::vector<Heard>> heard_;          // by part, of each other part
  std::vector<std::vector<Tell>> tells_;           // by part: of its marks in order
  Numbers starts_;                                 // by part: the mark that it has begun
  std::vector<Numbers> ends_;                      // by part: what it awaits in the end
  std::vector<std::size_t> place_;                 // by node: its action in its part
  Numbers mark_;                                   // by node; 0: nobody is told
  std::vector<std::vector<std::size_t>> touched_;  // by node: other parts, by its operands
  std::vector<std::vector<std::size_t>> told_;     // by node: the other parts that need it
  int time_ = 0;
};

/// Which of a part's actions are early, as early_actions says.
class EarlyActions {
 public:
  EarlyActions(const std::vector<StepAction>& actions, const std::vector<StepNode>& nodes,
               const std::function<StepRoom(const StepNode&)>& room)
      : actions_(actions),
        nodes_(nodes),
        ask_(room),
        rooms_(actions.size()),
        after_(actions.size()) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      for (std::size_t before : actions[i].after) after_[before].push_back(i);
    }
  }

  bool is_early(std::size_t i) {
    if (!is_run(i)) return true;
    if (is_urgent(i)) return !takes_room_of_others(i);
    std::optional<std::size_t> before = only_before(i);
    return before && is_urgent(*before) && !room(i).is_alone() &&
           std::ranges::none_of(after_[*before], [&](std::size_t other) {
             return is_urgent(other) && room(other).is_large();
           });
  }

 private:
  bool is_run(std::size_t i) const { return actions_[i].kind == StepAction::Kind::run; }
  bool is_urgent(std::size_t i) const { return is_run(i) && nodes_[actions_[i].node].urgent; }
  std::optional<std::size_t> only_before(std::size_t i) const {
    const std::vector<std::size_t>& after = actions_[i].after;
    return after.size() == 1 && is_run(after[0]) ? std::optional(after[0]) : std::nullopt;
  }
  const StepRoom& room(std::size_t i) {
    const StepNode& node = nodes_[actions_[i].node];
    if (!rooms_[i]) rooms_[i] = node.captured_once ? StepRoom{} : ask_(node);
    return *rooms_[i];
  }
  /// Whether the urgent `i` would hold multiprocessors that another one waits for.
  bool takes_room_of_others(std::size_t i) {
    std::optional<std::size_t> before = only_before(i);
    if (!before) return false;
    const std::vector<std::size_t>& start = actions_[*before].after;
    if (start.empty()) return false;
    return std::ranges::any_of(after_[start[0]], [&](std::size_t other) {
      return is_run(other) && !is_urgent(other) && other != *before &&
             actions_[other].after == start && room(i).is_large() && room(*before).is_large() &&
             room(*before).fills_gpu() && room(other).is_large();
    });
  }

  const std::vector<StepAction>& actions_;
  const std::vector<StepNode>& nodes_;
  const std::function<StepRoom(const StepNode&)>& ask_;
  std::vector<std::optional<StepRoom>> rooms_;   // as far as they were asked
  std::vector<std::vector<std::size_t>> after_;  // by action: those that follow it directly
};

}  // namespace

std::vector<StepPart> step_parts(const std::vector<Device>& devices,
                                 const std::vector<StepNode>& nodes,
                                 const std::vector<StepPlace>& results) {
  return Builder(devices, nodes, results).build();
}

std::vector<bool> early_actions(const StepPart& part, const std::vector<StepNode>& nodes,
                                const std::function<StepRoom(const StepNode&)>& room) {
  EarlyActions rule(part.actions, nodes, room);
  std::vector<bool> early;
  for (std::size_t i = 0; i < part.actions.size(); ++i) early.push_back(rule.is_early(i));
  return early;
}

int most_marks(const std::vector<StepPart>& parts) {
  int most = 0;
  for (const StepPart& part : parts) {
    for (const StepAction& action : part.actions) {
      if (action.kind == StepAction::Kind::tell) most = std::max(most, action.marks[0].number);
    }
  }
  return most;
}

}  // namespace rensa::cuda
