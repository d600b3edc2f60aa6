// What the bindings of xp's routines share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bind.h"

namespace rensa::python {

void bind_creation(nb::module_& m);
void bind_methods(nb::module_& m);
void bind_io(nb::module_& m);
void bind_sorting(nb::module_& m);
void bind_indexing(nb::module_& m);
void bind_math(nb::module_& m);
void bind_polynomials(nb::module_& m);
void bind_histograms(nb::module_& m);
void bind_calculus(nb::module_& m);
void bind_equations(nb::module_& linalg);
void bind_generator(nb::module_& random);

/// An order by its letter, of either case; None is `otherwise`. Throws ValueError.
Order order_of(nb::handle object, char otherwise = 'C');
/// The seed of an integer or several, or of chance for None. Throws TypeError (nb::type_error).
std::uint64_t seed_of(nb::handle object);
/// "raise", "wrap" or "clip".
inline IndexModeOption mode_of(const std::string& mode) { return std::string_view(mode); }

inline nb::list list_of(const std::vector<Array>& arrays) { return nb::list(tuple_of(arrays)); }

inline nb::tuple tuple_of_extents(const Shape& shape) {
  nb::object made = nb::steal(PyTuple_New(shape.size()));
  for (int i = 0; i < shape.size(); ++i) {
    PyTuple_SET_ITEM(made.ptr(), i, PyLong_FromLongLong(shape[i]));
  }
  return nb::borrow<nb::tuple>(made);
}

/// An array, or none of one.
inline Array array_or_none(nb::handle object) {
  return object.is_none() ? Array() : array_of(object);
}
/// The object that was given where the result is it, else the result.
inline Returned<Array> itself_or(nb::handle given, const Array& made) {
  if (nb::isinstance<Array>(given)) {
    const Array& a = nb::cast<const Array&>(given);
    bool same = a.data() == made.data() && a.dtype() == made.dtype() && a.shape() == made.shape() &&
                a.strides() == made.strides();
    if (same && a.storage() == made.storage()) return nb::object(nb::borrow(given));
  }
  return nb::object(nb::cast(made));
}
/// What a call gives: the `out` that it was given, else the result.
inline Returned<Array> stored(const OptionalArray& place, const Array& made) {
  return place.array() ? nb::borrow(place.object()) : nb::object(nb::cast(made));
}
/// subok, which is there for NumPy's subclasses. Throws TypeError (nb::type_error).
inline void refuse_subclasses(nb::handle subok) {
  if (!subok.is_none()) throw nb::type_error("subok: there are no subclasses of arrays");
}
/// On the device of another array.
inline Array array_beside(nb::handle object, const Array& other) {
  Array a = array_of(object);
  return nb::isinstance<Array>(object) ? a : a.to(other.device());
}

}  // namespace rensa::python
