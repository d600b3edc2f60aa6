// What of a batch is an input of a step that may be recorded.
#pragma once

#include <utility>

#include "rensa/autograd/variable.h"
#include "rensa/data/converter.h"

namespace rensa::training {

/// Appends the inputs of a batch: its columns, or, where the dataset lies on the device, its
/// indices alone.
inline void append_inputs(const LocatedBatch& batch, Variables& inputs) {
  if (batch.rows.defined()) inputs.push_back(constant(batch.rows));
  else
    for (const Array& column : batch.columns) inputs.push_back(constant(column));
}

/// The batch's columns within the step, from its inputs at `next`, which moves behind them.
inline Columns columns_of(LocatedBatch batch, Variables::const_iterator& next) {
  if (batch.rows.defined()) batch.rows = (next++)->array();
  else
    for (Array& column : batch.columns) column = (next++)->array();
  return batch.gather();
}

}  // namespace rensa::training
