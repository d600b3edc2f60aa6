// rensa.xp's routines that lay elements out anew.
#include <algorithm>
#include <string>
#include <vector>

#include "routines.h"

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
        return list_of(routine(a, integers_of(sections), axis));
      },
      nb::arg("ary"), nb::arg("indices_or_sections"), nb::arg("axis") = 0);
}

Array roll(nb::handle x, nb::handle shift, nb::handle axis) {
  Array a = array_of(x);
  Shape shifts = shape_of_object(shift);
  if (axis.is_none()) {
    std::int64_t whole = 0;
    for (std::int64_t one : shifts) whole += one;
    return unlocked([&] { return xp::roll(a, whole); });
  }
  Shape axes = shape_of_object(axis);
  return unlocked([&] { return xp::roll(a, shifts, axes); });
}

Array repeat(nb::handle x, nb::handle repeats, nb::handle axis) {
  Array a = array_of(x);
  OptionalAxis along = optional_axis(axis);
  if (nb::isinstance<Array>(repeats)) {
    Array counts = array_of(repeats);
    return unlocked([&] { return xp::repeat(a, counts, along); });
  }
  IntegerList times = integers_of(repeats);
  return unlocked([&] { return xp::repeat(a, times, along); });
}

using OfEye = Array (*)(std::int64_t, const xp::EyeOptions&);

/// A diagonal that lies beyond any matrix stands for those that lie further out.
std::int64_t nearest_diagonal(const nb::int_& k) {
  int overflow = 0;
  std::int64_t value = PyLong_AsLongLongAndOverflow(k.ptr(), &overflow);
  constexpr std::int64_t kBeyond = std::int64_t(1) << 40;
  if (overflow) return overflow > 0 ? kBeyond : -kBeyond;
  return std::clamp(value, -kBeyond, kBeyond);
}

void bind_eye(nb::module_& m, const char* name, OfEye make) {
  m.def(
      name,
      [make](std::int64_t n, std::optional<std::int64_t> columns, nb::int_ k, nb::handle dtype,
             nb::handle order, nb::handle device) {
        xp::EyeOptions options{.M = columns,
                               .k = nearest_diagonal(k),
                               .dtype = optional_dtype(dtype).value_or(float64),
                               .order = order_of(order),
                               .device = placement_of(device)};
        return unlocked([&] { return make(n, options); });
      },
      nb::arg("N"), nb::arg("M") = nb::none(), nb::arg("k") = 0, nb::arg("dtype") = nb::none(),
      nb::arg("order").none() = "C", nb::kw_only(), nb::arg("device") = nb::none());
}

using Atleast = Array (*)(const Array&);

/// Of several arrays a list.
void bind_atleast(nb::module_& m, const char* name, Atleast routine) {
  m.def(name, [routine](const nb::args& args) -> nb::object {
    std::vector<Array> all = arrays_of(args);
    if (all.size() == 1) return nb::cast(routine(all[0]));
    for (Array& a : all) a = routine(a);
    return list_of(all);
  });
}

using SplitAlong = std::vector<Array> (*)(const Array&, const IntegerList&);

void bind_split_along(nb::module_& m, const char* name, SplitAlong routine) {
  m.def(
      name,
      [routine](nb::handle x, nb::handle sections) {
        return list_of(routine(array_of(x), integers_of(sections)));
      },
      nb::arg("ary"), nb::arg("indices_or_sections"));
}

// --- removing and inserting ---

Array without(nb::handle x, nb::handle object, nb::handle axis) {
  Array a = array_of(x);
  OptionalAxis along = optional_axis(axis);
  std::vector<Index> index = index_of(object);
  if (index.size() == 1 && index[0].is_array())
    return unlocked([&] { return xp::delete_(a, index[0].array(), along); });
  if (PySlice_Check(object.ptr())) {
    std::int64_t extent = along.given() ? a.shape(along.axis()) : a.size();
    nb::object chosen = nb::borrow(object).attr("indices")(extent);
    Array at = xp::arange(nb::cast<std::int64_t>(chosen[0]), nb::cast<std::int64_t>(chosen[1]),
                          nb::cast<std::int64_t>(chosen[2]), int64, a.device());
    return unlocked([&] { return xp::delete_(a, at, along); });
  }
  if (is_integer(object)) {
    auto at = nb::cast<std::int64_t>(nb::int_(nb::borrow(object)));
    return unlocked([&] { return xp::delete_(a, at, along); });
  }
  Array at = array_of(object);
  if (at.size() == 0) at = at.astype(int64, false);
  return unlocked([&] { return xp::delete_(a, at, along); });
}

void bind_editing(nb::module_& m) {
  m.def("delete", &without, nb::arg("arr"), nb::arg("obj"), nb::arg("axis") = nb::none());
  m.def(
      "insert",
      [](nb::handle x, nb::handle object, nb::handle values, nb::handle axis) {
        Array a = array_of(x), more = array_beside(values, a);
        OptionalAxis along = optional_axis(axis);
        IntegerList at = integers_of(object);
        return unlocked([&] { return xp::insert(a, at, more, along); });
      },
      nb::arg("arr"), nb::arg("obj"), nb::arg("values"), nb::arg("axis") = nb::none());
  m.def(
      "trim_zeros",
      [](nb::handle x, const std::string& trim, nb::handle axis) {
        Array a = array_of(x);
        OptionalAxis along = optional_axis(axis);
        return unlocked([&] { return xp::trim_zeros(a, trim, along); });
      },
      nb::arg("filt"), nb::arg("trim") = "fb", nb::arg("axis") = nb::none());
  m.def(
      "resize",
      [](nb::handle x, nb::handle new_shape) {
        Array a = array_of(x);
        Shape shape = shape_of_object(new_shape);
        return unlocked([&] { return xp::resize(a, shape); });
      },
      nb::arg("a"), nb::arg("new_shape"));
  auto joined = [&m](const char* name, Array (*routine)(const ArrayList&)) {
    m.def(
        name,
        [routine](nb::handle arrays) {
          std::vector<Array> all = arrays_of(arrays);
          return unlocked([&] { return routine(all); });
        },
        nb::arg("tup"));
  };
  joined("dstack", xp::dstack), joined("column_stack", xp::column_stack);
  m.def(
      "rollaxis",
      [](nb::handle x, int axis, int start) { return xp::rollaxis(array_of(x), axis, start); },
      nb::arg("a"), nb::arg("axis"), nb::arg("start") = 0);
  m.def(
      "vander",
      [](nb::handle x, std::optional<std::int64_t> n, bool increasing) {
        Array a = array_of(x);
        return unlocked([&] { return xp::vander(a, n, increasing); });
      },
      nb::arg("x"), nb::arg("N") = nb::none(), nb::arg("increasing") = false);
}

/// numpy.broadcast.
void bind_broadcast(nb::module_& m) {
  nb::class_<xp::broadcast>(m, "broadcast", "The shape that arrays broadcast to, and they in it.")
      .def("__init__",
           [](xp::broadcast* self, const nb::args& args) {
             new (self) xp::broadcast(ArrayList(arrays_of(args)));
           })
      .def_prop_ro("shape", [](const xp::broadcast& b) { return tuple_of_extents(b.shape()); })
      .def_prop_ro("nd", &xp::broadcast::nd)
      .def_prop_ro("ndim", &xp::broadcast::ndim)
      .def_prop_ro("size", &xp::broadcast::size)
      .def_prop_ro("values", [](const xp::broadcast& b) { return tuple_of(b.values()); });
  m.def("broadcast_shapes", [](const nb::args& args) {
    std::vector<Shape> shapes;
    for (nb::handle one : args) shapes.push_back(shape_of_object(one));
    return tuple_of_extents(xp::broadcast_shapes(shapes));
  });
}

// --- memory ---

void bind_stride_tricks(nb::module_& m) {
  nb::module_ tricks = m.def_submodule("lib").def_submodule("stride_tricks");
  tricks.def(
      "as_strided",
      [](nb::handle x, nb::handle shape, nb::handle strides) {
        Array a = array_of(x);
        Shape extents = shape.is_none() ? a.shape() : shape_of_object(shape);
        Shape steps = strides.is_none() ? a.strides() : shape_of_object(strides);
        return xp::lib::stride_tricks::as_strided(a, extents, steps);
      },
      nb::arg("x"), nb::arg("shape") = nb::none(), nb::arg("strides") = nb::none());
  tricks.def(
      "sliding_window_view",
      [](nb::handle x, nb::handle window, nb::handle axis) {
        Array a = array_of(x);
        Shape extents = shape_of_object(window);
        if (axis.is_none()) return xp::lib::stride_tricks::sliding_window_view(a, extents);
        return xp::lib::stride_tricks::sliding_window_view(a, extents, shape_of_object(axis));
      },
      nb::arg("x"), nb::arg("window_shape"), nb::arg("axis") = nb::none());
}

void bind_memory(nb::module_& m) {
  m.def(
      "shares_memory",
      [](nb::handle x, nb::handle y, nb::handle) {
        return xp::shares_memory(array_of(x), array_of(y));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("max_work") = nb::none());
  m.def(
      "may_share_memory",
      [](nb::handle x, nb::handle y, nb::handle) {
        return xp::may_share_memory(array_of(x), array_of(y));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("max_work") = nb::none());
  m.def(
      "byte_bounds",
      [](nb::handle x) {
        auto [low, high] = xp::byte_bounds(array_of(x));
        return nb::make_tuple(reinterpret_cast<std::uintptr_t>(low),
                              reinterpret_cast<std::uintptr_t>(high));
      },
      nb::arg("a"));
  m.def(
      "isfortran", [](nb::handle x) { return xp::isfortran(array_of(x)); }, nb::arg("a"));
  m.def(
      "asfortranarray",
      [](nb::handle x, nb::handle dtype) {
        Array a = array_of(x);
        auto to = optional_dtype(dtype);
        return itself_or(x, unlocked([&] { return xp::asfortranarray(a, to); }));
      },
      nb::arg("a"), nb::arg("dtype") = nb::none());
  m.def(
      "ascontiguousarray",
      [](nb::handle x, nb::handle dtype) {
        Array a = array_of(x);
        auto to = optional_dtype(dtype);
        Array made =
            unlocked([&] { return to ? xp::ascontiguousarray(a, *to) : xp::ascontiguousarray(a); });
        return itself_or(x, made);
      },
      nb::arg("a"), nb::arg("dtype") = nb::none());
  bind_stride_tricks(m);
}

void bind_repetitions(nb::module_& m) {
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
        return list_of(xp::broadcast_arrays(all));
      },
      nb::arg("args"));
  m.def(
      "meshgrid",
      [](const nb::args& arrays, const std::string& indexing, bool sparse, bool copy) {
        std::vector<Array> all = arrays_of(arrays);
        xp::MeshgridOptions options{.indexing = indexing, .sparse = sparse, .copy = copy};
        return list_of(unlocked([&] { return xp::meshgrid(all, options); }));
      },
      nb::arg("xi"), nb::kw_only(), nb::arg("indexing") = "xy", nb::arg("sparse") = false,
      nb::arg("copy") = true);
}

}  // namespace

void bind_rearranging(nb::module_& m) {
  bind_eye(m, "eye", xp::eye), bind_eye(m, "tri", xp::tri);
  bind_diagonal(m, "diag", xp::diag), bind_diagonal(m, "diagflat", xp::diagflat);
  bind_diagonal(m, "tril", xp::tril), bind_diagonal(m, "triu", xp::triu);
  def_of_one(m, "fliplr", xp::fliplr), def_of_one(m, "flipud", xp::flipud);
  bind_atleast(m, "atleast_1d", xp::atleast_1d), bind_atleast(m, "atleast_2d", xp::atleast_2d);
  bind_atleast(m, "atleast_3d", xp::atleast_3d);
  bind_stack(m, "vstack", xp::vstack), bind_stack(m, "hstack", xp::hstack);
  bind_split(m, "split", xp::split), bind_split(m, "array_split", xp::array_split);
  bind_split_along(m, "hsplit", xp::hsplit), bind_split_along(m, "vsplit", xp::vsplit);
  bind_split_along(m, "dsplit", xp::dsplit);
  bind_editing(m);
  bind_broadcast(m);
  bind_memory(m);
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
  bind_repetitions(m);
}

}  // namespace rensa::python
