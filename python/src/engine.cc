// rensa._engine: the engine's names for Python. What NumPy has as Python, rensa/ has.
#include "bind.h"

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "serialize.h"

namespace rensa::python {

namespace {

/// An error of the engine's as a class of Python's: an Error, and the nearest of Python's own.
template <class E>
void bind_error(nb::module_& m, const char* name, nb::handle nearest, const char* base = "Error") {
  nb::exception<E>(m, name, nb::make_tuple(m.attr(base), nearest));
}

/// Chainer's name for what a function cannot be given: an array of another shape or dtype.
void add_invalid_type(nb::module_& m) {
  nb::object error = m.attr("Error");
  PyObject* made = PyErr_NewException("rensa._engine.errors.InvalidType", error.ptr(), nullptr);
  if (!made) nb::raise_python_error();
  m.attr("InvalidType") = nb::steal(made);
}

}  // namespace

void bind_errors(nb::module_& engine) {
  nb::module_ m = engine.def_submodule("errors", "What the engine throws.");
  // The last one that fits is asked first.
  nb::exception<Error>(m, "Error", PyExc_Exception);
  add_invalid_type(m);
  bind_error<ShapeError>(m, "ShapeError", PyExc_ValueError, "InvalidType");
  bind_error<DtypeError>(m, "DtypeError", PyExc_TypeError, "InvalidType");
  bind_error<DeviceError>(m, "DeviceError", PyExc_ValueError);
  // As NumPy's AxisError, also a ValueError.
  nb::handle index = PyExc_IndexError, value = PyExc_ValueError;
  nb::exception<IndexError>(m, "IndexError", nb::make_tuple(m.attr("InvalidType"), value, index));
  bind_error<ValueError>(m, "ValueError", PyExc_ValueError);
  nb::exception<LinAlgError>(m, "LinAlgError", m.attr("ValueError"));
  bind_error<CudaError>(m, "CudaError", PyExc_RuntimeError);
  bind_error<NotImplementedError>(m, "NotImplementedError", PyExc_NotImplementedError);
  bind_error<SerializationError>(m, "SerializationError", PyExc_OSError);
  bind_error<CompileError>(m, "CompileError", PyExc_RuntimeError);
  bind_error<SyncError>(m, "SyncError", PyExc_RuntimeError);
  bind_error<OutOfMemoryError>(m, "OutOfMemoryError", PyExc_MemoryError);
}

void bind_devices(nb::module_& m) {
  nb::class_<Device>(m, "Device", "The CPU or a GPU.")
      .def(
          "__init__",
          [](Device* self, const char* text) { new (self) Device(std::string_view(text)); },
          nb::arg("text"), "Of \"cpu\", \"cuda\" or \"cuda:1\".")
      .def("__str__", &Device::str)
      .def("__repr__", [](const Device& d) { return "Device('" + d.str() + "')"; })
      .def(
          "__eq__",
          [](const Device& a, nb::handle b) {
            Device other;
            if (nb::try_cast(b, other)) return a == other;
            return PyLong_Check(b.ptr()) &&
                   nb::cast<long>(b) == (a.is_cuda() ? a.index : -1);  // Chainer's
          },
          nb::arg("other").none())
      .def("__hash__", [](const Device& d) { return (d.is_cuda() ? 1 : 0) * 1024 + d.index; })
      .def("__int__", [](const Device& d) { return d.is_cuda() ? static_cast<int>(d.index) : -1; })
      .def_prop_ro("is_cpu", &Device::is_cpu)
      .def_prop_ro("is_cuda", &Device::is_cuda)
      .def_prop_ro("id", [](const Device& d) { return static_cast<int>(d.index); })
      .def("use", &Device::use, "Makes this the calling thread's current device.")
      .def(
          "synchronize", [](const Device& d) { unlocked([&] { d.synchronize(); }); },
          "Waits for everything queued on it.");
  m.def(
      "current_device", [] { return ThreadState::current().device; },
      "Where the calling thread's new arrays go.");
  m.def("num_gpus", &num_gpus, "How many GPUs there are.");
}

}  // namespace rensa::python

namespace rensa::python {

/// Submodules, so that no name of networks is one of arrays.
static void bind_networks(nb::module_& m) {
  nb::module_ networks = m.def_submodule("networks");
  bind_variables(networks);
  bind_function_nodes(networks);
  nb::module_ functions = m.def_submodule("functions");
  bind_functions(functions);
  bind_calls_of_functions(functions);
  nb::module_ initializers = m.def_submodule("initializers");
  bind_initializers(initializers);
  bind_link_class(networks);
  bind_reporters(networks);
  nb::module_ checks = m.def_submodule("gradient_check");
  bind_checks(checks);
  nb::module_ function_hooks = m.def_submodule("function_hooks");
  bind_function_hooks(function_hooks);
  nb::module_ link_hooks = m.def_submodule("link_hooks");
  bind_link_hooks(link_hooks);
  nb::module_ links = m.def_submodule("links");
  bind_links(links);
  nb::module_ optimizers = m.def_submodule("optimizers");
  nb::module_ hooks = m.def_submodule("optimizer_hooks");
  bind_optimizer_class(optimizers, hooks);
  bind_optimizers(optimizers);
  nb::module_ datasets = m.def_submodule("datasets");
  nb::module_ iterators = m.def_submodule("iterators");
  bind_data(datasets, iterators);
  nb::module_ serializers = m.def_submodule("serializers");
  bind_serialize(serializers);
  bind_serializers(serializers);
  bind_training(m, networks);
}

}  // namespace rensa::python

NB_MODULE(_engine, m) {
  using namespace rensa::python;
  m.doc() = "Rensa's engine.";
  // At the end of a program Python leaves what module-level functions refer to;
  // python/tests/test_lifetimes.py looks for leaks.
  nb::set_leak_warnings(false);
  nb::class_<Box>(m, "_Box", nb::dynamic_attr(), nb::is_weak_referenceable());
  m.attr("_objects") = nb::module_::import_("weakref").attr("WeakValueDictionary")();
  bind_errors(m);
  bind_devices(m);
  bind_arrays(m);
  bind_ufuncs(m);
  bind_routines(m);
  nb::module_ random = m.def_submodule("random", "numpy.random's functions, by Philox.");
  bind_seed(random), bind_random(random);
  bind_rearranging(m);
  bind_statistics(m);
  bind_linalg(m);
  bind_standard(m);
  bind_kernels(m);
  nb::module_ cuda = m.def_submodule("cuda");
  bind_streams(cuda);
  bind_networks(m);
}
