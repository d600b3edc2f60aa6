// Labels of pictures as an array.
#include "rensa/data/images/image_labels.h"

#include <fmt/format.h>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"

namespace rensa::datasets {

Array image_labels(const char* dataset, const std::vector<std::int64_t>& labels, Dtype dtype) {
  Array narrow = xp::array(labels, cpu()).astype(dtype), back = narrow.astype(int64);
  const auto* same = static_cast<const std::int64_t*>(back.data());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (same[i] == labels[i]) continue;
    throw ValueError(
        fmt::format("{}: the label {} of example {} is none of {}; give another label_dtype",
                    dataset, labels[i], i, dtype_name(dtype)));
  }
  return narrow;
}

}  // namespace rensa::datasets
