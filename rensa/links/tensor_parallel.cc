// Layers cut over ranks: their parts of weights, and what they exchange.
#include "rensa/links/tensor_parallel.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "rensa/array/manipulation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/parameter_parts.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/communication_functions.h"
#include "rensa/functions/connection.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/operations/attention/attention_dropout.h"
#include "rensa/links/attention_parts.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

namespace {

/// Where parts of a parameter lie in the whole one: that is groups one after the other, in each of
/// which every rank has as many elements, by rank.
struct Place {
  Shape whole;
  std::int64_t groups;

  /// The part, of that shape; a part as large as the whole is the whole on all ranks.
  Array part(const Array& of, int rank, int size, const Shape& shape) const {
    if (shape == whole || of.size() == 0) return of.reshape(shape);
    Array apart = of.reshape({groups, size, shape.total() / groups});
    return apart[{Slice(), rank}].reshape(shape);
  }
};

/// Makes a rank's part of what `initial` makes of the whole: all draw it, so that generators that
/// are alike stay so, and rank 0's counts.
struct PartOfInitial {
  Communicator communicator;
  Initializer initial;
  Place place;
  std::optional<Dtype> dtype = initial.dtype();

  void operator()(const Array& out) const {
    Array whole = xp::empty(place.whole, out.dtype(), out.device());
    initial(whole);
    std::vector<Array> parts;
    for (int rank = 0; communicator.rank() == 0 && rank < communicator.size(); ++rank) {
      parts.push_back(place.part(whole, rank, communicator.size(), out.shape()));
    }
    out.assign(communicator.scatter(parts, 0).to(out.device()));
  }
};

/// Notes what optimizers and errors ask a new parameter.
void describe(const Parameter& made, const char* name, const Communicator& communicator,
              const Place& place, const Shape& shape) {
  made.body()->name = name;
  if (shape != place.whole) autograd::set_ranks_of_parts(made, communicator);
}

Parameter drawn(const char* name, const PartOfInitial& initial, const Shape& shape) {
  Parameter made(initial, shape);
  describe(made, name, initial.communicator, initial.place, shape);
  return made;
}

Parameter taken(const char* name, const Communicator& communicator, const Parameter& whole,
                const Place& place, const Shape& shape) {
  Array part = place.part(whole.array(), communicator.rank(), communicator.size(), shape);
  Parameter made{Initializer(part.copy())};
  made.to(part.device());
  made.set_update_enabled(whole.update_enabled());
  describe(made, name, communicator, place, shape);
  return made;
}

Initializer weights(const Initializer& given) {
  return given ? given : Initializer(initializers::LeCunNormal());
}
Initializer biases(const Initializer& given) { return given ? given : Initializer(0); }

/// W's shape of a layer that has one.
Shape shape_of(const char* link, const Linear& whole) {
  if (whole.W.is_initialized()) return whole.W.shape();
  throw ValueError(fmt::format(
      "{}: the whole layer waits for its input size; call it, or give it one, before", link));
}

/// What each rank has of an extent.
std::int64_t share(const char* link, const char* what, std::int64_t extent,
                   const Communicator& communicator, std::int64_t groups = 1) {
  std::int64_t divisor = groups * communicator.size();
  if (groups > 0 && extent >= 0 && extent % divisor == 0) return extent / communicator.size();
  std::string in = groups == 1 ? "" : fmt::format(" in {} groups", groups);
  throw ValueError(fmt::format("{}: {} {}{} cannot be cut in equal parts for {} ranks", link,
                               extent, what, in, communicator.size()));
}

std::int64_t rows(std::int64_t out, const ColumnParallelLinearOptions& options,
                  const Communicator& communicator) {
  if (options.gather_output && options.groups != 1) {
    throw ValueError(fmt::format(
        "ColumnParallelLinear: outputs in {} groups, gathered, would lie in another order",
        options.groups));
  }
  return share("ColumnParallelLinear", "outputs", out, communicator, options.groups);
}

}  // namespace

// --- ColumnParallelLinear ---

ColumnParallelLinear::ColumnParallelLinear(const Communicator& communicator, std::int64_t in,
                                           std::int64_t out,
                                           const ColumnParallelLinearOptions& options)
    : gather_output(options.gather_output), communicator_(communicator) {
  std::int64_t own = rows(out, options, communicator), groups = options.groups;
  if (in < 0) throw ValueError(fmt::format("ColumnParallelLinear: in size {}", in));
  // In the order in which Linear draws.
  if (!options.nobias) {
    b = drawn("b", {communicator, biases(options.initial_bias), {{out}, groups}}, {own});
  }
  W = drawn("W", {communicator, weights(options.initialW), {{out, in}, groups}}, {own, in});
}

ColumnParallelLinear::ColumnParallelLinear(const Communicator& communicator, const Linear& whole,
                                           const ColumnParallelLinearOptions& options)
    : gather_output(options.gather_output), communicator_(communicator) {
  Shape shape = shape_of("ColumnParallelLinear", whole);
  std::int64_t own = rows(shape[0], options, communicator), groups = options.groups;
  if (whole.b.defined()) b = taken("b", communicator, whole.b, {{shape[0]}, groups}, {own});
  W = taken("W", communicator, whole.W, {shape, groups}, {own, shape[1]});
}

Variable ColumnParallelLinear::operator()(const Variable& x, int n_batch_axes) const {
  Variable y = F::linear(F::to_parts(communicator_, x), W, b, n_batch_axes);
  return gather_output ? F::join_parts(communicator_, y, -1) : y;
}

// --- RowParallelLinear ---

RowParallelLinear::RowParallelLinear(const Communicator& communicator, std::int64_t in,
                                     std::int64_t out, const RowParallelLinearOptions& options)
    : scatter_input(options.scatter_input), communicator_(communicator) {
  std::int64_t own = share("RowParallelLinear", "inputs", in, communicator);
  if (out < 0) throw ValueError(fmt::format("RowParallelLinear: out size {}", out));
  if (!options.nobias) {
    b = drawn("b", {communicator, biases(options.initial_bias), {{out}, 1}}, {out});
  }
  W = drawn("W", {communicator, weights(options.initialW), {{out, in}, out}}, {out, own});
}

RowParallelLinear::RowParallelLinear(const Communicator& communicator, const Linear& whole,
                                     const RowParallelLinearOptions& options)
    : scatter_input(options.scatter_input), communicator_(communicator) {
  Shape shape = shape_of("RowParallelLinear", whole);
  std::int64_t out = shape[0], own = share("RowParallelLinear", "inputs", shape[1], communicator);
  if (whole.b.defined()) b = taken("b", communicator, whole.b, {{out}, 1}, {out});
  W = taken("W", communicator, whole.W, {shape, out}, {out, own});
}

Variable RowParallelLinear::operator()(const Variable& x, int n_batch_axes) const {
  Variable part = x;
  if (scatter_input) {
    Shape flat;
    for (int i = 0; i < n_batch_axes; ++i) flat.push_back(x.shape(i));
    flat.push_back(-1);
    part = F::part_of(communicator_, F::reshape(x, flat), -1);
  }
  Variable y = F::sum_of_parts(communicator_, F::linear(part, W, {}, n_batch_axes));
  return b.defined() ? y + F::cast(b, y.dtype()) : y;
}

// --- ParallelMultiHeadAttention ---

namespace {

const MultiHeadAttentionOptions& checked(std::int64_t units, int heads,
                                         const Communicator& communicator,
                                         const MultiHeadAttentionOptions& options = {}) {
  if (units <= 0 || heads <= 0 || units % heads != 0) {
    throw ValueError(fmt::format("ParallelMultiHeadAttention: {} heads of {} units", heads, units));
  }
  share("ParallelMultiHeadAttention", "heads", heads, communicator);
  return options;
}

Initializer projection_weights(const MultiHeadAttentionOptions& options) {
  return options.initialW ? options.initialW : Initializer(initializers::GlorotUniform());
}

/// Whether an option has an axis of heads: of all of them.
bool speaks_of_heads(const char* what, const Array& a, int axis, std::int64_t heads) {
  if (a.ndim() < -axis || a.shape(axis) == 1) return false;
  if (a.shape(axis) == heads) return true;
  throw ShapeError(fmt::format("ParallelMultiHeadAttention: the {} is {}, and there are {} heads",
                               what, a.view().describe(), heads));
}

/// Random numbers that attention takes where it drops weights.
std::int64_t numbers_of(const Variables& projected, int heads) {
  const Variable &query = projected[0], &key = projected[1];
  return query.shape(0) * heads * AttentionDropoutWords::counters(query.shape(1)) *
         AttentionDropoutWords::counters(key.shape(1));
}

}  // namespace

ParallelMultiHeadAttention::ParallelMultiHeadAttention(const Communicator& communicator,
                                                       std::int64_t units, int heads,
                                                       const MultiHeadAttentionOptions& options)
    : in_proj(communicator, units, 3 * units,
              {.nobias = checked(units, heads, communicator, options).nobias,
               .groups = 3,
               .initialW = projection_weights(options),
               .initial_bias = options.initial_bias}),
      out_proj(communicator, units, units,
               {.nobias = options.nobias,
                .initialW = projection_weights(options),
                .initial_bias = options.initial_bias}),
      dropout(options.dropout),
      communicator_(communicator),
      units_(units),
      heads_(heads / communicator.size()) {}

ParallelMultiHeadAttention::ParallelMultiHeadAttention(const Communicator& communicator,
                                                       const MultiHeadAttention& whole)
    : in_proj(communicator, whole.in_proj, {.groups = 3}),
      out_proj(communicator, whole.out_proj),
      dropout(whole.dropout),
      communicator_(communicator),
      units_(whole.units()),
      heads_(whole.heads() / communicator.size()) {
  checked(units_, whole.heads(), communicator);
}

Variable ParallelMultiHeadAttention::operator()(const Variable& x,
                                                const F::AttentionOptions& given) const {
  check_attention_input("x", x, units_);
  return attend(F::split_axis(in_proj(x, 2), 3, 2), given);
}

Variable ParallelMultiHeadAttention::operator()(const Variable& query, const Variable& key,
                                                const Variable& value,
                                                const F::AttentionOptions& given) const {
  Variables inputs;
  for (const Variable& x : {query, key, value}) inputs.push_back(F::to_parts(communicator_, x));
  return attend(attention_products(inputs, in_proj.W, in_proj.b), given);
}

F::AttentionOptions ParallelMultiHeadAttention::own(const F::AttentionOptions& given) const {
  int rank = communicator_.rank(), size = communicator_.size();
  std::int64_t heads = std::int64_t{heads_} * size;
  auto part = [&](const Array& a, int axis) {
    return xp::split(a, size, axis)[static_cast<std::size_t>(rank)];
  };
  F::AttentionOptions options = given;
  options.dropout_ratio = dropout;
  if (given.mask && speaks_of_heads("mask", *given.mask, -3, heads)) {
    options.mask = part(*given.mask, -3);
  }
  if (given.alibi_slopes && speaks_of_heads("list of slopes", *given.alibi_slopes, -1, heads)) {
    options.alibi_slopes = part(*given.alibi_slopes, -1);
  }
  if (given.bias.defined()) {
    options.bias = speaks_of_heads("bias", given.bias.array(), -3, heads)
                       ? F::part_of(communicator_, given.bias, -3)
                       : F::to_parts(communicator_, given.bias);
  }
  return options;
}

Variable ParallelMultiHeadAttention::attend(const Variables& projected,
                                            const F::AttentionOptions& given) const {
  // Of the numbers that all heads take each rank uses those of its place.
  std::int64_t numbers = config().train && dropout > 0 ? numbers_of(projected, heads_) : 0;
  auto pass = [&](int ranks) {
    if (numbers > 0 && ranks > 0) xp::random::take(projected[0].device(), numbers * ranks);
  };
  pass(communicator_.rank());
  Variable y = links::attend(projected, heads_, own(given));
  pass(communicator_.size() - 1 - communicator_.rank());
  return out_proj(y, 2);
}

}  // namespace rensa::links

namespace rensa {
template class Chain<links::ColumnParallelLinear>;
template class Chain<links::RowParallelLinear>;
template class Chain<links::ParallelMultiHeadAttention>;
}  // namespace rensa
