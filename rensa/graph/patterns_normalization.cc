// The patterns around normalizations. Each pass over what a network's layers give takes a share of
// a step's time, and between convolutions there is little else: what is counted here are passes
// over an array of that size, read or written.
#include <algorithm>

#include "rensa/functions/operations/normalization/normalization.h"
#include "rensa/functions/operations/row_normalization/row_normalization.h"
#include "rensa/graph/patterns_internal.h"

namespace rensa {

namespace {

using operations::Elementwise;
using operations::NormalizationSums;
using operations::Normalize;
using operations::RowNormalization;
using operations::RowNormalizationGrad;

/// The operation at `i` where it is a Normalize that gives `out` and nothing else yet.
Normalize* plain_normalize_at(const RecordedList& list, std::size_t i, const Operand& out) {
  auto* normalize = i == kNone ? nullptr : list.at<Normalize>(i);
  bool plain = normalize && !normalize->gy.present() && !normalize->relu &&
               !normalize->residual.present() && same_memory(normalize->out, out);
  return plain ? normalize : nullptr;
}

/// Whether what the operation at `i` reads is still there for an operation at `last`.
bool may_wait(const RecordedList& list, std::size_t i, std::size_t last) {
  return std::ranges::none_of(list.uses().of(i), [&](const Access& access) {
    return !access.write && list.uses().written_between(access.storage, i, last);
  });
}

/// `operand` as the normalization sees it: with the axes of its x.
Operand folded_as(const Operand& x, const Operand& operand) {
  Operand folded = operand;
  folded.view.shape = x.view.shape;
  folded.view.strides = x.view.strides;
  return folded;
}

/// Whether the operation at `i`, which has gz for gy, is of the gradient of `forward`.
bool is_gradient_of(const RecordedList& list, std::size_t i, const Normalize& forward,
                    const Operand& gz) {
  auto of_forward = [&](const auto& op) {
    return same_memory(op.gy, gz) && same_view(op.x.view, forward.x.view) &&
           same_memory(op.mean, forward.mean) && same_memory(op.inv_std, forward.inv_std);
  };
  if (auto* sums = list.at<NormalizationSums>(i)) {
    return of_forward(*sums) && sums->axes == 0b101u && !sums->by_row && sums->group == 1 &&
           !sums->relu && !sums->y.present();
  }
  auto* gradient = list.at<Normalize>(i);
  return gradient && gradient->gy.present() && of_forward(*gradient) &&
         same_memory(gradient->gamma, forward.gamma) && gradient->group == 0 &&
         !gradient->of_variance && !gradient->relu;
}

/// What made relu's output y, where it can be computed again from what it read.
const Normalize* maker_of_relu(const RecordedList& list, const Operand& y, std::size_t maker) {
  auto* forward = list.at<Normalize>(maker);
  bool plain = forward && forward->relu && !forward->gy.present() && !forward->residual.present() &&
               !forward->of_variance && forward->group == 0 && same_memory(forward->out, y);
  return plain ? forward : nullptr;
}

/// gy, which is not gz yet: relu's gradient is taken on the way.
void take_relu_grad(RecordedList& list, std::size_t i, const Normalize& forward,
                    const Operand& gy) {
  auto change = [&](auto& op) {
    op.gy = folded_as(op.x, gy);
    op.gamma = forward.gamma;
    op.beta = forward.beta;
    op.relu = true;
  };
  auto* sums = list.at<NormalizationSums>(i);
  sums ? change(*sums) : change(*list.at<Normalize>(i));
  list.has_changed(i);
}

/// Whether a GPU has x's channels side by side: then the sums can write on their way.
bool has_channels_last(const ArrayView& x) {
  return x.ndim() == 3 && x.shape[1] > 1 && x.strides[1] == itemsize(x.dtype);
}

/// The elementwise addition at `i` whose sum is `sum`; null: it is none, or not that one.
Elementwise* addition_at(const RecordedList& list, std::size_t i, const Operand& sum) {
  Elementwise* add = elementwise_at(list, i, ufunc::add);
  return add && is_flat(*add) && same_memory(add->out, sum) ? add : nullptr;
}

}  // namespace

void join_normalize_relu(RecordedList& list, std::size_t i) {
  Elementwise* relu = elementwise_at(list, i, ufunc::relu);
  if (!relu || !is_flat(*relu)) return;
  const Operand middle = relu->in[0].array, out = relu->out;
  std::size_t made = maker_for(list, middle, i), first = kNone;
  Operand residual;
  if (made == kNone) return;
  if (plain_normalize_at(list, made, middle)) {
    first = made;
  } else {
    Elementwise* add = addition_at(list, made, middle);
    if (!add) return;
    for (int k = 0; k < 2 && first == kNone; ++k) {
      const Operand& sum = add->in[k].array;
      std::size_t maker = maker_for(list, sum, made);
      if (!plain_normalize_at(list, maker, sum)) continue;
      first = maker, residual = add->in[1 - k].array;
      if (residual.storage == sum.storage) return;
    }
    if (first == kNone || !may_wait(list, made, i)) return;
  }
  // All of it is done where relu was, so that nobody sees memory sooner or later than he did.
  const StorageUses& uses = list.uses();
  if (uses.used_from(out.storage, first, i) || !may_wait(list, first, i)) return;
  auto joined = std::make_unique<Normalize>(*list.at<Normalize>(first));
  if (residual.present()) joined->residual = folded_as(joined->x, residual);
  joined->out = folded_as(joined->out, out);
  joined->relu = true;
  list.take_out(first);
  if (made != first) list.take_out(made);
  list.replace(i, std::move(joined));
}

// relu's gradient reads gy and y and writes gz, the sums read x and gz, and the gradient reads both
// and writes: 8 passes. y is positive where the normalization gives something positive, which costs
// no pass, as x is read anyway: 5 are left. (Were y read in its place, 7.)
void join_normalize_relu_grad(RecordedList& list, std::size_t i) {
  Elementwise* grad = elementwise_at(list, i, ufunc::relu_grad);
  if (!grad || !is_flat(*grad)) return;
  const StorageUses& uses = list.uses();
  const Operand gy = grad->in[0].array, y = grad->in[1].array, gz = grad->out;
  std::size_t made = uses.writer_before(y.storage, i);
  if (made == i || !is_own(*gz.storage)) return;
  const Normalize* forward = maker_of_relu(list, y, made);
  const StorageUses::Places places = uses.users(gz.storage);
  if (!forward || places.size() < 2 || uses.writers(gz.storage) != StorageUses::Places{i}) return;
  for (std::size_t user : places) {
    if (user == i) continue;
    bool joins = user > i && is_gradient_of(list, user, *forward, gz) &&
                 may_wait(list, made, user) && may_wait(list, i, user);
    if (!joins) return;
  }
  for (std::size_t user : places) {
    if (user != i) take_relu_grad(list, user, *forward, gy);
  }
  list.take_out(i);
}

// As above, but gz is also what the residual gets. The sums write it: 7 passes of 8. Mostly gy is
// a sum, of the gradients of what a block's output went to. A GPU's chain of that and relu's
// gradient would have 4 passes, which with 5 for the others are 9; taken in as well, 8 are left.
// What comes out of a longer chain stays there.
void join_relu_grad_sums(RecordedList& list, std::size_t i) {
  Elementwise* grad = elementwise_at(list, i, ufunc::relu_grad);
  if (!grad || !is_flat(*grad)) return;
  const StorageUses& uses = list.uses();
  const Operand given = grad->in[0].array, y = grad->in[1].array, gz = grad->out;
  const StorageUses::Places& places = uses.users(gz.storage);
  if (*places.begin() != i || *places.rbegin() == i) return;
  std::size_t first = *places.upper_bound(i), added = uses.writer_before(given.storage, i);
  auto* sums = list.at<NormalizationSums>(first);
  if (!sums || sums->y.present() || sums->relu || !same_memory(sums->gy, gz) ||
      !has_channels_last(sums->x.view) || !may_wait(list, i, first)) {
    return;
  }
  Operand gy = given, addend;
  if (is_made_for(list, given, i)) {
    Elementwise* add = addition_at(list, added, given);
    if (!add || !may_wait(list, added, first) || is_made_for(list, add->in[0].array, added) ||
        is_made_for(list, add->in[1].array, added)) {
      return;
    }
    gy = add->in[0].array, addend = add->in[1].array;
    list.take_out(added);
  }
  sums->gy = folded_as(sums->x, gy);
  if (addend.present()) sums->addend = folded_as(sums->x, addend);
  sums->y = folded_as(sums->x, y);
  sums->gz = folded_as(sums->x, gz);
  list.take_out(i);
  list.has_changed(first);
}

// The addition reads two and writes the sum, the normalization reads that and writes: 5 passes, of
// which reading the sum is one. A GPU's chain that the addition ends takes more in, and stays.
void join_residual_rows(RecordedList& list, std::size_t i) {
  auto* rows = list.at<RowNormalization>(i);
  if (!rows || rows->addend.present()) return;
  const StorageUses& uses = list.uses();
  std::size_t added = uses.writer_before(rows->x.storage, i);
  Elementwise* add = added == i ? nullptr : addition_at(list, added, rows->x);
  if (!add || uses.used_between(rows->x.storage, added, i) || !may_wait(list, added, i)) return;
  for (int k = 0; k < 2; ++k) {
    const Operand& in = add->in[k].array;
    if (in.storage == add->out.storage || is_made_for(list, in, added)) return;
    for (const Operand* out : {&rows->y, &rows->mean, &rows->inv_std}) {
      if (out->present() && out->storage == in.storage) return;
    }
  }
  rows->sum = rows->x;
  rows->addend = folded_as(rows->sum, add->in[1].array);
  rows->x = folded_as(rows->sum, add->in[0].array);
  list.take_out(added);
  list.has_changed(i);
}

// Of the 6 passes of the gradient and of its addition to the residual's 4 are left.
void join_rows_grad_sum(RecordedList& list, std::size_t i) {
  Elementwise* add = elementwise_at(list, i, ufunc::add);
  if (!add || !is_flat(*add)) return;
  const StorageUses& uses = list.uses();
  for (int k = 0; k < 2; ++k) {
    const Operand gx = add->in[k].array, other = add->in[1 - k].array;
    std::size_t made = maker_for(list, gx, i);
    auto* grad = made == kNone ? nullptr : list.at<RowNormalizationGrad>(made);
    if (!grad || grad->addend.present() || !same_memory(grad->gx, gx)) continue;
    // Done where the addition was.
    bool apart = other.storage != gx.storage && other.storage != add->out.storage &&
                 gx.storage != add->out.storage;
    bool free = !uses.used_from(add->out.storage, made, i) && may_wait(list, made, i);
    if (!apart || !free || is_made_for(list, other, i)) continue;
    auto joined = std::make_unique<RowNormalizationGrad>(*grad);
    joined->addend = folded_as(grad->x, other);
    joined->gx = folded_as(grad->x, add->out);
    list.take_out(made);
    return list.replace(i, std::move(joined));
  }
}

}  // namespace rensa
