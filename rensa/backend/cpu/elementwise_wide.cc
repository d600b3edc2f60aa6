// The elementwise kernels over the value types that are rare or do not vectorize:
// unsigned and complex numbers.
#include "rensa/backend/cpu/kernel_sources.h"

namespace rensa::host {
namespace wide {
#include "rensa/backend/cpu/elementwise_kernels.inc"
}  // namespace wide

void add_elementwise_wide(KernelTable& table) {
  wide::add_elementwise<unsigned long long>(table);
  wide::add_elementwise<complex_t<float>>(table);
  wide::add_elementwise<complex_t<double>>(table);
}
}  // namespace rensa::host
