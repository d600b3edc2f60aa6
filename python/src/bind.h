// The parts of the module.
#pragma once

#include "convert.h"

namespace rensa::python {

void bind_errors(nb::module_& engine);
void bind_devices(nb::module_& m);
void bind_arrays(nb::module_& m);
void bind_ufuncs(nb::module_& m);
void bind_routines(nb::module_& m);
void bind_seed(nb::module_& random);
void bind_rearranging(nb::module_& m);
void bind_statistics(nb::module_& m);
void bind_linalg(nb::module_& m);
void bind_standard(nb::module_& m);
void bind_kernels(nb::module_& m);
void bind_streams(nb::module_& m);
void bind_variables(nb::module_& m);
void bind_function_nodes(nb::module_& m);
void bind_calls_of_functions(nb::module_& functions);
void bind_link_class(nb::module_& m);
void bind_optimizer_class(nb::module_& m, nb::module_& hooks);
void bind_reporters(nb::module_& m);
void bind_checks(nb::module_& m);
void bind_function_hooks(nb::module_& m);
void bind_link_hooks(nb::module_& m);
void bind_serializers(nb::module_& m);
void bind_data(nb::module_& datasets, nb::module_& iterators);
void bind_training(nb::module_& engine, nb::module_& networks);
// Written by python/generate.py.
void bind_functions(nb::module_& m);
void bind_links(nb::module_& m);
void bind_optimizers(nb::module_& m);
void bind_initializers(nb::module_& m);
void bind_extensions(nb::module_& m);
void bind_triggers(nb::module_& m);
void bind_random(nb::module_& m);

/// A routine of one array.
inline void def_of_one(nb::module_& m, const char* name, Array (*routine)(const Array&)) {
  m.def(
      name,
      [routine](nb::handle x) {
        Array a = array_of(x);
        return unlocked([&] { return routine(a); });
      },
      nb::arg("a"));
}

/// A method of arrays.
template <class Function, class... Extra>
void def_method(nb::module_& m, const char* name, Function function, const Extra&... extra) {
  nb::object array = m.attr("ndarray");
  nb::setattr(
      array, name,
      nb::cpp_function(function, nb::is_method(), nb::scope(array), nb::name(name), extra...));
}

/// A routine of xp, and the method of arrays of that name.
template <class Function, class... Extra>
void def_both(nb::module_& m, const char* name, Function function, const Extra&... extra) {
  m.def(name, function, nb::arg("a"), extra...);
  def_method(m, name, function, extra...);
}

}  // namespace rensa::python
