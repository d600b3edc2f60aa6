// ParallelUpdater: one model trained on several devices of this process.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rensa/training/updater.h"

namespace rensa::training {

struct ParallelUpdaterOptions {
  /// One replica each; the one named "main" is the optimizer's model. {{"main", gpu(0)},
  /// {"second", gpu(1)}}, or several times the CPU.
  std::vector<std::pair<std::string, Device>> devices = {};
  /// What becomes of the replicas' gradients. "sum" is Chainer's: the learning rate means something
  /// else than on one device. "mean" weighs each by its share of the batch, so that (for a loss
  /// that is a mean over its batch) a step is what it would be on one device.
  std::string reduction = "sum";
  /// Each replica takes its part of the batch in so many parts, one after the other, as
  /// StandardUpdater does.
  int accumulate = 1;
  /// Main alone is updated, as Chainer's, and the others take its parameters: they keep no states,
  /// in exchange for sending the parameters. Hooks may make random numbers, optimizers and hooks
  /// keep things of their own, and the optimizer be one of create_multi_node_optimizer, for several
  /// processes of several devices each.
  bool update_on_main = false;
  ConverterOptions converter_options = {};  // of the default converter
  /// What makes arrays of a batch; concat_examples when left out.
  std::function<Columns(const Batch&, Device)> converter = {};
  /// Gradients are summed while backward still computes others, in packs of parameters of about so
  /// many bytes: larger ones take less time in all, smaller ones begin earlier. (Captured
  /// iterations choose their own.)
  std::int64_t pack_bytes = std::int64_t{25} << 20;
  /// Iterations are recorded and replayed as a CUDA graph on each GPU (graph/capture.h): the
  /// gradients are summed while others are still computed.
  bool capture = false;
  CaptureOptions capture_options = {};  // as capture() takes them
};

/// Each batch is split between the devices, batch[i::n]; every replica has a thread that lasts
/// (main's is the caller's), does its part at the same time as the others and updates itself by the
/// optimizer's rule (unless main alone is) with the sum of all gradients, which GPUs add up in each
/// other's memory where they reach it: replicas stay equal bit for bit. Persistents, counters,
/// numbers and generators are main's, as in Chainer: each iteration begins with main's in all
/// replicas, and what the other replicas made of them is left. States are each replica's own. Only
/// main's values are reported. An exception in one replica ends the iteration with it, for all,
/// before any is updated. Parameters are copied from main once, before the first update, and after
/// load_npz of this; call synchronize() after loading a model or an optimizer alone.
class ParallelUpdater : public Updater {
 public:
  /// Throws ValueError without a device named "main", for a name given twice, another reduction, or
  /// an `accumulate` or `pack_bytes` below 1.
  ParallelUpdater(Iterator iterator, Optimizer optimizer, ParallelUpdaterOptions options);
  /// The model of a name.
  Link& model(const std::string& name) const;
  /// The next update begins by copying main's parameters and optimizer states to the others.
  void synchronize() const;
  const CaptureStats& capture_stats() const;  // what captured iterations came to so far
};

}  // namespace rensa::training
