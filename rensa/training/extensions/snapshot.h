// Snapshots: files from which a run goes on.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "rensa/training/extensions/snapshot_writers.h"
#include "rensa/training/trainer.h"

namespace rensa::extensions {

struct SnapshotOptions {
  /// The file's name in the trainer's folder. {.updater.iteration} and {.updater.epoch} stand for
  /// these numbers.
  std::string filename = "snapshot_iter_{.updater.iteration}";
  /// Asked each time that the trigger fires: whether to write.
  std::function<bool()> condition = {};
  /// What writes: at once, or by a thread.
  snapshot_writers::Writer writer = snapshot_writers::SimpleWriter();
  bool snapshot_on_error = false;  // one more file when the run fails
  /// One more file when Ctrl-C or SIGTERM ends the run; left out: of a trainer alone.
  std::optional<bool> snapshot_on_interrupt = {};
  int n_retains = -1;       // so many of the latest files stay; -1: all
  bool autoload = false;    // the run begins with what the latest file there holds
  bool compression = true;  // by zlib; else stored as it is
  /// A file that cannot be written is told of on stderr, and the run goes on; off: the run fails.
  bool keep_going = false;
};

/// Writes all that lasts of a trainer, or of something else, to an npz file (save_npz) at the end
/// of each epoch, after all other extensions. A file appears whole, on the disk, or not at all;
/// what is in it is as it was when the trigger fired, whoever writes it later. Waits for the
/// device.
///
/// With `autoload`, the files of that name are tried, the latest first (by the time at which they
/// were written); which one it is, and one that is damaged, is told of on stderr. The run throws
/// SerializationError where there are files and none of them can be read. What writers that were
/// killed have left unfinished is removed. `n_retains` counts the
/// files whose names differ in their numbers alone.
class Snapshot final : public training::Extension {
 public:
  /// Of the trainer. Throws ValueError for a filename with braces that stand for nothing, with two
  /// numbers side by side or with folders, and for an `n_retains` of 0.
  explicit Snapshot(SnapshotOptions options = {});
  /// Of a link, wherever it moves to, or of an optimizer.
  Snapshot(const Link& target, SnapshotOptions options);
  Snapshot(const Optimizer& target, SnapshotOptions options);

  void resume(training::Trainer& trainer) override;
  void operator()(training::Trainer& trainer) override;
  void on_error(training::Trainer& trainer, const std::exception& error) override;
  void on_interrupt(training::Trainer& trainer) override;
  void finalize() override;
  std::string default_name() const override { return "_Snapshot"; }  // as Chainer's files have it
  training::Trigger default_trigger() const override { return {1, "epoch"}; }
  int default_priority() const override { return -100; }

 private:
  /// Has a file written; gives its path once it is, and stays empty where it cannot be.
  std::shared_ptr<const std::string> take(training::Trainer& trainer);
  SnapshotOptions options_;
  bool of_trainer_ = true;
  std::function<void(training::Trainer&, Visitor&)> target_;
};

/// Chainer's snapshot(): of the trainer.
inline Snapshot snapshot(SnapshotOptions options = {}) { return Snapshot(std::move(options)); }
/// Chainer's snapshot_object(): of a link or an optimizer, as `filename`.
template <class T>
requires(std::derived_from<T, Link> || std::derived_from<T, Optimizer>) Snapshot
    snapshot_object(const T& target, std::string filename, SnapshotOptions options = {}) {
  options.filename = std::move(filename);
  return Snapshot(target, std::move(options));
}

}  // namespace rensa::extensions
