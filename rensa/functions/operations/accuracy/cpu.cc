// Accuracy on the CPU.
#include "rensa/functions/operations/accuracy/accuracy.h"

#include <vector>

#include "rensa/functions/operations/softmax_cross_entropy/cpu_labels.h"
#include "rensa/operations/reduce/cpu_reduce.h"

namespace rensa::operations {

void Accuracy::run_cpu() {
  std::vector<long long> labels = host::read_labels(t.view);
  std::vector<long long> found(labels.size());
  auto n = static_cast<std::int64_t>(found.size());
  ArrayView positions = {reinterpret_cast<char*>(found.data()),
                         int64,
                         y.view.device,
                         {n, 1},
                         {sizeof(long long), sizeof(long long)}};
  host::run_reduce(reduction::argmax, 1u << 1, y.view.dtype, y.view, positions);
  std::int64_t right = 0, counted = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (has_ignore_label && labels[i] == ignore_label) continue;
    ++counted;
    right += labels[i] == found[i];
  }
  double share = counted ? static_cast<double>(right) / static_cast<double>(counted) : 0;
  host::write_number(accuracy.view, share);
}

}  // namespace rensa::operations
