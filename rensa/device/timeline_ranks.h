// Timelines of several ranks: a file of each, and one of all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rensa/device/timeline.h"

namespace rensa::timeline {

/// "trace.rank1.json" for "trace.json": what RENSA_TIMELINE names is written so by each of several
/// processes.
std::string path_of_rank(const std::string& path, int rank);

/// write(), with the time at which the timeline began: nanoseconds since 1970.
void write(const std::vector<Record>& records, const std::string& path, std::int64_t began_ns);

/// Writes one trace of what several processes recorded at the same time, traces[r] being rank r's:
/// the processes and GPUs of each bear its number, times are since the first began. Clocks of
/// several machines have to agree. rensa-run does it for RENSA_TIMELINE. Throws SerializationError
/// for a file that cannot be read or written, or that does not say when it began.
void merge(const std::vector<std::string>& traces, const std::string& path);

}  // namespace rensa::timeline
