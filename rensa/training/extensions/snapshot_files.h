// The files of snapshots: their names, which there are, and what of them is which rank's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "rensa/array/communicator.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/extensions/snapshot.h"

namespace rensa::extensions::detail {

/// Throws ValueError for a filename and for an n_retains that there cannot be.
void check_options(const SnapshotOptions& options);
/// The file's name now, for `form`, "snapshot_iter_{.updater.iteration}".
std::string name_of(const std::string& form, const training::Trainer& trainer);

/// Has the writer write that content into the trainer's folder, and remove the files that are not
/// retained. Gives the path once it is written, and an empty text until then.
std::shared_ptr<const std::string> write(serializers::NpzContent content,
                                         const training::Trainer& trainer,
                                         const SnapshotOptions& options);

/// Calls `load` with the latest file in the trainer's folder; where that throws SerializationError,
/// with the one before, and so on. `load` gives what stderr is told behind the path. What writers
/// that were killed have left is removed. Throws SerializationError where there are files and none
/// can be loaded.
void load_latest(const training::Trainer& trainer, const std::string& form,
                 const std::function<std::string(const std::string& path)>& load);

// What the trainers of several ranks hold is kept so: rank 0's values under their names and, where
// there are others, "ranks/size", "ranks/<rank>/<name>" of a value that rank 0 has not or not so,
// and "ranks/<rank>/_lacks/<name>" of one that the rank has not.

/// That of all ranks, on rank 0; nothing on the others. Called by all of them.
serializers::NpzContent content_of_all(const Communicator& communicator,
                                       const training::Trainer& trainer);
/// Reads what a file has for that rank of a group of `size` into the trainer. Where the file is of
/// another number of ranks that is what rank 0 had: in an epoch that begins anew and, for other
/// ranks, without the states of generators; what is to be said of that is given back, else nothing.
/// Throws as load_npz does.
std::string load_rank(const std::string& path, serializers::NpzContent file, int rank, int size,
                      const training::Trainer& trainer);

}  // namespace rensa::extensions::detail
