// The parts of the module.
#pragma once

#include "convert.h"

namespace rensa::python {

void bind_errors(nb::module_& engine);
void bind_devices(nb::module_& m);
void bind_arrays(nb::module_& m);
void bind_ufuncs(nb::module_& m);
void bind_routines(nb::module_& m);
void bind_random(nb::module_& m);

}  // namespace rensa::python
