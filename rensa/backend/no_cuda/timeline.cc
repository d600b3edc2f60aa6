// Timelines of a build without CUDA: there is nothing but the host.
#include "rensa/device/timeline_span.h"

namespace rensa::timeline {

ActivitySource* start_activity_source(std::string&) { return nullptr; }

}  // namespace rensa::timeline
