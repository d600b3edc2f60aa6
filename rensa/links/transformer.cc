// L::TransformerEncoderLayer and L::TransformerDecoderLayer.
#include "rensa/links/transformer.h"

#include "rensa/functions/functions.h"

namespace rensa::links {

namespace {

/// x plus what `part` makes of it, normalized before or after.
template <class Part>
Variable plus(const Variable& x, const TransformerOptions& options, const LayerNormalization& norm,
              Part part) {
  if (options.norm_first) return x + F::dropout(part(norm(x)), options.dropout);
  return norm(x + F::dropout(part(x), options.dropout));
}

Variable products(const Variable& x, const TransformerOptions& options, const Linear& first,
                  const Linear& second) {
  Variable h = first(x, 2);
  h = options.activate ? options.activate(h) : F::relu(h);
  return second(F::dropout(h, options.dropout), 2);
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t units, int heads,
                                                 const TransformerOptions& given)
    : self_attn(units, heads, {.dropout = given.dropout}),
      linear1(units, given.feedforward),
      linear2(given.feedforward, units),
      norm1(units, {.eps = given.eps}),
      norm2(units, {.eps = given.eps}),
      options(given) {}

void TransformerEncoderLayer::members(Visitor& v) {
  v("self_attn", self_attn), v("linear1", linear1), v("linear2", linear2);
  v("norm1", norm1), v("norm2", norm2);
}

Variable TransformerEncoderLayer::operator()(const Variable& x,
                                             const F::AttentionOptions& attention) const {
  Variable y =
      plus(x, options, norm1, [&](const Variable& in) { return self_attn(in, attention); });
  return plus(y, options, norm2,
              [&](const Variable& in) { return products(in, options, linear1, linear2); });
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t units, int heads,
                                                 const TransformerOptions& given)
    : self_attn(units, heads, {.dropout = given.dropout}),
      multihead_attn(units, heads, {.dropout = given.dropout}),
      linear1(units, given.feedforward),
      linear2(given.feedforward, units),
      norm1(units, {.eps = given.eps}),
      norm2(units, {.eps = given.eps}),
      norm3(units, {.eps = given.eps}),
      options(given) {}

void TransformerDecoderLayer::members(Visitor& v) {
  v("self_attn", self_attn), v("multihead_attn", multihead_attn);
  v("linear1", linear1), v("linear2", linear2);
  v("norm1", norm1), v("norm2", norm2), v("norm3", norm3);
}

Variable TransformerDecoderLayer::operator()(const Variable& x, const Variable& memory,
                                             const F::AttentionOptions& attention,
                                             const F::AttentionOptions& memory_attention) const {
  Variable y =
      plus(x, options, norm1, [&](const Variable& in) { return self_attn(in, attention); });
  y = plus(y, options, norm2, [&](const Variable& in) {
    return multihead_attn(in, memory, memory, memory_attention);
  });
  return plus(y, options, norm3,
              [&](const Variable& in) { return products(in, options, linear1, linear2); });
}

}  // namespace rensa::links
