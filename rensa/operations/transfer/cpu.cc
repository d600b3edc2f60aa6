// A transfer from the CPU to itself.
#include "rensa/operations/transfer/transfer.h"

#include "rensa/backend/cpu/copy.h"

namespace rensa::operations {

void Transfer::run_cpu() { host::copy_elements(in.view, out.view); }

}  // namespace rensa::operations
