// L::MultiHeadAttention.
#include "rensa/links/attention_links.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/links/attention_parts.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

namespace {

LinearOptions linear_options(const MultiHeadAttentionOptions& options) {
  return {
      .nobias = options.nobias,
      .initialW = options.initialW ? options.initialW : Initializer(initializers::GlorotUniform()),
      .initial_bias = options.initial_bias};
}

std::int64_t checked(std::int64_t units, int heads) {
  if (units > 0 && heads > 0 && units % heads == 0) return units;
  throw ValueError(fmt::format("MultiHeadAttention: {} heads of {} units", heads, units));
}

}  // namespace

void check_attention_input(const char* what, const Variable& x, std::int64_t units) {
  if (x.ndim() == 3 && x.shape(2) == units) return;
  throw ShapeError(fmt::format("MultiHeadAttention: {} is {}; it must be (n, length, {})", what,
                               x.array().view().describe(), units));
}

Variables attention_products(const Variables& inputs, const Variable& W, const Variable& b) {
  constexpr const char* names[] = {"query", "key", "value"};
  Variables Ws = F::split_axis(W, 3, 0), bs(3), projected;
  if (b.defined()) bs = F::split_axis(b, 3, 0);
  for (std::size_t i = 0; i < 3; ++i) {
    check_attention_input(names[i], inputs[i], W.shape(1));
    projected.push_back(F::linear(inputs[i], Ws[i], bs[i], 2));
  }
  return projected;
}

Variable attend(const Variables& projected, int heads, const F::AttentionOptions& options) {
  Variables parts;  // (n, heads, length, out / heads)
  for (const Variable& x : projected) {
    Shape apart{x.shape(0), x.shape(1), heads, x.shape(2) / heads};
    parts.push_back(F::swapaxes(F::reshape(x, apart), 1, 2));
  }
  Variable y = F::scaled_dot_product_attention(parts[0], parts[1], parts[2], options);
  return F::reshape(F::swapaxes(y, 1, 2), projected[0].shape());
}

MultiHeadAttention::MultiHeadAttention(std::int64_t units, int heads,
                                       const MultiHeadAttentionOptions& options)
    : in_proj(checked(units, heads), 3 * units, linear_options(options)),
      out_proj(units, units, linear_options(options)),
      dropout(options.dropout),
      units_(units),
      heads_(heads) {}

Variable MultiHeadAttention::operator()(const Variable& x, const F::AttentionOptions& given) const {
  check_attention_input("x", x, units_);
  return attend(F::split_axis(in_proj(x, 2), 3, 2), given);
}

Variable MultiHeadAttention::operator()(const Variable& query, const Variable& key,
                                        const Variable& value,
                                        const F::AttentionOptions& given) const {
  return attend(attention_products({query, key, value}, in_proj.W, in_proj.b), given);
}

Variable MultiHeadAttention::attend(const Variables& projected,
                                    const F::AttentionOptions& given) const {
  F::AttentionOptions options = given;
  options.dropout_ratio = dropout;
  return out_proj(links::attend(projected, heads_, options), 2);
}

}  // namespace rensa::links
