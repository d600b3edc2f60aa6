// rensa.iterators.
#include <map>
#include <mutex>

#include "bind.h"
#include "data.h"
#include "link.h"
#include "rensa/core/error.h"

namespace rensa::python {

namespace {

nb::object examples_of(const Batch& batch) {
  nb::list list;
  for (std::int64_t k = 0; k < batch.size(); ++k) {
    Columns columns = unlocked([&] { return batch.example(k); });
    list.append(python_example(columns));
  }
  return list;
}

/// The next batch: the objects themselves where the dataset is a sequence of Python's that is read
/// only now.
nb::object next(nb::handle_t<Iterator> self) {
  auto& iterator = nb::cast<const Iterator&>(self);
  std::optional<Batch> batch = unlocked([&] { return iterator.next(); });
  if (!batch) throw nb::stop_iteration();
  nb::object sequence = nb::getattr(self, "_sequence", nb::none());
  if (sequence.is_none()) return examples_of(*batch);
  nb::list examples;
  for (std::int64_t i : batch->indices().to_vector<std::int64_t>())
    examples.append(sequence[nb::int_(i)]);
  return examples;
}

/// An iterator whose methods and attributes are Python's.
class IteratorBodyOfPython final : public EpochsOfPython {
 public:
  using EpochsOfPython::EpochsOfPython;
  std::optional<Batch> next() override {
    nb::gil_scoped_acquire lock;
    const char* method = nb::hasattr(held_.object, "next") ? "next" : "__next__";
    nb::object examples;
    try {
      examples = held_.object.attr(method)();
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_StopIteration)) throw;
      return {};
    }
    std::vector<Columns> fetched;
    Dataset all = python_dataset(nb::list(examples));
    for (std::int64_t i = 0; i < all.size(); ++i) fetched.push_back(all[i]);
    auto shared = std::make_shared<const std::vector<Columns>>(std::move(fetched));
    return Batch(all, xp::arange(all.size(), int64, cpu())).with_examples(shared);
  }
  void reset() override {
    nb::gil_scoped_acquire lock;
    if (nb::hasattr(held_.object, "reset")) held_.object.attr("reset")();
  }
  double epoch_detail() const override {
    return read<double>("epoch_detail", static_cast<double>(epoch()));
  }
  const Dataset& dataset() const override {
    throw NotImplementedError("an iterator of Python's has no dataset that the engine knows");
  }
  bool repeats() const override { return read<bool>("repeat", false); }
  std::string describe() const override { return "an iterator of Python's"; }
};

/// Chainer's order sampler, a function of the order before and the place in it: asked once for each
/// order, as these have to be the same whenever the engine asks.
OrderSampler sampler_of(nb::handle object) {
  if (object.is_none()) return {};
  struct Asked {
    Held function;
    std::mutex mutex;
    std::map<std::int64_t, std::vector<std::int64_t>> orders;
  };
  auto asked = std::shared_ptr<Asked>(new Asked{Held(nb::borrow(object)), {}, {}});
  return [asked](const EpochRequest& request) {
    nb::gil_scoped_acquire lock;
    auto& orders = asked->orders;
    for (std::int64_t n = static_cast<std::int64_t>(orders.size()); n <= request.number; ++n) {
      std::vector<std::int64_t> before(static_cast<std::size_t>(request.size));
      for (std::int64_t i = 0; i < request.size; ++i) before[static_cast<std::size_t>(i)] = i;
      if (n > 0) before = orders.at(n - 1);
      nb::object numpy = nb::module_::import_("numpy");
      std::size_t place = n == 0 ? 0 : before.size();
      nb::object order = asked->function.object(numpy.attr("array")(before), place);
      orders[n] = nb::cast<std::vector<std::int64_t>>(order.attr("tolist")());
    }
    return orders.at(request.number);
  };
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
struct IteratorOfPython : Iterator {
  explicit IteratorOfPython(const Iterator& made) : Iterator(made) {
    body_ = let_go_unlocked(body_);
    LiveIterators& live = live_iterators();
    std::lock_guard lock(live.mutex);
    std::erase_if(live.bodies, [](const auto& one) { return one.expired(); });
    live.bodies.push_back(body_);
  }
};
struct SerialIteratorOfPython : IteratorOfPython {
  using IteratorOfPython::IteratorOfPython;
};
struct MultithreadIteratorOfPython : IteratorOfPython {
  using IteratorOfPython::IteratorOfPython;
};

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

/// What Chainer's iterators show.
void set_attributes(nb::handle self, nb::handle dataset, std::int64_t batch_size) {
  nb::inst_mark_ready(self);
  self.attr("dataset") = dataset;
  self.attr("batch_size") = batch_size;
}

bool is_sequence_of_python(nb::handle dataset) {
  return !nb::isinstance<Dataset>(dataset) && !nb::isinstance<Array>(dataset) &&
         !PyObject_CheckBuffer(dataset.ptr());
}

void bind_iterator_class(nb::module_& iterators) {
  nb::class_<Iterator>(iterators, "Iterator", nb::dynamic_attr(), nb::is_weak_referenceable(),
                       "Batches of a dataset, one after another.")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &next)
      .def("next", &next, "The next batch: a list of examples.")
      .def("reset", [](const Iterator& i) { unlocked([&] { i.reset(); }); })
      .def(
          "finalize", [](const Iterator& i) { unlocked([&] { i.reset(); }); },
          "Lets what is being fetched end.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](const Iterator& i, const nb::args&) { unlocked([&] { i.reset(); }); })
      .def_prop_ro("epoch", &Iterator::epoch)
      .def_prop_ro("is_new_epoch", &Iterator::is_new_epoch)
      .def_prop_ro("epoch_detail", &Iterator::epoch_detail)
      .def_prop_ro("previous_epoch_detail", &Iterator::previous_epoch_detail)
      .def_prop_ro("repeat", &Iterator::repeats)
      .def("__str__", &Iterator::describe);
}

}  // namespace

Iterator python_iterator(nb::handle object) {
  Iterator* found = nullptr;
  if (nb::try_cast(object, found) && found) {
    nb::object own = object.type().attr("next");
    nb::object own_next = object.type().attr("__next__");
    nb::handle engine = nb::type<Iterator>();
    if (own.is(engine.attr("next")) && own_next.is(engine.attr("__next__"))) return *found;
  }
  if (nb::hasattr(object, "next") || nb::hasattr(object, "__next__"))
    return Iterator(std::make_shared<IteratorBodyOfPython>(object));
  throw nb::type_error(
      ("an iterator is needed, not " + nb::cast<std::string>(nb::repr(object.type()))).c_str());
}

void bind_iterators(nb::module_& iterators) {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&stop_iterators));
  bind_iterator_class(iterators);
  nb::class_<SerialIteratorOfPython, Iterator>(iterators, "SerialIterator",
                                               "Batches that are made when they are asked for.")
      .def(
          "__init__",
          [](nb::handle_t<Iterator> self, nb::handle dataset, std::int64_t batch_size, bool repeat,
             std::optional<bool> shuffle, nb::handle order_sampler,
             std::optional<std::uint64_t> seed) {
            new (nb::inst_ptr<SerialIteratorOfPython>(self)) SerialIteratorOfPython(
                rensa::iterators::SerialIterator(python_dataset(dataset), batch_size,
                                                 {.repeat = repeat,
                                                  .shuffle = shuffle.value_or(true),
                                                  .seed = seed,
                                                  .order_sampler = sampler_of(order_sampler)}));
            set_attributes(self, dataset, batch_size);
            if (is_sequence_of_python(dataset)) self.attr("_sequence") = dataset;
          },
          nb::arg("dataset"), nb::arg("batch_size"), nb::arg("repeat") = true,
          nb::arg("shuffle") = nb::none(), nb::arg("order_sampler").none() = nb::none(),
          nb::arg("seed") = nb::none());
  nb::class_<MultithreadIteratorOfPython, Iterator>(iterators, "MultithreadIterator",
                                                    "Batches whose examples threads fetch ahead.")
      .def(
          "__init__",
          [](nb::handle_t<Iterator> self, nb::handle dataset, std::int64_t batch_size, bool repeat,
             std::optional<bool> shuffle, int n_threads, nb::handle order_sampler,
             std::optional<std::uint64_t> seed, std::int64_t n_prefetch) {
            new (nb::inst_ptr<MultithreadIteratorOfPython>(self)) MultithreadIteratorOfPython(
                rensa::iterators::MultithreadIterator(python_dataset(dataset), batch_size,
                                                      {.repeat = repeat,
                                                       .shuffle = shuffle.value_or(true),
                                                       .seed = seed,
                                                       .order_sampler = sampler_of(order_sampler),
                                                       .n_threads = n_threads,
                                                       .n_prefetch = n_prefetch}));
            set_attributes(self, dataset, batch_size);
          },
          nb::arg("dataset"), nb::arg("batch_size"), nb::arg("repeat") = true,
          nb::arg("shuffle") = nb::none(), nb::arg("n_threads") = 1,
          nb::arg("order_sampler").none() = nb::none(), nb::arg("seed") = nb::none(),
          nb::arg("n_prefetch") = 2);
  nb::class_<Batch>(iterators, "Batch", "Some examples of a dataset, not fetched yet.")
      .def("__len__", &Batch::size)
      .def("examples", &examples_of, "Fetched: a list.");
}

}  // namespace rensa::python
