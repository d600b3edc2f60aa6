// The patterns around normalizations. Each pass over what a network's layers give takes a share of
// a step's time, and between convolutions there is little else: what is counted here are passes
// over an array of that size, read or written.
#include <algorithm>

#include "rensa/functions/operations/normalization/normalization.h"
#include "rensa/graph/patterns_internal.h"

namespace rensa {

namespace {

using operations::Elementwise;
using operations::Normalize;

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// Whether both are the same elements in the order of memory, which both fill.
bool same_memory(const Operand& a, const Operand& b) {
  return a.storage == b.storage && a.view.data == b.view.data && a.view.dtype == b.view.dtype &&
         a.view.size() == b.view.size();
}

/// The operation that makes `operand`, which nobody but the operation at `reader` reads; kNone
/// where there is none.
std::size_t maker_for(const RecordedList& list, const Operand& operand, std::size_t reader) {
  if (!is_own(*operand.storage)) return kNone;
  const StorageUses::Places& users = list.uses().users(operand.storage);
  bool two = users.size() == 2 && *users.rbegin() == reader;
  return two && list.uses().writers(operand.storage) == StorageUses::Places{*users.begin()}
             ? *users.begin()
             : kNone;
}

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
    Elementwise* add = elementwise_at(list, made, ufunc::add);
    if (!add || !is_flat(*add) || !same_memory(add->out, middle)) return;
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
  bool free =
      uses.users(out.storage).count(first) == 0 && !uses.used_between(out.storage, first, i);
  if (!free || !may_wait(list, first, i)) return;
  auto joined = std::make_unique<Normalize>(*list.at<Normalize>(first));
  if (residual.present()) joined->residual = folded_as(joined->x, residual);
  joined->out = folded_as(joined->out, out);
  joined->relu = true;
  list.take_out(first);
  if (made != first) list.take_out(made);
  list.replace(i, std::move(joined));
}

}  // namespace rensa
