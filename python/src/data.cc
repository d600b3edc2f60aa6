// rensa.datasets and iterators.
#include <mutex>

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

nb::object examples_of(const Batch& batch) {
  nb::list list;
  for (std::int64_t k = 0; k < batch.size(); ++k) {
    Columns columns = unlocked([&] { return batch.example(k); });
    list.append(example_object(columns));
  }
  return list;
}

nb::object next(const Iterator& iterator) {
  std::optional<Batch> batch = unlocked([&] { return iterator.next(); });
  if (!batch) throw nb::stop_iteration();
  return examples_of(*batch);
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

/// The iterators that were made in Python and are alive.
struct LiveIterators {
  std::mutex mutex;
  std::vector<std::weak_ptr<IteratorBody>> bodies;
};

LiveIterators& live_iterators() {
  static auto* live = new LiveIterators();
  return *live;
}

/// An iterator whose threads end without the interpreter's lock, and before the interpreter does.
Iterator iterator_of_python(const Iterator& made) {
  struct Opened : Iterator {
    explicit Opened(const Iterator& i) : Iterator(i) {}
    std::shared_ptr<IteratorBody> body() { return std::move(body_); }
  };
  auto body = let_go_unlocked(Opened(made).body());
  LiveIterators& live = live_iterators();
  std::lock_guard lock(live.mutex);
  std::erase_if(live.bodies, [](const auto& one) { return one.expired(); });
  live.bodies.push_back(body);
  return Iterator(body);
}

/// At the end of the program: threads of iterators call nothing of Python's any more.
void stop_iterators() {
  LiveIterators& live = live_iterators();
  std::vector<std::weak_ptr<IteratorBody>> bodies;
  {
    std::lock_guard lock(live.mutex);
    bodies.swap(live.bodies);
  }
  unlocked([&] {
    for (const auto& one : bodies) {
      if (auto body = one.lock()) body->reset();
    }
  });
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
  m.def(
      "split_dataset",
      [](nb::handle dataset, std::int64_t split_at) {
        auto split = datasets::split_dataset(dataset_of(dataset), split_at);
        return nb::make_tuple(Dataset(split.first), Dataset(split.second));
      },
      nb::arg("dataset"), nb::arg("split_at"));
  m.def(
      "split_dataset_random",
      [](nb::handle dataset, std::int64_t first_size, std::optional<std::uint64_t> seed) {
        auto split = datasets::split_dataset_random(dataset_of(dataset), first_size, seed);
        return nb::make_tuple(Dataset(split.first), Dataset(split.second));
      },
      nb::arg("dataset"), nb::arg("first_size"), nb::arg("seed") = nb::none());
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

void bind_data(nb::module_& datasets, nb::module_& iterators) {
  bind_datasets(datasets);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&stop_iterators));
  nb::class_<Iterator>(iterators, "Iterator", "Batches of a dataset, one after another.")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &next)
      .def("next", &next, "The next batch: a list of examples.")
      .def("reset", [](const Iterator& i) { unlocked([&] { i.reset(); }); })
      .def(
          "finalize", [](const Iterator& i) { unlocked([&] { i.reset(); }); },
          "Lets what is being fetched end.")
      .def_prop_ro("epoch", &Iterator::epoch)
      .def_prop_ro("is_new_epoch", &Iterator::is_new_epoch)
      .def_prop_ro("epoch_detail", &Iterator::epoch_detail)
      .def_prop_ro("previous_epoch_detail", &Iterator::previous_epoch_detail)
      .def_prop_ro("repeat", &Iterator::repeats)
      .def("__str__", &Iterator::describe);
  iterators.def(
      "SerialIterator",
      [](nb::handle dataset, std::int64_t batch_size, bool repeat, std::optional<bool> shuffle,
         std::optional<std::uint64_t> seed) {
        return iterator_of_python(rensa::iterators::SerialIterator(
            dataset_of(dataset), batch_size,
            {.repeat = repeat, .shuffle = shuffle.value_or(true), .seed = seed}));
      },
      nb::arg("dataset"), nb::arg("batch_size"), nb::arg("repeat") = true,
      nb::arg("shuffle") = nb::none(), nb::arg("seed") = nb::none());
  iterators.def(
      "MultithreadIterator",
      [](nb::handle dataset, std::int64_t batch_size, bool repeat, std::optional<bool> shuffle,
         int n_threads, std::optional<std::uint64_t> seed) {
        return iterator_of_python(
            rensa::iterators::MultithreadIterator(dataset_of(dataset), batch_size,
                                                  {.repeat = repeat,
                                                   .shuffle = shuffle.value_or(true),
                                                   .seed = seed,
                                                   .n_threads = n_threads}));
      },
      nb::arg("dataset"), nb::arg("batch_size"), nb::arg("repeat") = true,
      nb::arg("shuffle") = nb::none(), nb::arg("n_threads") = 1, nb::arg("seed") = nb::none());
  nb::class_<Batch>(iterators, "Batch", "Some examples of a dataset, not fetched yet.")
      .def("__len__", &Batch::size)
      .def("examples", &examples_of, "Fetched: a list.");
}

}  // namespace rensa::python
