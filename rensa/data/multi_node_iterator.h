// Iterators of several ranks that go through their examples together.
#pragma once

#include "rensa/array/communicator.h"
#include "rensa/data/iterator.h"

namespace rensa::iterators {

/// The same iterator, which is given the state of rank 0's (where it is, its seed), so that all
/// ranks go through their datasets in one order, as for parts of a model that want the same batches
/// (ChainerMN's). Called by all ranks; nothing is sent later. Throws ValueError on all of them
/// where they differ in kind, batch size, length or settings (IteratorBody::describe).
Iterator create_synchronized_iterator(Iterator iterator, const Communicator& communicator);

/// An iterator of the batches that the rank `master` takes from its own: its numbers and examples
/// are sent, so that the others need no data. On these dataset() has the master's length, and
/// throws ValueError for an example. Called by all ranks, and so are next() and reset(); each waits
/// for the master. It is in the epoch that the master's is in, and ends where that ends. An
/// exception of the master's is thrown by all: an Error of its text on the others. Files hold where
/// it is, and on the master its iterator: with another number of ranks, the master has to be
/// rank 0 for a run to go on.
///
/// The examples of a batch have to have the same number of columns, and those of a column one
/// dtype: ValueError. On the master, batches of a dataset of arrays are as they were; elsewhere
/// examples are in host memory.
Iterator create_multi_node_iterator(const Iterator& iterator, const Communicator& communicator,
                                    int master = 0);
/// The same on the other ranks. Throws ValueError on all ranks where the master gives no iterator.
Iterator create_multi_node_iterator(const Communicator& communicator, int master = 0);

}  // namespace rensa::iterators
