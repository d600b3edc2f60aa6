// Renewal: what makes every recorded step (graph/capture.h) be recorded anew.
#pragma once

#include <cstdint>

namespace rensa {

/// Steps are recorded anew, on all threads, from their next call on: for who has changed numbers,
/// flags or texts of the host that a recorded step works with, as replays would not notice
/// (`model.ratio = 0.3`). load_npz and copyparams call it where they set such a member.
void renew_recordings();

/// How often that has been asked for.
[[nodiscard]] std::uint64_t recording_renewals();

}  // namespace rensa
