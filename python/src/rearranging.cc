// rensa.xp's routines that lay elements out anew.
#include <string>
#include <vector>

#include "bind.h"

namespace rensa::python {

namespace {

using Diagonal = Array (*)(const Array&, std::int64_t);

void bind_diagonal(nb::module_& m, const char* name, Diagonal routine) {
  m.def(
      name,
      [routine](nb::handle x, std::int64_t k) {
        Array a = array_of(x);
        return unlocked([&] { return routine(a, k); });
      },
      nb::arg("v"), nb::arg("k") = 0);
}

using Stack = Array (*)(const ArrayList&, const xp::StackOptions&);

void bind_stack(nb::module_& m, const char* name, Stack routine) {
  m.def(
      name,
      [routine](nb::handle arrays, nb::handle dtype, const std::string& casting) {
        std::vector<Array> all = arrays_of(arrays);
        xp::StackOptions options{.dtype = optional_dtype(dtype), .casting = casting};
        return unlocked([&] { return routine(all, options); });
      },
      nb::arg("tup"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("casting") = "same_kind");
}

using Split = std::vector<Array> (*)(const Array&, const IntegerList&, int);

void bind_split(nb::module_& m, const char* name, Split routine) {
  m.def(
      name,
      [routine](nb::handle x, nb::handle sections, int axis) {
        Array a = array_of(x);
        return nb::list(tuple_of(routine(a, integers_of(sections), axis)));
      },
      nb::arg("ary"), nb::arg("indices_or_sections"), nb::arg("axis") = 0);
}

Array roll(nb::handle x, nb::handle shift, nb::handle axis) {
  Array a = array_of(x);
  Shape shifts = shape_of_object(shift);
  if (axis.is_none()) return unlocked([&] { return xp::roll(a, shifts[0]); });
  Shape axes = shape_of_object(axis);
  return unlocked([&] { return xp::roll(a, shifts, axes); });
}

Array repeat(nb::handle x, nb::handle repeats, nb::handle axis) {
  Array a = array_of(x);
  OptionalAxis along = optional_axis(axis);
  IntegerList times = integers_of(repeats);
  return unlocked([&] { return xp::repeat(a, times, along); });
}

Array eye(std::int64_t n, nb::handle columns, std::int64_t k, nb::handle dtype, nb::handle device) {
  std::int64_t m = columns.is_none() ? n : nb::cast<std::int64_t>(columns);
  Dtype of = optional_dtype(dtype).value_or(float64);
  Placement where = placement_of(device);
  return unlocked([&] { return xp::eye(n, m, k, of, where); });
}

}  // namespace

void bind_rearranging(nb::module_& m) {
  m.def("eye", &eye, nb::arg("N"), nb::arg("M") = nb::none(), nb::arg("k") = 0,
        nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("device") = nb::none());
  bind_diagonal(m, "diag", xp::diag), bind_diagonal(m, "diagflat", xp::diagflat);
  bind_diagonal(m, "tril", xp::tril), bind_diagonal(m, "triu", xp::triu);
  def_of_one(m, "fliplr", xp::fliplr), def_of_one(m, "flipud", xp::flipud);
  def_of_one(m, "atleast_1d", xp::atleast_1d), def_of_one(m, "atleast_2d", xp::atleast_2d);
  def_of_one(m, "atleast_3d", xp::atleast_3d);
  bind_stack(m, "vstack", xp::vstack), bind_stack(m, "hstack", xp::hstack);
  bind_split(m, "split", xp::split), bind_split(m, "array_split", xp::array_split);
  m.def(
      "dstack",
      [](nb::handle arrays) {
        std::vector<Array> all = arrays_of(arrays);
        return unlocked([&] { return xp::dstack(all); });
      },
      nb::arg("tup"));
  m.def(
      "flip",
      [](nb::handle x, nb::handle axis) {
        Array a = array_of(x);
        Axes axes = axes_of(axis);
        return unlocked([&] { return xp::flip(a, axes); });
      },
      nb::arg("m"), nb::arg("axis") = nb::none());
  m.def(
      "rot90",
      [](nb::handle x, std::int64_t k, nb::handle axes) {
        return xp::rot90(array_of(x), k, shape_of_object(axes));
      },
      nb::arg("m"), nb::arg("k") = 1, nb::arg("axes") = nb::make_tuple(0, 1));
  m.def("roll", &roll, nb::arg("a"), nb::arg("shift"), nb::arg("axis") = nb::none());
  def_both(m, "repeat", &repeat, nb::arg("repeats"), nb::arg("axis") = nb::none());
  m.def(
      "tile",
      [](nb::handle x, nb::handle repetitions) {
        Array a = array_of(x);
        Shape times = shape_of_object(repetitions);
        return unlocked([&] { return xp::tile(a, times); });
      },
      nb::arg("A"), nb::arg("reps"));
  m.def(
      "append",
      [](nb::handle x, nb::handle values, nb::handle axis) {
        Array a = array_of(x), more = array_of(values);
        OptionalAxis along = optional_axis(axis);
        return unlocked([&] { return xp::append(a, more, along); });
      },
      nb::arg("arr"), nb::arg("values"), nb::arg("axis") = nb::none());
  m.def(
      "broadcast_arrays",
      [](const nb::args& arrays) {
        std::vector<Array> all = arrays_of(arrays);
        return tuple_of(xp::broadcast_arrays(all));
      },
      nb::arg("args"));
  m.def(
      "meshgrid",
      [](const nb::args& arrays, const std::string& indexing) {
        std::vector<Array> all = arrays_of(arrays);
        return tuple_of(unlocked([&] { return xp::meshgrid(all, indexing); }));
      },
      nb::arg("xi"), nb::kw_only(), nb::arg("indexing") = "xy");
}

}  // namespace rensa::python
