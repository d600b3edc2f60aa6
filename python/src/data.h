// Datasets and iterators on their way from Python.
#pragma once

#include "arguments.h"
#include "serialize.h"

namespace rensa::python {

/// A dataset of the engine's, an array's rows, or a sequence of Python's.
Dataset python_dataset(nb::handle object);
/// An example as Python has it: a tuple of columns, or the one.
nb::object python_example(const Columns& columns);
/// An iterator of the engine's; or one of Python's, with Chainer's attributes and `next`. TypeError
/// for what is none.
Iterator python_iterator(nb::handle object);
void bind_iterators(nb::module_& iterators);

/// Epochs that an object of Python's counts, by Chainer's attributes.
class EpochsOfPython : public IteratorBody {
 public:
  explicit EpochsOfPython(nb::handle object) : held_(nb::borrow(object)) {}
  std::int64_t epoch() const override { return read<std::int64_t>("epoch", 0); }
  bool is_new_epoch() const override { return read<bool>("is_new_epoch", false); }
  std::optional<double> previous_epoch_detail() const override {
    return read<std::optional<double>>("previous_epoch_detail", {});
  }
  void members(Visitor& v) override { show_serialized(v, held_.object); }

 protected:
  /// An attribute; `otherwise` where it is not there or None. TypeError where it is of another
  /// type.
  template <class T> T read(const char* name, T otherwise) const {
    nb::gil_scoped_acquire lock;
    nb::object value = nb::getattr(held_.object, name, nb::none());
    if (value.is_none()) return otherwise;
    T found{};
    if (nb::try_cast(value, found)) return found;
    std::string kind = nb::cast<std::string>(nb::repr(value.type()));
    throw nb::type_error((std::string(name) + " is of " + kind).c_str());
  }
  Held held_;
};

}  // namespace rensa::python
