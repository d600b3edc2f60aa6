// The count of renewals.
#include "rensa/device/renewal.h"

#include <atomic>

#include "rensa/device/tracer.h"

namespace rensa {

namespace {

std::atomic<std::uint64_t> renewals{0};

}  // namespace

void renew_recordings() {
  stay_eager("it has recordings renewed");
  ++renewals;
}

std::uint64_t recording_renewals() { return renewals.load(); }

}  // namespace rensa
