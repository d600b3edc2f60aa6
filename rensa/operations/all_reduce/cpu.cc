// There are no sums over CPUs.
#include "rensa/core/error.h"
#include "rensa/operations/all_reduce/all_reduce.h"

namespace rensa::operations {

void AllReduce::run_cpu() {
  throw NotImplementedError("all_reduce: there is no group of CPUs; add the arrays up");
}

}  // namespace rensa::operations
