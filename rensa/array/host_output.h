// host_output: handing an array out of a step that may be recorded.
#pragma once

#include <utility>

#include "rensa/array/array.h"
#include "rensa/device/launcher.h"

namespace rensa {

/// Calls use(array) now; a recorded step calls it again in each replay with an array of that
/// replay's values. While a step is recorded, and in replays, the array is in fresh memory, so that
/// what keeps it never sees it change, and what `use` does is no part of the recording.
template <class F> void host_output(const Array& array, F&& use) {
  Recorder* recorder = ThreadState::current().recorder;
  if (!recorder) {
    use(array);
    return;
  }
  Array whole = array.ascontiguous();  // what a replay copies lies together
  recorder->output(
      whole.view(), whole.storage().get(),
      [use](StoragePtr storage, const ArrayView& view) { use(Array(std::move(storage), view)); });
  RecorderScope apart(nullptr);
  use(whole.copy());
}

}  // namespace rensa
