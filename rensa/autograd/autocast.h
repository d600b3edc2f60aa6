// Autocast: products in 16 bits, what needs digits in float32, as torch.autocast. One place decides
// it for all functions (FunctionNode::apply), by one table (autograd/autocast.def).
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "rensa/autograd/variable.h"

namespace rensa {

/// While it lives, functions applied on this thread compute in the dtypes that
/// docs/mixed_precision.md lists: products and convolutions in `dtype`, float16 or bfloat16, sums,
/// losses and the like in float32, others in what they are given. float64, integers and complex
/// numbers stay as they are. Inputs are cast by F::cast, so that gradients have the dtypes of the
/// inputs; parameters once for all their uses, until they change. Functions of backward compute in
/// the dtypes of forward. Scopes may stand in one another, and around or in a captured step; a
/// thread that Rensa starts computes as its creator does.
///
///   Variable loss;
///   {
///     Autocast on(bfloat16);
///     loss = model(x, t);
///   }
///   loss.backward();
class [[nodiscard]] Autocast {
 public:
  /// Throws DtypeError for another dtype.
  [[nodiscard]] explicit Autocast(Dtype dtype = Dtype::bfloat16);
  /// Functions of this scope compute in what they are given, whatever the scope around says.
  [[nodiscard]] explicit Autocast(None);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  std::optional<Dtype> previous_;
};

namespace autograd {

/// What the inputs of a function become.
enum class AutocastKind : unsigned char {
  narrow,    // the scope's dtype, unless one of them is float64
  wide,      // of 16 bits: float32
  widest,    // one dtype, the widest of them
  as_given,  // what they are
};
/// A row of the table: a function's name and what its inputs become.
struct AutocastRow {
  std::string_view name;  // of the node, or of a function that is made of several
  AutocastKind kind;      // what its inputs become
};
/// The table.
std::span<const AutocastRow> autocast_rows();

/// The inputs that the function `name` computes with: these where no Autocast is on or the table
/// leaves them, also where it has no such row, as for a function of the user's.
Variables autocast(std::string_view name, const Variables& inputs);

/// Nothing that was cast before is taken in this scope, and nothing that was cast in it after: what
/// a recorded step casts it casts in each replay.
class [[nodiscard]] FreshCasts {
 public:
  [[nodiscard]] FreshCasts();
  ~FreshCasts();
  FreshCasts(const FreshCasts&) = delete;
  FreshCasts& operator=(const FreshCasts&) = delete;
};

}  // namespace autograd
}  // namespace rensa
