// Which elementwise operations make a chain, and the kernel of one.
#include "rensa/graph/join_chains.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/graph/storage_uses.h"
#include "rensa/kernel/elementwise_launch.h"
#include "rensa/kernel/fused_plan.h"

namespace rensa {

namespace {

using operations::ElementwiseInput;

using detail::FusedPrograms;
using detail::partly_overlap;
using detail::PerElement;
using detail::TracedInput;
using detail::TracedValue;

constexpr std::size_t kMostArguments = 48;  // of a kernel: their struct stays below 4 KiB
static_assert(kMostArguments <= detail::kMostFusedOperations);  // each operation counts for one
constexpr std::size_t kLookAhead = 256;                         // operations that a chain may span

/// Whether the elements stand in the order in which a kernel walks them. Others are left to the
/// library's kernels, which take them tile by tile.
bool in_c_order(const ArrayView& view) {
  std::int64_t inner = 0;
  for (int axis = view.ndim(); axis-- > 0;) {
    if (view.shape[axis] == 1 || view.strides[axis] == 0) continue;
    if (view.strides[axis] < inner) return false;
    inner = view.strides[axis];
  }
  return true;
}

bool is_same_as_one_of(const Operand& output, std::span<const ElementwiseInput> inputs) {
  return std::ranges::any_of(inputs, [&](const ElementwiseInput& input) {
    return input.array.present() && same_view(input.array.view, output.view);
  });
}

/// The operation, if it can be part of a chain.
std::optional<PerElement> chainable(const Operation& operation) {
  std::optional<PerElement> e = detail::per_element(operation);
  if (!e) return std::nullopt;
  for (const Operand& out : e->out) {
    if (out.view.size() == 0 || !out.view.is_c_contiguous()) return std::nullopt;
    // Of several values the later ones read what the earlier ones' operation read.
    if (e->out.size() > 1 && is_same_as_one_of(out, e->in)) return std::nullopt;
    for (const ElementwiseInput& in : e->in) {
      if (in.array.present() && partly_overlap(in.array.view, out.view)) return std::nullopt;
    }
  }
  for (const ElementwiseInput& in : e->in) {
    if (in.array.present() && !in_c_order(in.array.view)) return std::nullopt;
  }
  return e;
}

/// `view`, of elements of `whole`, moved to where the same elements of `other` are. Both are
/// C-contiguous and of one shape.
ArrayView same_elements_of(const ArrayView& other, const ArrayView& view, const ArrayView& whole) {
  std::int64_t theirs = itemsize(whole.dtype), size = itemsize(other.dtype);
  ArrayView result = view;
  result.dtype = other.dtype;
  result.data = other.data + (view.data - whole.data) / theirs * size;
  for (int axis = 0; axis < view.ndim(); ++axis) {
    result.strides[axis] = view.strides[axis] / theirs * size;
  }
  return result;
}

/// The operation for those elements alone that `parts` are, views of what it writes; none where
/// its operands are not simply arrays of one shape.
std::vector<std::unique_ptr<operations::Elementwise>> in_parts(
    const operations::Elementwise& operation, const std::vector<ArrayView>& parts) {
  std::vector<std::unique_ptr<operations::Elementwise>> result;
  const ArrayView& whole = operation.out.view;
  for (int k = 0; k < operation.num_inputs; ++k) {
    const Operand& in = operation.in[k].array;
    if (!in.present()) continue;
    if (in.view.shape != whole.shape || !in.view.is_c_contiguous()) return result;
  }
  for (const ArrayView& part : parts) {
    auto copy = std::make_unique<operations::Elementwise>(operation);
    copy->out.view = part;
    for (int k = 0; k < operation.num_inputs; ++k) {
      ArrayView& in = copy->in[k].array.view;
      if (copy->in[k].array.present()) in = same_elements_of(in, part, whole);
    }
    result.push_back(std::move(copy));
  }
  return result;
}

/// Operations of one shape that go on with each other's results, found one after the other. All
/// read before any writes, each thread its own elements. What may come to belong to them (another
/// branch that a later operation joins) is a part of its own until then.
class Chain {
 public:
  /// The first operation in `parts`: itself, or those of the elements that one later operation
  /// reads together.
  Chain(std::size_t index, const std::vector<PerElement>& parts, const StorageUses& uses)
      : shape_(parts[0].out[0].view.shape), uses_(uses) {
    for (const PerElement& part : parts) add(index, part, 0);
  }

  /// Whether it can have no more members.
  bool is_full() const { return arguments_ + 4 > kMostArguments; }

  /// Adds the operation, which comes after all others, if one kernel can do it with them.
  bool take(std::size_t index, const PerElement& op) {
    if (op.out[0].view.shape != shape_ ||
        arguments_ + op.in.size() + op.out.size() > kMostArguments) {
      return false;
    }
    std::vector<int> read_parts;
    bool writes_theirs = false;
    for (const Entry& entry : entries_) {
      if (!uses_.may_meet(entry.index, index)) continue;
      std::vector<const ArrayView*> theirs{&entry.out().view};
      for (const ArrayView* read : reads(entry.op)) theirs.push_back(read);
      for (const ArrayView* view : theirs) {
        for (const Operand& out : op.out) {
          if (partly_overlap(out.view, *view)) return false;
          writes_theirs = writes_theirs || same_view(out.view, *view);
        }
      }
      for (const ArrayView* read : reads(op)) {
        if (partly_overlap(*read, entry.out().view)) return false;
        if (same_view(*read, entry.out().view)) read_parts.push_back(entry.part);
      }
    }
    int part = read_parts.empty() ? next_part_++ : *std::ranges::min_element(read_parts);
    if (part != 0 && writes_theirs) return false;  // were it left behind, nobody could pass it
    for (Entry& entry : entries_) {
      if (std::ranges::count(read_parts, entry.part) != 0) entry.part = part;
    }
    add(index, op, part);
    return true;
  }

  /// The operation at `index` runs now. Leaves out the parts that it must not come before; false
  /// where that is the chain itself, which then ends.
  bool pass(std::size_t index) {
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      if (!uses_.conflict(entries_[k].index, index)) continue;
      int part = entries_[k].part;
      if (part == 0) return false;
      std::erase_if(entries_, [&](const Entry& entry) { return entry.part == part; });
      k = 0;  // the first is looked at already, and is of the chain
    }
    return true;
  }

  /// Leaves out what has not come to belong to the chain.
  void close() {
    std::erase_if(entries_, [](const Entry& entry) { return entry.part != 0; });
  }
  std::vector<std::size_t> members() const {
    std::vector<std::size_t> indices;
    for (const Entry& entry : entries_) {
      if (indices.empty() || indices.back() != entry.index) indices.push_back(entry.index);
    }
    return indices;
  }

  /// One kernel for all of a closed chain; `needed` tells whose memory somebody else may read.
  template <class Needed>
  operations::RuntimeKernel kernel(Needed&& needed, FusedPrograms& programs) const {
    std::vector<TracedValue> values;
    std::vector<int> outputs;
    std::vector<Operand> places;
    for (const Entry& entry : entries_) {
      const Operand& out = entry.out();
      auto v = static_cast<int>(values.size());
      values.push_back(value_of(entry, values.size()));
      places.push_back(out);
      if (maker_of(out.view, entries_.size()) == v && needed(out.storage)) outputs.push_back(v);
    }
    auto steps = detail::plan_fusion(values, outputs, programs);
    if (steps.size() != 1) throw NotImplementedError("a chain needs several kernels");
    detail::FusedProgram& program = *steps[0].program;
    return detail::make_elementwise(program.elementwise, program.compiled, program.name,
                                    detail::operands_of(steps[0], values, places), steps[0].shape,
                                    values[0].device);
  }

 private:
  struct Entry {  // one for each output
    std::size_t index;
    PerElement op;
    int output;
    int part;  // 0: the chain's own
    const Operand& out() const { return op.out[static_cast<std::size_t>(output)]; }
  };

  static std::vector<const ArrayView*> reads(const PerElement& op) {
    std::vector<const ArrayView*> views;
    for (const ElementwiseInput& in : op.in) {
      if (in.array.present()) views.push_back(&in.array.view);
    }
    return views;
  }

  void add(std::size_t index, const PerElement& op, int part) {
    arguments_ += op.out.size();
    for (const ElementwiseInput& in : op.in) {
      arguments_ += !in.array.present() || maker_of(in.array.view, entries_.size()) < 0;
    }
    for (int k = 0; k < static_cast<int>(op.out.size()); ++k) {
      entries_.push_back({index, op, k, part});
    }
  }

  /// The latest of the first `count` entries that wrote there; -1 where none did.
  int maker_of(const ArrayView& view, std::size_t count) const {
    while (count-- > 0) {
      if (same_view(entries_[count].out().view, view)) return static_cast<int>(count);
    }
    return -1;
  }

  TracedValue value_of(const Entry& entry, std::size_t v) const {
    TracedValue value = entry.op.value(entry.output);
    for (int k = 0; k < value.num_inputs; ++k) {
      const ElementwiseInput& input = entry.op.in[static_cast<std::size_t>(k)];
      TracedInput& in = value.in[k];
      in.number = input.scalar;
      in.array = input.array;
      if (!in.array.present()) continue;
      in.kind = TracedInput::Kind::array;
      in.value = maker_of(in.array.view, v);
      if (in.value < 0) continue;
      in.kind = TracedInput::Kind::value;
      in.array.storage = nullptr;
      ArrayView& view = in.array.view;
      view.data = nullptr;  // from the value's first element on, each as it lies there
      view.strides = contiguous_strides(view.shape, itemsize(view.dtype));
    }
    return value;
  }

  Shape shape_;
  const StorageUses& uses_;
  std::vector<Entry> entries_;
  int next_part_ = 1;
  std::size_t arguments_ = 0;  // that a kernel for all would have, at most
};

class Joiner {
 public:
  explicit Joiner(Recording& recording)
      : ops_(recording.operations), uses_(recording), carried_over_(uses_.carried_over()) {
    for (const auto& operation : ops_) chainable_.push_back(chainable(*operation));
  }

  JoinedChains run() {
    for (std::size_t i = 0; i < ops_.size() && result_.failure.empty(); ++i) {
      if (!chainable_[i]) continue;
      Parts parts = parts_for_reader(i);
      std::vector<PerElement> first;
      for (const auto& part : parts) first.push_back(*detail::per_element(*part));
      if (first.empty()) first.push_back(*chainable_[i]);
      Chain chain(i, first, uses_);
      grow(chain, i + 1);
      if (chain.members().size() > 1) join(chain);
    }
    std::erase(ops_, nullptr);
    return std::move(result_);
  }

 private:
  using Parts = std::vector<std::unique_ptr<operations::Elementwise>>;

  /// The operation at `i` as those of the views in which one later operation alone reads what it
  /// writes, as many elements in all: gates that lie side by side, say. None: it is read otherwise.
  /// In a chain its reader is there too, so that no part is written to memory.
  Parts parts_for_reader(std::size_t i) const {
    const auto* maker = dynamic_cast<const operations::Elementwise*>(ops_[i].get());
    if (!maker || is_seen_outside(maker->out.storage) ||
        !uses_.is_handed_over(maker->out.storage)) {
      return {};
    }
    std::size_t reader = *uses_.users(maker->out.storage).rbegin();
    if (!chainable_[reader]) return {};
    std::vector<ArrayView> views;
    std::int64_t elements = 0;
    for (const ElementwiseInput& in : chainable_[reader]->in) {
      const ArrayView& view = in.array.view;
      if (in.array.storage != maker->out.storage) continue;
      if (view.dtype != maker->out.view.dtype || view.size() == maker->out.view.size() ||
          view.shape != chainable_[reader]->out[0].view.shape) {
        return {};
      }
      elements += view.size();
      views.push_back(view);
    }
    return elements == maker->out.view.size() ? in_parts(*maker, views) : Parts();
  }

  /// The kernel runs where the last member ran: no one that a member has to come before is passed.
  void grow(Chain& chain, std::size_t begin) const {
    std::size_t end = std::min(ops_.size(), begin + kLookAhead);
    for (std::size_t j = begin; j < end && !chain.is_full(); ++j) {
      if (chainable_[j] && chain.take(j, *chainable_[j])) continue;
      if (!chain.pass(j)) break;
    }
    chain.close();
  }

  /// Whether others than this run's operations may read what lies there.
  bool is_seen_outside(Storage* storage) const {
    return !is_own(*storage) || carried_over_.count(storage) != 0;
  }

  void join(const Chain& chain) {
    std::vector<std::size_t> members = chain.members();
    std::size_t last = members.back();
    auto needed = [&](Storage* storage) {
      return is_seen_outside(storage) || uses_.used_after(storage, last);
    };
    try {
      auto kernel = std::make_unique<operations::RuntimeKernel>(chain.kernel(needed, programs_));
      for (std::size_t member : members) remove(member);
      uses_.replace(last, kernel.get());
      ops_[last] = std::move(kernel);
    } catch (const Error& error) {  // no compiler on this machine, say: the operations do as well
      result_.failure = error.what();
      return;
    }
    ++result_.kernels;
    result_.operations += static_cast<std::int64_t>(members.size());
  }

  void remove(std::size_t i) {
    uses_.replace(i, nullptr);
    chainable_[i].reset();
    ops_[i] = nullptr;
  }

  std::vector<std::unique_ptr<Operation>>& ops_;      // null: part of a later kernel
  std::vector<std::optional<PerElement>> chainable_;  // none: cannot be part of a chain
  StorageUses uses_;
  std::unordered_set<Storage*> carried_over_;
  FusedPrograms programs_;
  JoinedChains result_;
};

}  // namespace

JoinedChains join_chains(Recording& recording) { return Joiner(recording).run(); }

}  // namespace rensa
