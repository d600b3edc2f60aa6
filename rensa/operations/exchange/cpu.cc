// Messages from and to the host's memory.
#include "rensa/operations/exchange/exchange.h"

namespace rensa::operations {

void Exchange::run_cpu() { transport->exchange(label(), outgoing(), incoming()); }

}  // namespace rensa::operations
