// rensa.xp's routines by indices, and the indices of parts of arrays.
#include "rensa/array/indexing.h"

#include "routines.h"

namespace rensa::python {

namespace {

/// The elements of `a` that stand between brackets.
rensa::detail::IndexedElements elements(const char* name, const Array& a, nb::handle key) {
  std::vector<Index> index = index_of(key);
  return unlocked([&] { return rensa::detail::apply_index(name, a, index); });
}

void bind_scatter(nb::module_& m, const char* name, operations::ScatterMode mode) {
  auto scatter = [name, mode](const Array& a, nb::handle slices, nb::handle value) {
    Array values = array_beside(value, a);
    if (scalar_of(value)) values = values.astype(a.dtype(), false);
    rensa::detail::IndexedElements chosen = elements(name, a, slices);
    unlocked([&] { rensa::detail::scatter(name, mode, chosen, values); });
  };
  m.def(name, scatter, nb::arg("a"), nb::arg("slices").none(), nb::arg("value"));
  def_method(m, name, scatter, nb::arg("slices").none(), nb::arg("value"));
}

void bind_writes(nb::module_& m) {
  auto by_mask = [&m](const char* name, void (*write)(const Array&, const Array&, const Array&),
                      const char* last) {
    m.def(
        name,
        [write](const Array& a, nb::handle mask, nb::handle values) {
          Array where = array_beside(mask, a), from = array_beside(values, a);
          unlocked([&] { write(a, where, from); });
        },
        nb::arg("a"), nb::arg("mask"), nb::arg(last));
  };
  by_mask("place", xp::place, "vals"), by_mask("putmask", xp::putmask, "values");
  auto put = [](const Array& a, nb::handle indices, nb::handle values, const std::string& mode) {
    Array at = array_beside(indices, a), from = array_beside(values, a);
    unlocked([&] { xp::put(a, at, from, mode_of(mode)); });
  };
  m.def("put", put, nb::arg("a"), nb::arg("ind"), nb::arg("v"), nb::arg("mode") = "raise");
  def_method(m, "put", put, nb::arg("indices"), nb::arg("values"), nb::arg("mode") = "raise");
  m.def(
      "put_along_axis",
      [](const Array& a, nb::handle indices, nb::handle values, int axis) {
        Array at = array_beside(indices, a), from = array_beside(values, a);
        unlocked([&] { xp::put_along_axis(a, at, from, axis); });
      },
      nb::arg("arr"), nb::arg("indices"), nb::arg("values"), nb::arg("axis"));
  m.def(
      "fill_diagonal",
      [](const Array& a, nb::handle value, bool wrap) {
        if (auto number = scalar_of(value))
          return unlocked([&] { xp::fill_diagonal(a, *number, wrap); });
        Array values = array_beside(value, a);
        unlocked([&] { xp::fill_diagonal(a, values, wrap); });
      },
      nb::arg("a"), nb::arg("val"), nb::arg("wrap") = false);
}

void bind_choices(nb::module_& m) {
  def_both(
      m, "choose",
      [](nb::handle x, nb::handle choices, nb::handle out, const std::string& mode) {
        Array a = array_of(x);
        std::vector<Array> all = arrays_of(choices);
        OptionalArray place(out);
        xp::ChooseOptions options{.out = place.option(), .mode = mode_of(mode)};
        return stored(place, unlocked([&] { return xp::choose(a, all, options); }));
      },
      nb::arg("choices"), nb::arg("out") = nb::none(), nb::arg("mode") = "raise");
  auto compress = [](const Array& a, nb::handle condition, nb::handle axis, nb::handle out) {
    Array where = array_beside(condition, a);
    OptionalArray place(out);
    xp::CompressOptions options{.axis = axes_of(axis), .out = place.option()};
    return stored(place, unlocked([&] { return xp::compress(where, a, options); }));
  };
  def_method(m, "compress", compress, nb::arg("condition"), nb::arg("axis") = nb::none(),
             nb::arg("out") = nb::none());
  m.def(
      "compress",
      [compress](nb::handle condition, nb::handle x, nb::handle axis, nb::handle out) {
        return compress(array_of(x), condition, axis, out);
      },
      nb::arg("condition"), nb::arg("a"), nb::arg("axis") = nb::none(),
      nb::arg("out") = nb::none());
  m.def(
      "select",
      [](nb::handle conditions, nb::handle choices, nb::handle otherwise) {
        std::vector<Array> where = arrays_of(conditions), of = arrays_of(choices);
        Scalar value =
            scalar_of(otherwise) ? *scalar_of(otherwise) : array_of(otherwise).item_scalar();
        return unlocked([&] { return xp::select(where, of, value); });
      },
      nb::arg("condlist"), nb::arg("choicelist"), nb::arg("default") = 0);
}

using Triangle = std::vector<Array> (*)(std::int64_t, std::int64_t, std::optional<std::int64_t>,
                                        Placement);
using TriangleOf = std::vector<Array> (*)(const Array&, std::int64_t);

void bind_triangle(nb::module_& m, const char* name, Triangle of, const char* from_name,
                   TriangleOf from) {
  m.def(
      name,
      [of](std::int64_t n, std::int64_t k, std::optional<std::int64_t> columns, nb::handle device) {
        Placement where = placement_of(device);
        return tuple_of(unlocked([&] { return of(n, k, columns, where); }));
      },
      nb::arg("n"), nb::arg("k") = 0, nb::arg("m") = nb::none(), nb::kw_only(),
      nb::arg("device") = nb::none());
  m.def(
      from_name,
      [from](nb::handle x, std::int64_t k) {
        Array a = array_of(x);
        return tuple_of(unlocked([&] { return from(a, k); }));
      },
      nb::arg("arr"), nb::arg("k") = 0);
}

void bind_grids(nb::module_& m) {
  bind_triangle(m, "tril_indices", xp::tril_indices, "tril_indices_from", xp::tril_indices_from);
  bind_triangle(m, "triu_indices", xp::triu_indices, "triu_indices_from", xp::triu_indices_from);
  m.def(
      "diag_indices",
      [](std::int64_t n, int ndim, nb::handle device) {
        return tuple_of(xp::diag_indices(n, ndim, placement_of(device)));
      },
      nb::arg("n"), nb::arg("ndim") = 2, nb::kw_only(), nb::arg("device") = nb::none());
  m.def(
      "diag_indices_from",
      [](nb::handle x) { return tuple_of(xp::diag_indices_from(array_of(x))); }, nb::arg("arr"));
  m.def(
      "mask_indices",
      [](std::int64_t n, nb::handle mask, std::int64_t k, nb::handle device) {
        auto of = [&](const Array& a, std::int64_t at) { return nb::cast<Array>(mask(a, at)); };
        return tuple_of(xp::mask_indices(n, of, k, placement_of(device)));
      },
      nb::arg("n"), nb::arg("mask_func"), nb::arg("k") = 0, nb::kw_only(),
      nb::arg("device") = nb::none());
  m.def(
      "indices",
      [](nb::handle dimensions, nb::handle dtype, nb::handle device) {
        return xp::indices(shape_of_object(dimensions), optional_dtype(dtype).value_or(int64),
                           placement_of(device));
      },
      nb::arg("dimensions"), nb::arg("dtype") = nb::none(), nb::kw_only(),
      nb::arg("device") = nb::none());
  m.def("ix_", [](const nb::args& args) {
    std::vector<Array> all = arrays_of(args);
    return tuple_of(unlocked([&] { return xp::ix_(all); }));
  });
  m.def(
      "unravel_index",
      [](nb::handle indices, nb::handle dims, nb::handle order) {
        Array at = array_of(indices);
        Shape shape = shape_of_object(dims);
        Order in = order_of(order);
        return tuple_of(unlocked([&] { return xp::unravel_index(at, shape, in); }));
      },
      nb::arg("indices"), nb::arg("dims"), nb::arg("order").none() = "C");
  m.def(
      "ravel_multi_index",
      [](nb::handle coordinates, nb::handle dims, const std::string& mode, nb::handle order) {
        std::vector<Array> all = arrays_of(coordinates);
        Shape shape = shape_of_object(dims);
        Order in = order_of(order);
        return unlocked([&] { return xp::ravel_multi_index(all, shape, mode_of(mode), in); });
      },
      nb::arg("multi_index"), nb::arg("dims"), nb::arg("mode") = "raise",
      nb::arg("order").none() = "C");
}

void bind_diagonals(nb::module_& m) {
  def_both(
      m, "diagonal",
      [](nb::handle x, std::int64_t offset, int axis1, int axis2) {
        return xp::diagonal(array_of(x), offset, axis1, axis2);
      },
      nb::arg("offset") = 0, nb::arg("axis1") = 0, nb::arg("axis2") = 1);
  def_both(
      m, "trace",
      [](nb::handle x, std::int64_t offset, int axis1, int axis2, nb::handle dtype,
         nb::handle out) {
        Array a = array_of(x);
        OptionalArray place(out);
        xp::TraceOptions options{.offset = offset,
                                 .axis1 = axis1,
                                 .axis2 = axis2,
                                 .dtype = optional_dtype(dtype),
                                 .out = place.option()};
        return stored(place, unlocked([&] { return xp::trace(a, options); }));
      },
      nb::arg("offset") = 0, nb::arg("axis1") = 0, nb::arg("axis2") = 1,
      nb::arg("dtype") = nb::none(), nb::arg("out") = nb::none());
}

}  // namespace

void bind_indexing(nb::module_& m) {
  bind_scatter(m, "scatter_add", operations::ScatterMode::add);
  bind_scatter(m, "scatter_max", operations::ScatterMode::max);
  bind_scatter(m, "scatter_min", operations::ScatterMode::min);
  bind_writes(m);
  bind_choices(m);
  bind_grids(m);
  bind_diagonals(m);
}

}  // namespace rensa::python
