// Datasets and iterators on their way from Python.
#pragma once

#include "arguments.h"

namespace rensa::python {

/// A dataset of the engine's, an array's rows, or a sequence of Python's.
Dataset python_dataset(nb::handle object);
/// An example as Python has it: a tuple of columns, or the one.
nb::object python_example(const Columns& columns);
/// An iterator of the engine's; or one of Python's, with Chainer's attributes and `next`. TypeError
/// for what is none.
Iterator python_iterator(nb::handle object);
void bind_iterators(nb::module_& iterators);

}  // namespace rensa::python
