// The rewrites of a recorded list. Each looks for its pattern by dataflow: the operation that wrote
// an operand last, and everybody that touches the memory in between.
#include "rensa/graph/rewrite.h"

#include <algorithm>

#include "rensa/device/operations.h"

namespace rensa {

namespace {

class Rewriter {
 public:
  explicit Rewriter(Recording& recording) : recording_(recording), ops_(recording.operations) {}

  JoinedChains run() {
    fold_constants();
    for (std::size_t i = ops_.size(); i-- > 0;) {  // backwards: removals shift only what is done
      if (auto* elementwise = dynamic_cast<Elementwise*>(ops_[i].get())) {
        if (elementwise->ufunc == Ufunc::relu) fuse_relu(i, *elementwise);
        else if (elementwise->ufunc == Ufunc::relu_grad) fuse_relu_grad(i, *elementwise);
      }
      compact();
    }
    drop_dead();
    // A CPU's recordings are for tests, and a compiler's vector functions may round otherwise.
    JoinedChains joined;
    if (recording_.device().is_cuda()) joined = join_chains(recording_);
    split_updates();
    return joined;
  }

 private:
  bool touches(std::size_t i, Storage* storage, bool writes_only) const {
    for (const Access& access : accesses(*ops_[i])) {
      if (access.storage == storage && (access.write || !writes_only)) return true;
    }
    return false;
  }

  /// The operations that touch `storage`, in order.
  std::vector<std::size_t> users(Storage* storage) const {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (touches(i, storage, false)) result.push_back(i);
    }
    return result;
  }

  void remove(std::size_t i) { removed_.push_back(i); }

  void compact() {
    std::sort(removed_.rbegin(), removed_.rend());
    for (std::size_t i : removed_) ops_.erase(ops_.begin() + static_cast<std::ptrdiff_t>(i));
    removed_.clear();
  }

  void fold_constants() {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      auto* op = dynamic_cast<Elementwise*>(ops_[i].get());
      if (!op || op->ufunc != Ufunc::copy || op->in[0].array.present()) continue;
      Storage* storage = op->out.storage;
      if (!is_own(*storage)) continue;
      bool only_writer = true;
      for (std::size_t user : users(storage)) {
        only_writer = only_writer && (user == i || !touches(user, storage, true));
      }
      if (!only_writer) continue;
      // The recording run has filled it; a second handle keeps it out of the planned memory.
      constants_.push_back(StoragePtr(storage));
      remove(i);
    }
    compact();
    recording_.constants = constants_;
  }

  void fuse_relu(std::size_t i, const Elementwise& relu) {
    Storage* middle = relu.in[0].array.storage;
    if (!relu.in[0].array.present() || !is_own(*middle)) return;
    auto middle_users = users(middle);
    if (middle_users.size() != 2 || middle_users[1] != i) return;
    std::size_t product_index = middle_users[0];
    auto* product = dynamic_cast<Matmul*>(ops_[product_index].get());
    if (!product || product->relu || !product->bias.present() ||
        !same_view(product->c.view, relu.in[0].array.view) ||
        relu.compute != product->c.view.dtype || relu.out.view.dtype != product->c.view.dtype ||
        !relu.out.view.is_c_contiguous()) {
      return;
    }
    for (std::size_t j = product_index + 1; j < i; ++j) {
      if (touches(j, relu.out.storage, false)) return;
    }
    product->c = relu.out;
    product->relu = true;
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
    for (std::size_t j = i + 1; j < ops_.size(); ++j) {
      auto* sum = dynamic_cast<Reduce*>(ops_[j].get());
      if (sum && sum->reduction == Reduction::sum && sum->axes == 1u &&
          same_view(sum->in.view, gz.view) && sum->out.view.dtype == gz.view.dtype &&
          sum->out.view.size() == gz.view.shape[1]) {
        for (std::size_t k = i; k < j; ++k) {
          if (touches(k, sum->out.storage, false)) return;
        }
        auto fused = std::make_unique<ReluBiasGrad>();
        fused->gy = relu_grad.in[0].array;
        fused->y = relu_grad.in[1].array;
        fused->gz = gz;
        fused->gb = sum->out;
        fused->gb.view.shape = Shape{gz.view.shape[1]};
        fused->gb.view.strides = contiguous_strides(fused->gb.view.shape, itemsize(gz.view.dtype));
        ops_[i] = std::move(fused);
        remove(j);
        return;
      }
      if (touches(j, gz.storage, true)) return;
    }
  }

  void drop_dead() {
    for (std::size_t i = ops_.size(); i-- > 0;) {
      bool needed = false;
      for (const Access& access : accesses(*ops_[i])) {
        if (!access.write) continue;
        bool read_later = !is_own(*access.storage);
        for (std::size_t j = i + 1; j < ops_.size() && !read_later; ++j) {
          read_later = touches(j, access.storage, false);
        }
        needed = needed || read_later;
      }
      if (!needed) remove(i), compact();
    }
  }

  /// The operation before `i` that writes `storage` last; 0 where none does.
  std::size_t writer_before(std::size_t i, Storage* storage) const {
    while (i-- > 1) {
      if (touches(i, storage, true)) return i;
    }
    return 0;
  }

  /// One update of all parameters waits for the last gradient. In parts, by the order in which the
  /// gradients come, most of it is done beside the rest of backward.
  void split_updates() {
    constexpr int kMostParts = 4;
    constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;  // what is worth a launch
    for (std::size_t i = ops_.size(); i-- > 0;) {
      auto* update = dynamic_cast<UpdateParameters*>(ops_[i].get());
      if (!update) continue;
      std::vector<std::pair<std::size_t, UpdateTarget>> targets;
      std::int64_t bytes = 0;
      for (const UpdateTarget& target : update->targets) {
        targets.emplace_back(writer_before(i, target.gradient.storage), target);
        bytes += target.parameter.view.nbytes();
      }
      std::stable_sort(targets.begin(), targets.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      std::int64_t share = std::max(bytes / kMostParts, kLeastBytes);
      std::vector<std::unique_ptr<Operation>> parts;
      UpdateParameters part(*update);
      part.targets.clear();
      std::int64_t part_bytes = 0;
      for (auto& [ready, target] : targets) {
        if (part_bytes >= share) {
          parts.push_back(part.clone());
          part.targets.clear();
          part_bytes = 0;
        }
        part_bytes += target.parameter.view.nbytes();
        part.targets.push_back(std::move(target));
      }
      *update = part;
      ops_.insert(ops_.begin() + static_cast<std::ptrdiff_t>(i),
                  std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
    }
  }

  Recording& recording_;
  std::vector<std::unique_ptr<Operation>>& ops_;
  std::vector<std::size_t> removed_;
  std::vector<StoragePtr> constants_;
};

}  // namespace

JoinedChains rewrite(Recording& recording) { return Rewriter(recording).run(); }

}  // namespace rensa
