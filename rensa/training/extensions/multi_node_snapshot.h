// MultiNodeSnapshot: files from which several ranks go on together.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "rensa/array/communicator.h"
#include "rensa/training/extensions/snapshot.h"

namespace rensa::extensions {

/// Snapshots of a trainer that all ranks of a group run (ChainerMN's multi_node_snapshot and
/// create_multi_node_checkpointer). Rank 0 writes and reads them as Snapshot does; the others need
/// not see its disk. A file holds the trainer of rank 0 under the names that Snapshot has, so that
/// each reads the other's, and below "ranks/<rank>" what of another rank's trainer is not the same:
/// iterators over its part of the data, running statistics, generators. States that optimizers have
/// sharded are gathered. Every rank's extension is called at the same time.
///
/// With `autoload`, a run of as many ranks goes on bit for bit. With another number of ranks all
/// take what rank 0 had, which stderr is told; the epoch under way begins anew over the new parts
/// (iterators keep their own seeds), and the generators of ranks other than 0 stay as they are.
///
/// A file that cannot be written is an error on all ranks in that iteration: SerializationError
/// with rank 0's text; with `keep_going`, rank 0 tells it. Writers that are threads fail in the
/// next call, the last time on rank 0 alone. Of the other options rank 0's count.
///
/// Unless `snapshot_on_interrupt` is false, a signal that one rank gets ends the run of all after
/// the same iteration, with a file: they exchange a number before each. Where a run fails the other
/// ranks may be gone: `snapshot_on_error` has a file of rank 0's trainer alone, from which a run
/// goes on as one of another number of ranks, unless there is a file of that name. Of optimizers
/// whose states are sharded there is none: rank 0 has not those of the other ranks.
class MultiNodeSnapshot final : public training::Extension {
 public:
  /// Throws as Snapshot does.
  explicit MultiNodeSnapshot(Communicator communicator, SnapshotOptions options = {});

  /// Throws ValueError on all ranks where they differ in `autoload` or `snapshot_on_interrupt`, and
  /// as Snapshot does.
  void resume(training::Trainer& trainer) override;
  int agreed_signal(int own) override;
  void operator()(training::Trainer& trainer) override;
  void on_error(training::Trainer& trainer, const std::exception& error) override;
  void on_interrupt(training::Trainer& trainer) override;
  void finalize() override;
  std::string default_name() const override { return "_Snapshot"; }  // as Snapshot's files have it
  training::Trigger default_trigger() const override { return {1, "epoch"}; }
  int default_priority() const override { return -100; }

 private:
  /// Has rank 0 write a file of all ranks; `now`: at once, whatever the writer. Gives its path
  /// once it is written, which is empty until then, and on the others.
  std::shared_ptr<const std::string> take(training::Trainer& trainer, bool now);
  bool is_first() const { return communicator_.rank() == 0; }
  /// Whether a signal that one rank gets is all ranks'.
  bool ends_together() const { return options_.snapshot_on_interrupt.value_or(true); }
  Communicator communicator_;
  SnapshotOptions options_;
};

/// ChainerMN's multi_node_snapshot().
inline MultiNodeSnapshot multi_node_snapshot(Communicator communicator,
                                             SnapshotOptions options = {}) {
  return MultiNodeSnapshot(std::move(communicator), std::move(options));
}

}  // namespace rensa::extensions
