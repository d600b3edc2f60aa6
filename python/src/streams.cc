// rensa.cuda: streams, events, memory pools, pinned memory, waits and timelines.
#include <string>

#include "bind.h"
#include "rensa/core/error.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/stream.h"
#include "rensa/device/timeline.h"

namespace rensa::python {

namespace {

/// The device of a stream or pool that is not told one.
Device gpu_or(nb::handle device) {
  return device.is_none() ? current_gpu() : placement_of(device).device();
}

void bind_stream(nb::module_& m) {
  nb::class_<cuda::Stream>(m, "Stream", nb::dynamic_attr(),
                           "Work that is done in its order, beside that of other streams.")
      .def(
          "__init__",
          [](cuda::Stream* self, bool null, bool non_blocking, int priority, nb::handle device) {
            Device on = gpu_or(device);
            if (null) new (self) cuda::Stream(cuda::Stream::null(on));
            else
              new (self) cuda::Stream(
                  on, non_blocking ? cuda::non_blocking : cuda::default_stream_flags, priority);
          },
          nb::arg("null") = false, nb::arg("non_blocking") = false, nb::arg("priority") = 0,
          nb::kw_only(), nb::arg("device") = nb::none())
      .def(
          "synchronize", [](const cuda::Stream& s) { unlocked([&] { s.synchronize(); }); },
          "Waits for its work.")
      .def_prop_ro("done", [](const cuda::Stream& s) { return s.done(); })
      .def_prop_ro("device", &cuda::Stream::device)
      .def_prop_ro(
          "ptr", [](const cuda::Stream& s) { return reinterpret_cast<std::uintptr_t>(s.handle()); })
      .def(
          "record", [](const cuda::Stream& s, const cuda::Event& e) { s.record(e); },
          nb::arg("event"))
      .def(
          "wait_event", [](const cuda::Stream& s, const cuda::Event& e) { s.wait(e); },
          nb::arg("event"), "Work queued from now on starts after the event.")
      .def("use",
           [](nb::handle_t<cuda::Stream> self) {
             nb::cast<const cuda::Stream&>(self).use();
             return nb::borrow(self);
           })
      .def("__eq__", [](const cuda::Stream& a, const cuda::Stream& b) { return a == b; });
  m.def(
      "get_current_stream", [](nb::handle device) { return cuda::current_stream(gpu_or(device)); },
      nb::arg("device") = nb::none());
  nb::class_<cuda::Event>(m, "Event", "A point in a stream's work.")
      .def(
          "__init__",
          [](cuda::Event* self, bool block, bool disable_timing) {
            new (self)
                cuda::Event(cuda::EventOptions{.timing = !disable_timing, .blocking = block});
          },
          nb::arg("block") = false, nb::arg("disable_timing") = false)
      .def(
          "record",
          [](const cuda::Event& e, nb::handle stream) {
            if (stream.is_none()) e.record(current_gpu());
            else e.record(nb::cast<const cuda::Stream&>(stream));
          },
          nb::arg("stream") = nb::none())
      .def("synchronize", [](const cuda::Event& e) { unlocked([&] { e.synchronize(); }); })
      .def_prop_ro("done", &cuda::Event::done);
  m.def("get_elapsed_time", &cuda::elapsed_time, nb::arg("start_event"), nb::arg("end_event"),
        "Milliseconds.");
  m.def("sync_count", &cuda::sync_count, "How often this process has waited for a device.");
}

/// A scope of the engine's as `with` has it.
template <class Scope, class... Arguments> class Within {
 public:
  explicit Within(Arguments... arguments) : arguments_(arguments...) {}
  void enter() {
    std::apply([this](const auto&... a) { scope_.emplace(a...); }, arguments_);
  }
  void exit() { scope_.reset(); }

 private:
  std::tuple<Arguments...> arguments_;
  std::optional<Scope> scope_;
};

template <class Scope> void bind_scope(nb::module_& m, const char* name, const char* doc) {
  using With = Within<Scope>;
  nb::class_<With>(m, name, doc)
      .def(nb::init<>())
      .def("__enter__",
           [](nb::handle_t<With> self) {
             nb::cast<With&>(self).enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](With& w, const nb::args&) { w.exit(); });
}

void bind_timeline(nb::module_& m) {
  using With = Within<timeline::Timeline, std::string>;
  nb::class_<With>(m, "timeline",
                   "with rensa.cuda.timeline(\"trace.json\"): what runs in the scope, as a trace.")
      .def(
          "__init__", [](With* self, const std::string& path) { new (self) With(path); },
          nb::arg("path"))
      .def("__enter__",
           [](nb::handle_t<With> self) {
             nb::cast<With&>(self).enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](With& w, const nb::args&) { unlocked([&] { w.exit(); }); });
}

void bind_pools(nb::module_& m) {
  nb::class_<MemoryPool>(m, "MemoryPool", "Memory that is kept for what asks next.")
      .def("used_bytes", &MemoryPool::used_bytes)
      .def("free_bytes", &MemoryPool::free_bytes)
      .def("total_bytes", &MemoryPool::total_bytes)
      .def("n_free_blocks", &MemoryPool::n_free_blocks)
      .def("free_all_blocks", [](MemoryPool& pool) { unlocked([&] { pool.free_all_blocks(); }); })
      .def(
          "set_limit",
          [](MemoryPool& pool, std::optional<std::int64_t> size, std::optional<double> fraction) {
            if (fraction) pool.set_limit_fraction(*fraction);
            else pool.set_limit(size.value_or(0));
          },
          nb::arg("size") = nb::none(), nb::arg("fraction") = nb::none())
      .def("get_limit", &MemoryPool::get_limit)
      .def("__str__", &MemoryPool::report);
  m.def(
      "get_default_memory_pool",
      [](nb::handle device) { return &cuda::memory_pool(gpu_or(device)); },
      nb::arg("device") = nb::none(), nb::rv_policy::reference, "A GPU's.");
  m.def(
      "get_default_pinned_memory_pool", [] { return &cuda::pinned_memory_pool(); },
      nb::rv_policy::reference, "That of page-locked host memory.");
}

}  // namespace

void bind_streams(nb::module_& m) {
  bind_stream(m);
  bind_pools(m);
  bind_timeline(m);
  bind_scope<cuda::ForbidSync>(
      m, "ForbidSync", "In this scope a call that would wait for a device raises SyncError.");
  bind_scope<cuda::AllowSync>(m, "AllowSync", "Lets waits through again within a ForbidSync.");
  m.def(
       "synchronize",
       [](nb::handle device) {
         Device on = placement_of(device).device();
         unlocked([&] { on.synchronize(); });
       },
       nb::arg("device") = nb::none(), "Waits for all that a device has been given.")
      .def(
          "alloc_pinned_memory", [](std::int64_t size) { return xp::empty_pinned({size}, uint8); },
          nb::arg("size"),
          "Page-locked host memory, as bytes: numpy.frombuffer makes arrays of it, which copies "
          "know.");
}

}  // namespace rensa::python
