// rensa.datasets.
#include "data.h"
#include "bind.h"
#include "link.h"
#include "rensa/core/error.h"

namespace rensa::python {

namespace {

/// Of NumPy's and numbers in host memory, whatever the current device is; ours stay where they are.
Array host_array_of(nb::handle object) {
  Variable variable;
  if (nb::try_cast(object, variable)) return variable.array();
  return array_of(object, {}, nb::isinstance<Array>(object) ? Placement() : Placement(cpu()));
}

Columns columns_of_example(nb::handle example) {
  Columns columns;
  if (PyTuple_Check(example.ptr())) {
    for (nb::handle column : nb::borrow<nb::tuple>(example))
      columns.push_back(host_array_of(column));
  } else {
    columns.push_back(host_array_of(example));
  }
  return columns;
}

/// A sequence of Python's: its elements are examples, a tuple of columns each, or one column.
class SequenceDataset : public DatasetBody {
 public:
  explicit SequenceDataset(nb::object sequence)
      : size_(static_cast<std::int64_t>(nb::len(sequence))), sequence_(std::move(sequence)) {}
  std::int64_t size() const override { return size_; }
  Columns example(std::int64_t i, std::uint64_t) const override {
    nb::gil_scoped_acquire lock;
    return columns_of_example(sequence_.object[nb::int_(i)]);
  }

 private:
  std::int64_t size_;
  Held sequence_;
};

Dataset dataset_of(nb::handle object) {
  Dataset* known = nullptr;
  if (nb::try_cast(object, known) && known) return *known;
  if (nb::isinstance<Array>(object) || PyObject_CheckBuffer(object.ptr())) {
    return datasets::TupleDataset(host_array_of(object));
  }
  return Dataset(std::make_shared<SequenceDataset>(nb::borrow(object)));
}

/// An example as Python has it: a tuple of columns, or the one.
nb::object example_object(const Columns& columns) {
  return columns.size() == 1 ? given(columns[0]) : given(columns);
}

nb::object item_of(const Dataset& dataset, nb::handle key) {
  if (PySlice_Check(key.ptr())) {
    auto [start, stop, step, length] =
        nb::borrow<nb::slice>(key).compute(static_cast<std::size_t>(dataset.size()));
    nb::list list;
    for (std::size_t k = 0; k < length; ++k) {
      list.append(example_object(
          dataset[static_cast<std::int64_t>(start) + static_cast<std::int64_t>(k) * step]));
    }
    return list;
  }
  auto i = nb::cast<std::int64_t>(nb::int_(nb::borrow(key)));
  Columns columns = unlocked([&] { return dataset[i < 0 ? i + dataset.size() : i]; });
  return example_object(columns);
}

template <class Get> void def_pair(nb::module_& m, const char* name, int ndim, Get get) {
  m.def(
      name,
      [get](bool withlabel, int dims, float scale) {
        auto sets = unlocked([&] { return get(withlabel, dims, scale); });
        return nb::make_tuple(Dataset(sets.train), Dataset(sets.test));
      },
      nb::arg("withlabel") = true, nb::arg("ndim") = ndim, nb::arg("scale") = 1.0F);
}

/// An order of a dataset's examples: numbers, or none.
datasets::Order order_of(nb::handle object) {
  if (object.is_none()) return {};
  datasets::Order order;
  for (nb::handle i : nb::list(nb::borrow(object)))
    order.push_back(nb::cast<std::int64_t>(nb::int_(nb::borrow(i))));
  return order;
}

template <class Parts> nb::object parts_object(const Parts& parts) {
  nb::list list;
  for (const auto& part : parts) {
    if constexpr (requires { part.first; })
      list.append(nb::make_tuple(Dataset(part.first), Dataset(part.second)));
    else list.append(Dataset(part));
  }
  return list;
}

using Seed = std::optional<std::uint64_t>;

void bind_parts(nb::module_& m) {
  m.def(
      "SubDataset",
      [](nb::handle dataset, std::int64_t start, std::int64_t finish, nb::handle order) {
        return Dataset(datasets::SubDataset(dataset_of(dataset), start, finish, order_of(order)));
      },
      nb::arg("dataset"), nb::arg("start"), nb::arg("finish"), nb::arg("order").none() = nb::none(),
      "Examples [start, finish) of a dataset.");
  m.def(
      "split_dataset",
      [](nb::handle dataset, std::int64_t split_at, nb::handle order) {
        auto split = datasets::split_dataset(dataset_of(dataset), split_at, order_of(order));
        return nb::make_tuple(Dataset(split.first), Dataset(split.second));
      },
      nb::arg("dataset"), nb::arg("split_at"), nb::arg("order").none() = nb::none());
  m.def(
      "split_dataset_random",
      [](nb::handle dataset, std::int64_t first_size, Seed seed) {
        auto split = datasets::split_dataset_random(dataset_of(dataset), first_size, seed);
        return nb::make_tuple(Dataset(split.first), Dataset(split.second));
      },
      nb::arg("dataset"), nb::arg("first_size"), nb::arg("seed") = nb::none());
  m.def(
      "split_dataset_n",
      [](nb::handle dataset, std::int64_t n, nb::handle order) {
        return parts_object(datasets::split_dataset_n(dataset_of(dataset), n, order_of(order)));
      },
      nb::arg("dataset"), nb::arg("n"), nb::arg("order").none() = nb::none(),
      "n parts of one size: a list.");
  m.def(
      "split_dataset_n_random",
      [](nb::handle dataset, std::int64_t n, Seed seed) {
        return parts_object(datasets::split_dataset_n_random(dataset_of(dataset), n, seed));
      },
      nb::arg("dataset"), nb::arg("n"), nb::arg("seed") = nb::none());
  m.def(
      "get_cross_validation_datasets",
      [](nb::handle dataset, std::int64_t n_folds, nb::handle order) {
        return parts_object(
            datasets::get_cross_validation_datasets(dataset_of(dataset), n_folds, order_of(order)));
      },
      nb::arg("dataset"), nb::arg("n_folds"), nb::arg("order").none() = nb::none(),
      "(what to train with, what to test with) of each fold: a list.");
  m.def(
      "get_cross_validation_datasets_random",
      [](nb::handle dataset, std::int64_t n_folds, Seed seed) {
        return parts_object(
            datasets::get_cross_validation_datasets_random(dataset_of(dataset), n_folds, seed));
      },
      nb::arg("dataset"), nb::arg("n_folds"), nb::arg("seed") = nb::none());
}

void bind_datasets(nb::module_& m) {
  nb::class_<Dataset>(m, "Dataset",
                      "Examples by number: a tuple of columns each, or the one column.")
      .def(
          "__init__", [](Dataset* self, nb::handle of) { new (self) Dataset(dataset_of(of)); },
          nb::arg("sequence"))
      .def("__len__", &Dataset::size)
      .def("__getitem__", &item_of);
  m.def(
      "TupleDataset",
      [](const nb::args& columns) {
        bool arrays = columns.size() > 0;
        for (nb::handle column : columns) {
          arrays = arrays && (nb::isinstance<Array>(column) || PyObject_CheckBuffer(column.ptr()));
        }
        if (!arrays) {  // rows of sequences
          for (nb::handle column : columns) {
            if (nb::len(column) != nb::len(nb::object(columns[0]))) {
              throw ShapeError("TupleDataset: columns of " +
                               std::to_string(nb::len(nb::object(columns[0]))) + " and " +
                               std::to_string(nb::len(column)) + " rows");
            }
          }
          nb::list rows;
          for (nb::handle row : nb::module_::import_("builtins").attr("zip")(*columns))
            rows.append(row);
          return dataset_of(rows);
        }
        Columns all;
        for (nb::handle column : columns) all.push_back(host_array_of(column));
        return Dataset(datasets::TupleDataset(all));
      },
      nb::arg("columns"), "Examples that are the rows of arrays of one length.");
  m.def(
      "ConcatenatedDataset",
      [](const nb::args& parts) {
        std::vector<Dataset> all;
        for (nb::handle part : parts) all.push_back(dataset_of(part));
        return Dataset(datasets::ConcatenatedDataset(all));
      },
      nb::arg("datasets"));
  m.def(
      "TransformDataset",
      [](nb::handle dataset, nb::object transform) {
        auto function = std::make_shared<Held>(transform);
        Dataset made =
            datasets::TransformDataset(dataset_of(dataset), [function](const Columns& columns) {
              nb::gil_scoped_acquire lock;
              return columns_of_example(function->object(example_object(columns)));
            });
        return made;
      },
      nb::arg("dataset"), nb::arg("transform"),
      "What a function makes of another dataset's examples.");
  bind_parts(m);
  def_pair(m, "get_mnist", 1, &datasets::get_mnist);
  def_pair(m, "get_fashion_mnist", 1, &datasets::get_fashion_mnist);
  def_pair(m, "get_kuzushiji_mnist", 1, &datasets::get_kuzushiji_mnist);
  def_pair(m, "get_cifar10", 3, &datasets::get_cifar10);
  def_pair(m, "get_cifar100", 3, &datasets::get_cifar100);
  m.def(
      "get_synthetic_digits",
      [](std::int64_t n_train, std::int64_t n_test, std::uint64_t seed) {
        auto sets = unlocked([&] { return datasets::get_synthetic_digits(n_train, n_test, seed); });
        return nb::make_tuple(Dataset(sets.train), Dataset(sets.test));
      },
      nb::arg("n_train") = 60000, nb::arg("n_test") = 10000, nb::arg("seed") = 0,
      "Digits that are drawn.");
}

}  // namespace

Dataset python_dataset(nb::handle object) { return dataset_of(object); }

nb::object python_example(const Columns& columns) { return example_object(columns); }

void bind_data(nb::module_& datasets, nb::module_& iterators) {
  bind_datasets(datasets);
  bind_iterators(iterators);
}

}  // namespace rensa::python
