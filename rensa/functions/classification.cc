// What functions of class scores and labels share.
#include "rensa/functions/classification.h"

#include <fmt/format.h>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"

namespace rensa::functions {

void check_scores_and_labels(const char* function, const Array& scores, const Array& labels) {
  check_same_device(function, scores, labels);
  char kind = dtype_kind(labels.dtype());
  bool fits = scores.ndim() >= 2 && labels.ndim() == scores.ndim() - 1;
  for (int i = 0; fits && i < labels.ndim(); ++i) {
    fits = labels.shape(i) == scores.shape(i == 0 ? 0 : i + 1);
  }
  bool types = dtype_kind(scores.dtype()) == 'f' && (kind == 'i' || kind == 'u');
  if (fits && types) return;
  std::string text = fmt::format("{}: scores {} and labels {}", function, scores.view().describe(),
                                 labels.view().describe());
  if (!fits) throw ShapeError(text + ": scores must be (n, classes, ...) and labels (n, ...)");
  throw DtypeError(text + ": scores must be floating and labels integer");
}

Array label_places(const Array& labels, std::int64_t classes, std::int64_t ignored) {
  Array zero = xp::zeros({}, int64, labels.device());
  Array places = xp::where(labels == ignored, zero, labels.astype(int64, false));
  return xp::where(places < 0, zero + classes, places);
}

}  // namespace rensa::functions
