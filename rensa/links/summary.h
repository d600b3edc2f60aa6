// summary(): a model as a table of what its links give for an input, with their parameters and the
// work that they do.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "rensa/links/link.h"

namespace rensa {

struct SummaryOptions {
  rensa::detail::NamedOptions named = {};
  /// Rows for functions that take no parameters too (relu, a pooling), where they are called.
  bool functions = false;
};

/// One call of summary().
struct ModelSummary {
  /// A link, or a function.
  struct Row {
    std::string path;                // of a link, "/l1"; empty of a function
    std::string type;                // "Linear", "relu"
    int calls = 0;                   // 0: it was not called
    Shape output_shape;              // of the last call
    std::int64_t parameters = 0;     // elements of the link's own, below no other link
    std::int64_t multiply_adds = 0;  // of all calls
  };
  std::string type;                                     // of the model
  std::vector<Shape> input_shapes;                      // of x
  std::vector<Row> rows;                                // in the order of the first calls
  std::int64_t parameters = 0, trained_parameters = 0;  // those that optimizers may update
  std::int64_t parameter_bytes = 0;                     // of all of them
  std::int64_t multiply_adds = 0;                       // of all functions, those without rows too

  /// The table, with the totals.
  std::string str() const;
};
std::ostream& operator<<(std::ostream& os, const ModelSummary& summary);

/// Calls the model once with `x`, in test mode and without a graph, and tells of each link with
/// parameters of its own what it has given, in the order of the first calls; then come the links
/// that were not called. Work is counted as multiply-adds: half of what others call FLOPs. Matrix
/// products, convolutions, attention and recurrent layers have them, sums and activations none; a
/// function of one's own has what its multiply_adds() says.
///
/// The call leaves what any call does: parameters have their shapes, States what they keep. Nothing
/// is reported. Throws what the model throws for such inputs.
[[nodiscard]] ModelSummary summary(Link& model, const Variables& x,
                                   const SummaryOptions& options = {});
[[nodiscard]] ModelSummary summary(Link& model, const Variable& x,
                                   const SummaryOptions& options = {});
/// Of zeros of that shape, float32, where the model is: summary(model, Shape{1, 3, 224, 224}).
[[nodiscard]] ModelSummary summary(Link& model, const Shape& shape,
                                   const SummaryOptions& options = {});

}  // namespace rensa
