// The conversion and reduction kernels over the value types that are rare or do not
// vectorize: unsigned and complex numbers.
#include "rensa/backend/cpu/kernel_sources.h"

namespace rensa::host {
namespace wide {
#include "rensa/backend/cpu/other_kernels.inc"
}  // namespace wide

void add_other_wide(KernelTable& table) {
  wide::add_other<unsigned long long>(table);
  wide::add_other<complex_t<float>>(table);
  wide::add_other<complex_t<double>>(table);
}
}  // namespace rensa::host
