// The rewrites of a recorded list. Each looks for its pattern by dataflow: the operation that wrote
// an operand last, and everybody that touches the memory in between.
#include "rensa/graph/rewrite.h"

#include <algorithm>

#include "rensa/device/operations.h"
#include "rensa/functions/operations/relu_bias_grad/relu_bias_grad.h"
#include "rensa/graph/storage_uses.h"
#include "rensa/operations/matmul/matmul.h"
#include "rensa/operations/reduce/reduce.h"

namespace rensa {

namespace {

using Operations = std::vector<std::unique_ptr<Operation>>;

class Rewriter {
 public:
  explicit Rewriter(Recording& recording)
      : recording_(recording), ops_(recording.operations), uses_(recording) {}

  void run() {
    fold_constants();
    for (std::size_t i = ops_.size(); i-- > 0;) {
      auto* elementwise = dynamic_cast<Elementwise*>(ops_[i].get());
      if (!elementwise) continue;
      if (elementwise->ufunc == Ufunc::relu) fuse_relu(i, *elementwise);
      else if (elementwise->ufunc == Ufunc::relu_grad) fuse_relu_grad(i, *elementwise);
    }
    drop_dead();
    std::erase(ops_, nullptr);
  }

 private:
  void remove(std::size_t i) {
    uses_.replace(i, nullptr);
    ops_[i] = nullptr;
  }

  void fold_constants() {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      auto* op = dynamic_cast<Elementwise*>(ops_[i].get());
      if (!op || op->ufunc != Ufunc::copy || op->in[0].array.present()) continue;
      Storage* storage = op->out.storage;
      if (!is_own(*storage) || uses_.writers(storage).size() != 1) continue;
      // The recording run has filled it; a second handle keeps it out of the planned memory.
      recording_.constants.push_back(StoragePtr(storage));
      remove(i);
    }
  }

  void fuse_relu(std::size_t i, const Elementwise& relu) {
    Storage* middle = relu.in[0].array.storage;
    if (!relu.in[0].array.present() || !is_own(*middle)) return;
    const StorageUses::Places& users = uses_.users(middle);
    if (users.size() != 2 || *users.rbegin() != i) return;
    std::size_t product_index = *users.begin();
    auto* product = dynamic_cast<Matmul*>(ops_[product_index].get());
    if (!product || product->relu || !product->bias.present() ||
        !same_view(product->c.view, relu.in[0].array.view) ||
        relu.compute != product->c.view.dtype || relu.out.view.dtype != product->c.view.dtype ||
        !relu.out.view.is_c_contiguous()) {
      return;
    }
    if (uses_.used_between(relu.out.storage, product_index, i)) return;
    product->c = relu.out;
    product->relu = true;
    uses_.replace(product_index, product);
    remove(i);
  }

  void fuse_relu_grad(std::size_t i, const Elementwise& relu_grad) {
    const Operand& gz = relu_grad.out;
    if (relu_grad.num_inputs != 2 || !relu_grad.in[0].array.present() ||
        !relu_grad.in[1].array.present()) {
      return;
    }
    const ArrayView& gy = relu_grad.in[0].array.view;
    const ArrayView& y = relu_grad.in[1].array.view;
    bool plain = gz.view.ndim() == 2 && gz.view.is_c_contiguous() && gy.is_c_contiguous() &&
                 y.is_c_contiguous() && gy.dtype == gz.view.dtype && y.dtype == gz.view.dtype &&
                 gy.shape == gz.view.shape && y.shape == gz.view.shape;
    if (!plain) return;
    const StorageUses::Places& users = uses_.users(gz.storage);
    const StorageUses::Places& writers = uses_.writers(gz.storage);
    for (auto user = users.upper_bound(i); user != users.end(); ++user) {
      auto* sum = dynamic_cast<Reduce*>(ops_[*user].get());
      if (sum && is_column_sum(*sum, gz.view)) {
        // What runs in between, and relu_grad itself, must not touch what the sum writes.
        const StorageUses::Places& others = uses_.users(sum->out.storage);
        if (*others.lower_bound(i) == *user) join_bias_grad(i, relu_grad, *user);
        return;
      }
      if (writers.count(*user) != 0) return;
    }
  }

  static bool is_column_sum(const Reduce& sum, const ArrayView& gz) {
    return sum.reduction == Reduction::sum && sum.axes == 1u && same_view(sum.in.view, gz) &&
           sum.out.view.dtype == gz.dtype && sum.out.view.size() == gz.shape[1];
  }

  void join_bias_grad(std::size_t i, const Elementwise& relu_grad, std::size_t sum_index) {
    const ArrayView& gz = relu_grad.out.view;
    auto fused = std::make_unique<ReluBiasGrad>();
    fused->gy = relu_grad.in[0].array;
    fused->y = relu_grad.in[1].array;
    fused->gz = relu_grad.out;
    fused->gb = static_cast<Reduce&>(*ops_[sum_index]).out;
    fused->gb.view.shape = Shape{gz.shape[1]};
    fused->gb.view.strides = contiguous_strides(fused->gb.view.shape, itemsize(gz.dtype));
    remove(sum_index);
    uses_.replace(i, fused.get());
    ops_[i] = std::move(fused);
  }

  void drop_dead() {
    std::unordered_set<Storage*> carried_over = uses_.carried_over();
    for (std::size_t i = ops_.size(); i-- > 0;) {
      bool needed = !ops_[i];
      for (const Access& access : uses_.of(i)) {
        if (!access.write) continue;
        Storage* storage = access.storage;
        needed = needed || !is_own(*storage) || carried_over.count(storage) != 0 ||
                 uses_.used_after(storage, i);
      }
      if (!needed) remove(i);
    }
  }

  Recording& recording_;
  Operations& ops_;  // null: taken out
  StorageUses uses_;
};

/// `update`, the operation at `i`, in parts by the order in which the gradients come.
Operations parts_of(const UpdateParameters& update, std::size_t i, const StorageUses& uses) {
  constexpr int kMostParts = 4;
  constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;  // what is worth a launch
  std::vector<std::pair<std::size_t, UpdateTarget>> targets;
  std::int64_t bytes = 0;
  for (const UpdateTarget& target : update.targets) {
    std::size_t writer = uses.writer_before(target.gradient.storage, i);
    targets.emplace_back(writer < i ? writer : 0, target);
    bytes += target.parameter.view.nbytes();
  }
  std::stable_sort(targets.begin(), targets.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::int64_t share = std::max(bytes / kMostParts, kLeastBytes), part_bytes = 0;
  Operations parts;
  UpdateParameters part(update);
  part.targets.clear();
  for (auto& [ready, target] : targets) {
    if (part_bytes >= share) {
      parts.push_back(part.clone());
      part.targets.clear();
      part_bytes = 0;
    }
    part_bytes += target.parameter.view.nbytes();
    part.targets.push_back(std::move(target));
  }
  parts.push_back(part.clone());
  return parts;
}

/// One update of all parameters waits for the last gradient. In parts most of it is done beside the
/// rest of backward.
void split_updates(Recording& recording) {
  auto is_update = [](const std::unique_ptr<Operation>& operation) {
    return dynamic_cast<UpdateParameters*>(operation.get()) != nullptr;
  };
  if (std::ranges::none_of(recording.operations, is_update)) return;
  StorageUses uses(recording);
  Operations result;
  for (std::size_t i = 0; i < recording.operations.size(); ++i) {
    std::unique_ptr<Operation>& operation = recording.operations[i];
    if (auto* update = dynamic_cast<UpdateParameters*>(operation.get())) {
      for (auto& part : parts_of(*update, i, uses)) result.push_back(std::move(part));
    } else {
      result.push_back(std::move(operation));
    }
  }
  recording.operations = std::move(result);
}

}  // namespace

JoinedChains rewrite(Recording& recording) {
  Rewriter(recording).run();
  // A CPU's recordings are for tests, and a compiler's vector functions may round otherwise.
  JoinedChains joined;
  if (recording.device().is_cuda()) joined = join_chains(recording);
  split_updates(recording);
  return joined;
}

}  // namespace rensa
