// What the patterns look for, and what becomes of it.
#include "rensa/graph/patterns.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "rensa/core/update_rule_ids.h"
#include "rensa/functions/operations/convolution/convolution.h"
#include "rensa/functions/operations/relu_bias_grad/relu_bias_grad.h"
#include "rensa/functions/operations/softmax_cross_entropy/scores_and_grad.h"
#include "rensa/functions/operations/update_parameters/product_and_update.h"
#include "rensa/functions/operations/update_parameters/update_parameters.h"
#include "rensa/graph/patterns_internal.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "rensa/operations/matmul/matmul.h"
#include "rensa/operations/pointwise/pointwise.h"
#include "rensa/operations/reduce/reduce.h"
#include "rensa/portable/launch_plan.h"

namespace rensa {

namespace pointwise {
extern const PointwiseRow tanh;  // of pointwise_rows.h, which each new row changes
}  // namespace pointwise

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

operations::Elementwise* elementwise_at(const RecordedList& list, std::size_t i, Ufunc ufunc) {
  auto* operation = list.at<operations::Elementwise>(i);
  return operation && operation->ufunc == ufunc ? operation : nullptr;
}

bool is_flat(const operations::Elementwise& operation) {
  const ArrayView& out = operation.out.view;
  bool flat = out.is_c_contiguous() && out.dtype == operation.compute;
  for (int k = 0; k < operation.num_inputs; ++k) {
    const Operand& in = operation.in[k].array;
    flat = flat && in.present() && in.view.is_c_contiguous() && in.view.dtype == out.dtype &&
           in.view.shape == out.shape;
  }
  return flat;
}

bool same_memory(const Operand& a, const Operand& b) {
  if (!a.present() || !b.present()) return a.present() == b.present();
  return a.storage == b.storage && a.view.data == b.view.data && a.view.dtype == b.view.dtype &&
         a.view.size() == b.view.size();
}

std::size_t maker_for(const RecordedList& list, const Operand& operand, std::size_t reader) {
  if (!is_own(*operand.storage) || !list.uses().is_handed_over(operand.storage)) return kNone;
  const StorageUses::Places& users = list.uses().users(operand.storage);
  return *users.rbegin() == reader ? *users.begin() : kNone;
}

bool is_made_for(const RecordedList& list, const Operand& operand, std::size_t reader) {
  std::size_t maker = maker_for(list, operand, reader);
  return maker != kNone &&
         (list.at<operations::Elementwise>(maker) || list.at<operations::Pointwise>(maker));
}

namespace {

using operations::Elementwise;
using operations::Reduce;
using operations::UpdateParameters;

void fold_constant(RecordedList& list, std::size_t i) {
  Elementwise* fill = elementwise_at(list, i, ufunc::copy);
  if (!fill || fill->in[0].array.present()) return;
  Storage* storage = fill->out.storage;
  if (!is_own(*storage) || list.uses().writers(storage).size() != 1) return;
  list.keep_constant(i, storage);
}

/// A function of one array, of memory of the step's own, where one operation before it alone
/// touches that memory: the place of that operation.
struct Activated {
  Operand in, out;
  Dtype compute;
  std::size_t of;
};
/// Nothing where what the function at `i` reads is anything else, or where what it writes is used
/// in between.
std::optional<Activated> activation_of_one(const RecordedList& list, std::size_t i,
                                           const Operand& in, const Operand& out, Dtype compute) {
  if (!in.present() || !is_own(*in.storage)) return std::nullopt;
  const StorageUses::Places& users = list.uses().users(in.storage);
  if (users.size() != 2 || *users.rbegin() != i) return std::nullopt;
  if (list.uses().used_between(out.storage, *users.begin(), i)) return std::nullopt;
  return Activated{in, out, compute, *users.begin()};
}
std::optional<Activated> relu_of_one(const RecordedList& list, std::size_t i) {
  Elementwise* relu = elementwise_at(list, i, ufunc::relu);
  if (!relu) return std::nullopt;
  return activation_of_one(list, i, relu->in[0].array, relu->out, relu->compute);
}
std::optional<Activated> tanh_of_one(const RecordedList& list, std::size_t i) {
  auto* tanh = list.at<operations::Pointwise>(i);
  if (!tanh || tanh->row != &pointwise::tanh) return std::nullopt;
  return activation_of_one(list, i, tanh->in[0].array, tanh->out[0], tanh->compute);
}

/// Has the product before the function at `i` do that too, as `join(product)` says, where
/// `fits(product)`.
template <class Fits, class Join>
void join_end(RecordedList& list, std::size_t i, const std::optional<Activated>& found, Fits&& fits,
              Join&& join) {
  auto* product = found ? list.at<operations::Matmul>(found->of) : nullptr;
  if (!product || product->activation != operations::Activation::none || product->gate.present() ||
      !fits(*product)) {
    return;
  }
  if (!same_view(product->c.view, found->in.view) || found->compute != product->c.view.dtype ||
      found->out.view.dtype != product->c.view.dtype || !found->out.view.is_c_contiguous()) {
    return;
  }
  product->c = found->out;
  join(*product);
  list.has_changed(found->of);
  list.take_out(i);
}
template <class Fits>
void join_activation(RecordedList& list, std::size_t i, const std::optional<Activated>& found,
                     operations::Activation activation, Fits&& fits) {
  join_end(list, i, found, fits,
           [&](operations::Matmul& product) { product.activation = activation; });
}

void join_relu(RecordedList& list, std::size_t i) {
  join_activation(list, i, relu_of_one(list, i), operations::Activation::relu,
                  [](const operations::Matmul& product) { return product.bias.present(); });
}

void join_tanh(RecordedList& list, std::size_t i) {
  join_activation(list, i, tanh_of_one(list, i), operations::Activation::tanh,
                  [](const operations::Matmul& product) {
                    return product.c.view.dtype == float32 && product.takes_ends();
                  });
}

void join_gate(RecordedList& list, std::size_t i) {
  Elementwise* grad = elementwise_at(list, i, ufunc::relu_grad);
  if (!grad || !is_flat(*grad)) return;
  const Operand gate = grad->in[1].array;
  std::optional<Activated> found =
      activation_of_one(list, i, grad->in[0].array, grad->out, grad->compute);
  if (!found || found->out.storage == gate.storage) return;
  // The product reads it before.
  if (list.uses().written_from(gate.storage, found->of, i)) return;
  join_end(
      list, i, found, [](const operations::Matmul& product) { return product.takes_ends(); },
      [&](operations::Matmul& product) { product.gate = gate; });
}

void join_convolution_relu(RecordedList& list, std::size_t i) {
  std::optional<Activated> found = relu_of_one(list, i);
  auto* convolution = found ? list.at<operations::Convolution>(found->of) : nullptr;
  if (!convolution || convolution->relu ||
      convolution->direction != operations::ConvolutionDirection::forward) {
    return;
  }
  const ArrayView &y = convolution->y.view, &in = found->in.view, &out = found->out.view;
  // Both go through the whole memory from its begin, though relu may have its axes in another
  // order.
  bool fits = in.data == y.data && in.size() == y.size() && in.is_c_contiguous() &&
              out.is_c_contiguous() && in.dtype == y.dtype && out.dtype == y.dtype &&
              found->compute == y.dtype && found->out.storage != convolution->x.storage &&
              cuda::is_aligned(out.data, 16);
  if (!fits || !convolution->joins_relu()) return;
  convolution->y.view.data = out.data;
  convolution->y.storage = found->out.storage;
  convolution->relu = true;
  list.has_changed(found->of);
  list.take_out(i);
}

/// The channels of an array that fills its memory with them last, of which `axes` has all axes but
/// theirs; 0 where it is another one.
std::int64_t channels_beside(const ArrayView& view, unsigned axes) {
  std::int64_t channels = 0, stride = itemsize(view.dtype);
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (axes >> axis & 1) continue;
    if (channels != 0 || (view.shape[axis] > 1 && view.strides[axis] != stride)) return 0;
    channels = view.shape[axis];
  }
  stride *= channels;
  for (int axis = view.ndim(); axis-- > 0;) {
    if (!(axes >> axis & 1) || view.shape[axis] == 1) continue;
    if (view.strides[axis] != stride) return 0;
    stride *= view.shape[axis];
  }
  return channels;
}

/// The channels of gz where the operation sums it over all of their elements; else 0.
std::int64_t channels_of_sum(const Reduce* sum, const Operand& gz) {
  if (!sum || sum->reduction != reduction::sum || !same_memory(sum->in, gz) ||
      sum->compute != gz.view.dtype || sum->out.view.dtype != gz.view.dtype ||
      !sum->out.view.is_c_contiguous()) {
    return 0;
  }
  return channels_beside(sum->in.view, sum->axes);
}

std::unique_ptr<Operation> joined(const Elementwise& relu_grad, const Reduce& sum,
                                  std::int64_t channels) {
  auto both = std::make_unique<operations::ReluBiasGrad>();
  both->gy = relu_grad.in[0].array;
  both->y = relu_grad.in[1].array;
  both->gz = relu_grad.out;
  both->gb = sum.out;
  both->gb.view.shape = Shape{channels};
  for (Operand* operand : {&both->gy, &both->y, &both->gz}) {
    operand->view.shape = Shape{operand->view.size() / channels, channels};
  }
  for (Operand* operand : {&both->gy, &both->y, &both->gz, &both->gb}) {
    ArrayView& view = operand->view;
    view.strides = contiguous_strides(view.shape, itemsize(view.dtype));
  }
  return both;
}

void join_bias_grad(RecordedList& list, std::size_t i) {
  Elementwise* relu_grad = elementwise_at(list, i, ufunc::relu_grad);
  if (!relu_grad || !is_flat(*relu_grad)) return;
  if (is_made_for(list, relu_grad->in[0].array, i)) return;  // a GPU's chain takes a pass less
  const Operand& gz = relu_grad->out;
  const StorageUses::Places& users = list.uses().users(gz.storage);
  const StorageUses::Places& writers = list.uses().writers(gz.storage);
  for (auto user = users.upper_bound(i); user != users.end(); ++user) {
    std::size_t sum_index = *user;
    auto* sum = list.at<Reduce>(sum_index);
    if (std::int64_t channels = channels_of_sum(sum, gz)) {
      // What runs in between, and relu_grad itself, must not touch what the sum writes.
      const StorageUses::Places& others = list.uses().users(sum->out.storage);
      if (*others.lower_bound(i) != sum_index) return;
      std::unique_ptr<Operation> both = joined(*relu_grad, *sum, channels);
      list.take_out(sum_index);
      return list.replace(i, std::move(both));
    }
    if (writers.count(sum_index) != 0) return;
  }
}

void join_scores_grad(RecordedList& list, std::size_t i) {
  auto* grad = list.at<operations::SoftmaxCrossEntropyGrad>(i);
  if (!grad || grad->shift.present() || grad->x.view.dtype != float32) return;
  const StorageUses& uses = list.uses();
  std::size_t made = uses.writer_before(grad->x.storage, i);
  auto* product = made < i ? list.at<operations::Matmul>(made) : nullptr;
  if (!product || !same_view(product->c.view, grad->x.view) || !product->has_rows()) return;
  // What the gradient reads is there before the product, and nobody uses what it writes.
  if (uses.used_from(grad->gx.storage, made, i) || uses.written_from(grad->t.storage, made, i) ||
      uses.written_from(grad->gy.storage, made, i)) {
    return;
  }
  auto both = std::make_unique<operations::ScoresAndGrad>(*product, *grad);
  list.take_out(i);
  list.replace(made, std::move(both));
}

void join_scores_back(RecordedList& list, std::size_t i) {
  auto* back = list.at<operations::Matmul>(i);
  if (!back || back->c.view.ndim() != 2 || back->bias.present() ||
      back->activation != operations::Activation::none || !back->c.view.is_c_contiguous() ||
      !back->adds_in_order()) {
    return;
  }
  const StorageUses& uses = list.uses();
  std::size_t made = uses.writer_before(back->a.storage, i);
  auto* scores = made < i ? list.at<operations::ScoresAndGrad>(made) : nullptr;
  if (!scores || scores->has_back() || !same_view(back->a.view, scores->grad.gx.view) ||
      !same_view(back->b.view, scores->transposed_b().view)) {
    return;
  }
  const Operand& x = scores->product.a;
  if (back->gate.present() && !same_view(back->gate.view, x.view)) return;
  if (uses.used_from(back->c.storage, made, i) || uses.written_from(x.storage, made, i) ||
      uses.written_from(back->b.storage, made, i)) {
    return;
  }
  auto all = std::make_unique<operations::ScoresAndGrad>(*scores);
  all->back = *back;
  list.take_out(i);
  list.replace(made, std::move(all));
}

/// Whether the operation at `i` has to follow, directly or through others, all before it that touch
/// the storage.
bool follows_all(const StorageUses& uses, std::size_t i, const Storage* storage) {
  const StorageUses::Places& users = uses.users(storage);
  std::vector<std::size_t> followed{i};
  auto next = std::make_reverse_iterator(users.lower_bound(i));
  for (std::size_t j = i; j-- > 0 && next != users.rend();) {
    bool follows = std::any_of(followed.begin(), followed.end(),
                               [&](std::size_t k) { return uses.conflict(j, k); });
    if (follows) followed.push_back(j);
    if (*next != j) continue;
    if (!follows) return false;
    ++next;
  }
  return true;
}

/// The place of the product that gives the gradient of `target`, of the update at `i`, and may do
/// its update; kNone where there is none.
std::size_t product_that_updates(const RecordedList& list, std::size_t i,
                                 const operations::UpdateTarget& target) {
  const StorageUses& uses = list.uses();
  const Storage* parameter = target.parameter.storage;
  if (target.parameter.view.dtype != float32 || target.narrow.present() ||
      target.numbers.present() || !cuda::is_aligned(target.parameter.view.data, 16)) {
    return kNone;
  }
  std::size_t made = uses.writer_before(target.gradient.storage, i);
  auto* product = made < i ? list.at<operations::Matmul>(made) : nullptr;
  if (!product || !product->c.view.is_c_contiguous() || !same_memory(product->c, target.gradient) ||
      uses.used_from(parameter, made, i) || !product->takes_update()) {
    return kNone;
  }
  // Else the product would wait for readers that it need not wait for alone.
  return follows_all(uses, made, parameter) ? made : kNone;
}

void join_update(RecordedList& list, std::size_t i) {
  auto* update = list.at<UpdateParameters>(i);
  if (!update || update->rule != UpdateRuleId::sgd || update->enabled.present() ||
      update->set_size != 1) {
    return;
  }
  UpdateParameters rest(*update);
  rest.targets.clear();
  for (const operations::UpdateTarget& target : update->targets) {
    std::size_t made = product_that_updates(list, i, target);
    if (made == kNone) {
      rest.targets.push_back(target);
      continue;
    }
    list.replace(made, std::make_unique<operations::ProductAndUpdate>(
                           *list.at<operations::Matmul>(made), *update, target));
  }
  if (rest.targets.size() == update->targets.size()) return;
  if (rest.targets.empty()) list.take_out(i);
  else list.replace(i, rest.clone());
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
    // A product by a kernel of ours, then tanh: the same.
    {"join_tanh", join_tanh},
    // The same with relu's gradient, of what a product gives.
    {"join_gate", join_gate},
    // relu of a convolution, where its plan has such an epilogue.
    {"join_convolution_relu", join_convolution_relu},
    // What is normalized, then relu, or the addition of a residual and relu: one pass.
    {"join_normalize_relu", join_normalize_relu},
    // relu's gradient, of what a pass of that pattern gives: part of the normalization's gradient.
    {"join_normalize_relu_grad", join_normalize_relu_grad},
    // relu's gradient that others read too, and an addition before it: made in the first pass of
    // the normalization's gradient.
    {"join_relu_grad_sums", join_relu_grad_sums},
    // The addition of a residual, then layer or RMS normalization of the sum: one pass.
    {"join_residual_rows", join_residual_rows},
    // The gradient of such a normalization, then its addition to the residual's: one pass.
    {"join_rows_grad_sum", join_rows_grad_sum},
    // relu's gradient, then its sums over all but the channels, which lie last (the bias's
    // gradient, of a product or a convolution): one pass.
    {"join_bias_grad", join_bias_grad},
    // What writes only memory that nobody reads, in the next run either: those before make such.
    {"drop_unread", drop_unread},
    // A product by a kernel that has whole rows, then softmax cross entropy's gradient of these.
    {"join_scores_grad", join_scores_grad},
    // The same, then the gradient of the product's left operand, of many rows.
    {"join_scores_back", join_scores_back},
    // A product by a kernel of ours, then SGD's update with the gradient that it gives, where the
    // product comes behind all others that touch the parameter.
    {"join_update", join_update},
    // One update of all parameters waits for the last gradient. In parts, each when its gradients
    // are there, most of it is done beside the rest of backward. Last: no pattern sees the parts.
    {"split_updates", split_updates},
};

}  // namespace

std::span<const Pattern> patterns() { return kPatterns; }

}  // namespace rensa
