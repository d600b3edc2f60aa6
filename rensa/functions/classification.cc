// What functions of class scores and labels share.
#include "rensa/functions/classification.h"

#include <fmt/format.h>

#include "rensa/core/error.h"

namespace rensa::functions {

void check_scores_and_labels(const char* function, const Array& scores, const Array& labels) {
  check_same_device(function, scores, labels);
  char kind = dtype_kind(labels.dtype());
  bool fits = scores.ndim() == 2 && labels.ndim() == 1 && scores.shape(0) == labels.shape(0);
  bool types = dtype_kind(scores.dtype()) == 'f' && (kind == 'i' || kind == 'u');
  if (fits && types) return;
  std::string text = fmt::format("{}: scores {} and labels {}", function, scores.view().describe(),
                                 labels.view().describe());
  if (!fits) throw ShapeError(text + ": scores must be (n, classes) and labels (n,)");
  throw DtypeError(text + ": scores must be floating and labels integer");
}

}  // namespace rensa::functions
