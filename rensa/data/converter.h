// From batches to arrays on a device.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "rensa/data/iterator.h"
#include "rensa/device/memory_pool.h"

namespace rensa {

/// What arrays of different shapes are filled up with, at the end of each axis, to the largest of
/// the batch: one value for all columns, or one for each, with std::nullopt for columns that may
/// not differ. Empty: none may.
using Padding = std::vector<std::optional<Scalar>>;

struct ConverterOptions {
  /// A dataset of arrays that takes no more than this many bytes is copied to the device once and
  /// gathered there, so that a batch costs no copy. 0 turns that off.
  std::int64_t resident_limit = 1_GiB;
  /// What shorter examples are filled up with, column by column; without, all have one shape.
  Padding padding = {};
};

/// A batch on its way: arrays on the device, or where to gather them there.
struct LocatedBatch {
  Columns columns;  // the batch's own, or (with `rows`) whole columns of the dataset
  Array rows;       // defined where the batch is columns[i][rows]
  /// The batch's arrays. The gather is device work and can be recorded.
  Columns gather() const;
};

/// Makes arrays of batches: columns stacked along a new first axis. A GPU gets its batches from
/// pinned memory over a stream of their own, which the current stream waits for (Chainer's
/// ConcatWithAsyncTransfer), or from a copy of the dataset that it holds itself. Memory is the
/// pools', so that a steady loop allocates nothing; the host waits only when it is 16 batches or 64
/// MiB of them ahead of the GPU. A shared handle; threads may use it at once.
class Converter {
 public:
  explicit Converter(ConverterOptions options = {});
  /// Throws ShapeError for examples that do not match, naming the example and both shapes, and
  /// ValueError for padding of another number of columns.
  Columns operator()(const Batch& batch, Device device) const {
    return locate(batch, device).gather();
  }
  /// The batch's arrays on `device`, or where to gather them there. Throws as operator() does.
  LocatedBatch locate(const Batch& batch, Device device) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// The batch's arrays on `device`, freshly allocated. Chainer's concat_examples. Throws as
/// Converter does.
Columns concat_examples(const Batch& batch, Device device = cpu(), const Padding& padding = {});

}  // namespace rensa
