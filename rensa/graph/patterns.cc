// What the patterns look for, and what becomes of it.
#include "rensa/graph/patterns.h"

#include <algorithm>

#include "rensa/functions/operations/relu_bias_grad/relu_bias_grad.h"
#include "rensa/functions/operations/update_parameters/update_parameters.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "rensa/operations/matmul/matmul.h"
#include "rensa/operations/reduce/reduce.h"

namespace rensa {

bool RecordedList::is_carried_over(Storage* storage) {
  if (!carried_over_) {
    carried_over_ = std::make_unique<std::unordered_set<Storage*>>(uses_.carried_over());
  }
  return carried_over_->count(storage) != 0;
}

void RecordedList::take_out(std::size_t i) {
  uses_.replace(i, nullptr);
  recording_.operations[i] = nullptr;
}

void RecordedList::keep_constant(std::size_t i, Storage* storage) {
  uses_.replace(i, nullptr);
  // A second handle, which keeps the storage out of the planned memory.
  recording_.constants.push_back({StoragePtr(storage), std::move(recording_.operations[i])});
}

void RecordedList::replace(std::size_t i, std::unique_ptr<Operation> operation) {
  uses_.replace(i, operation.get());
  recording_.operations[i] = std::move(operation);
}

void RecordedList::split(std::size_t i, Operations parts) {
  recording_.operations[i] = std::move(parts.front());
  parts.erase(parts.begin());
  parts_[i] = std::move(parts);
}

void RecordedList::close() {
  Operations left;
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_taken_out(i)) continue;
    left.push_back(std::move(recording_.operations[i]));
    auto parts = parts_.find(i);
    if (parts == parts_.end()) continue;
    for (auto& part : parts->second) left.push_back(std::move(part));
  }
  recording_.operations = std::move(left);
}

namespace {

using operations::Elementwise;
using operations::Reduce;
using operations::UpdateParameters;

Elementwise* elementwise_at(const RecordedList& list, std::size_t i, Ufunc ufunc) {
  auto* operation = list.at<Elementwise>(i);
  return operation && operation->ufunc == ufunc ? operation : nullptr;
}

void fold_constant(RecordedList& list, std::size_t i) {
  Elementwise* fill = elementwise_at(list, i, ufunc::copy);
  if (!fill || fill->in[0].array.present()) return;
  Storage* storage = fill->out.storage;
  if (!is_own(*storage) || list.uses().writers(storage).size() != 1) return;
  list.keep_constant(i, storage);
}

void join_relu(RecordedList& list, std::size_t i) {
  Elementwise* relu = elementwise_at(list, i, ufunc::relu);
  if (!relu || !relu->in[0].array.present()) return;
  Storage* middle = relu->in[0].array.storage;
  if (!is_own(*middle)) return;
  const StorageUses::Places& users = list.uses().users(middle);
  if (users.size() != 2 || *users.rbegin() != i) return;
  std::size_t product_index = *users.begin();
  auto* product = list.at<operations::Matmul>(product_index);
  if (!product || product->relu || !product->bias.present() ||
      !same_view(product->c.view, relu->in[0].array.view) ||
      relu->compute != product->c.view.dtype || relu->out.view.dtype != product->c.view.dtype ||
      !relu->out.view.is_c_contiguous()) {
    return;
  }
  if (list.uses().used_between(relu->out.storage, product_index, i)) return;
  product->c = relu->out;
  product->relu = true;
  list.has_changed(product_index);
  list.take_out(i);
}

bool is_column_sum(const Reduce& sum, const ArrayView& gz) {
  return sum.reduction == reduction::sum && sum.axes == 1u && same_view(sum.in.view, gz) &&
         sum.out.view.dtype == gz.dtype && sum.out.view.size() == gz.shape[1];
}

/// Whether all arrays are matrices that lie alike, of one dtype.
bool is_plain_relu_grad(const Elementwise& grad) {
  if (grad.num_inputs != 2 || !grad.in[0].array.present() || !grad.in[1].array.present()) {
    return false;
  }
  const ArrayView& gz = grad.out.view;
  auto fits = [&](const ArrayView& view) {
    return view.is_c_contiguous() && view.dtype == gz.dtype && view.shape == gz.shape;
  };
  return gz.ndim() == 2 && fits(gz) && fits(grad.in[0].array.view) && fits(grad.in[1].array.view);
}

std::unique_ptr<Operation> joined(const Elementwise& relu_grad, const Reduce& sum) {
  const ArrayView& gz = relu_grad.out.view;
  auto both = std::make_unique<operations::ReluBiasGrad>();
  both->gy = relu_grad.in[0].array;
  both->y = relu_grad.in[1].array;
  both->gz = relu_grad.out;
  both->gb = sum.out;
  both->gb.view.shape = Shape{gz.shape[1]};
  both->gb.view.strides = contiguous_strides(both->gb.view.shape, itemsize(gz.dtype));
  return both;
}

void join_bias_grad(RecordedList& list, std::size_t i) {
  Elementwise* relu_grad = elementwise_at(list, i, ufunc::relu_grad);
  if (!relu_grad || !is_plain_relu_grad(*relu_grad)) return;
  const Operand& gz = relu_grad->out;
  const StorageUses::Places& users = list.uses().users(gz.storage);
  const StorageUses::Places& writers = list.uses().writers(gz.storage);
  for (auto user = users.upper_bound(i); user != users.end(); ++user) {
    std::size_t sum_index = *user;
    auto* sum = list.at<Reduce>(sum_index);
    if (sum && is_column_sum(*sum, gz.view)) {
      // What runs in between, and relu_grad itself, must not touch what the sum writes.
      const StorageUses::Places& others = list.uses().users(sum->out.storage);
      if (*others.lower_bound(i) != sum_index) return;
      std::unique_ptr<Operation> both = joined(*relu_grad, *sum);
      list.take_out(sum_index);
      return list.replace(i, std::move(both));
    }
    if (writers.count(sum_index) != 0) return;
  }
}

void drop_unread(RecordedList& list, std::size_t i) {
  for (const Access& access : list.uses().of(i)) {
    if (!access.write) continue;
    Storage* storage = access.storage;
    if (!is_own(*storage) || list.is_carried_over(storage) || list.uses().used_after(storage, i)) {
      return;
    }
  }
  list.take_out(i);
}

/// `update`, the operation at `i`, in parts by the order in which the gradients come.
RecordedList::Operations parts_of(const UpdateParameters& update, std::size_t i,
                                  const StorageUses& uses) {
  constexpr int kMostParts = 4;
  constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;  // what is worth a launch
  std::vector<std::pair<std::size_t, operations::UpdateTarget>> targets;
  std::int64_t bytes = 0;
  for (const operations::UpdateTarget& target : update.targets) {
    std::size_t writer = uses.writer_before(target.gradient.storage, i);
    targets.emplace_back(writer < i ? writer : 0, target);
    bytes += target.parameter.view.nbytes();
  }
  std::stable_sort(targets.begin(), targets.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::int64_t share = std::max(bytes / kMostParts, kLeastBytes), part_bytes = 0;
  RecordedList::Operations parts;
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

void split_updates(RecordedList& list, std::size_t i) {
  auto* update = list.at<UpdateParameters>(i);
  if (update) list.split(i, parts_of(*update, i, list.uses()));
}

constexpr Pattern kPatterns[] = {
    // What only fills memory of its own with a number has run already.
    {"fold_constant", fold_constant},
    // A product with a bias, then relu: relu as the product's epilogue.
    {"join_relu", join_relu},
    // relu's gradient, then its sum over the batch (the bias's gradient): one pass.
    {"join_bias_grad", join_bias_grad},
    // What writes only memory that nobody reads, in the next run either: those before make such.
    {"drop_unread", drop_unread},
    // One update of all parameters waits for the last gradient. In parts, each when its gradients
    // are there, most of it is done beside the rest of backward. Last: no pattern sees the parts.
    {"split_updates", split_updates},
};

}  // namespace

std::span<const Pattern> patterns() { return kPatterns; }

}  // namespace rensa
