// Routines of rensa.xp that are no ufuncs.

#include <string>
#include <vector>

#include "rensa/core/error.h"
#include "routines.h"

namespace rensa::python {

namespace {

// --- reductions ---

using Reduction = Array (*)(const Array&, const xp::ReduceOptions&);

void bind_reduction(nb::module_& m, const char* name, Reduction reduce) {
  def_both(
      m, name,
      [reduce](nb::handle x, nb::handle axis, nb::handle dtype, nb::handle out, bool keepdims,
               nb::handle initial, nb::handle where) {
        Array a = array_of(x);
        OptionalArray place(out), mask(where);
        xp::ReduceOptions options{.axis = axes_of(axis),
                                  .keepdims = keepdims,
                                  .dtype = optional_dtype(dtype),
                                  .out = place.option(),
                                  .initial = scalar_of(initial),
                                  .where = mask.option()};
        return stored(place, unlocked([&] { return reduce(a, options); }));
      },
      nb::arg("axis") = nb::none(), nb::arg("dtype") = nb::none(), nb::arg("out") = nb::none(),
      nb::arg("keepdims") = false, nb::arg("initial") = nb::none(), nb::arg("where") = true);
}

void bind_extreme(nb::module_& m, const char* name, Reduction reduce) {
  def_both(
      m, name,
      [reduce](nb::handle x, nb::handle axis, nb::handle out, bool keepdims, nb::handle initial,
               nb::handle where) {
        Array a = array_of(x);
        OptionalArray place(out), mask(where);
        xp::ReduceOptions options{.axis = axes_of(axis),
                                  .keepdims = keepdims,
                                  .out = place.option(),
                                  .initial = scalar_of(initial),
                                  .where = mask.option()};
        return stored(place, unlocked([&] { return reduce(a, options); }));
      },
      nb::arg("axis") = nb::none(), nb::arg("out") = nb::none(), nb::arg("keepdims") = false,
      nb::arg("initial") = nb::none(), nb::arg("where") = true);
}

using Position = Array (*)(const Array&, const xp::AxisOptions&);

void bind_position(nb::module_& m, const char* name, Position position) {
  def_both(
      m, name,
      [position](nb::handle x, nb::handle axis, nb::handle out, bool keepdims, nb::handle dtype) {
        Array a = array_of(x);
        OptionalArray place(out);
        auto to = optional_dtype(dtype);
        xp::AxisOptions options{.axis = axes_of(axis), .keepdims = keepdims, .out = place.option()};
        return stored(place, unlocked([&] {
                        Array found = position(a, options);
                        return to ? found.astype(*to, false) : found;
                      }));
      },
      nb::arg("axis") = nb::none(), nb::arg("out") = nb::none(), nb::arg("keepdims") = false,
      nb::kw_only(), nb::arg("dtype") = nb::none());
}

using Spread = Array (*)(const Array&, const xp::VarianceOptions&);

void bind_spread(nb::module_& m, const char* name, Spread spread) {
  def_both(
      m, name,
      [spread](nb::handle x, nb::handle axis, nb::handle dtype, nb::handle out, double ddof,
               bool keepdims, nb::handle where, nb::handle mean, std::optional<double> correction) {
        Array a = array_of(x);
        OptionalArray place(out), mask(where), known(mean);
        xp::VarianceOptions options{.axis = axes_of(axis),
                                    .ddof = ddof,
                                    .keepdims = keepdims,
                                    .dtype = optional_dtype(dtype),
                                    .out = place.option(),
                                    .where = mask.option(),
                                    .mean = known.option(),
                                    .correction = correction};
        return stored(place, unlocked([&] { return spread(a, options); }));
      },
      nb::arg("axis") = nb::none(), nb::arg("dtype") = nb::none(), nb::arg("out") = nb::none(),
      nb::arg("ddof") = 0.0, nb::arg("keepdims") = false, nb::kw_only(), nb::arg("where") = true,
      nb::arg("mean") = nb::none(), nb::arg("correction") = nb::none());
}

using Scan = Array (*)(const Array&, const xp::ScanOptions&);

void bind_scan(nb::module_& m, const char* name, Scan scan) {
  def_both(
      m, name,
      [scan](nb::handle x, nb::handle axis, nb::handle dtype, nb::handle out) {
        Array a = array_of(x);
        OptionalArray place(out);
        xp::ScanOptions options{
            .axis = axes_of(axis), .dtype = optional_dtype(dtype), .out = place.option()};
        return stored(place, unlocked([&] { return scan(a, options); }));
      },
      nb::arg("axis") = nb::none(), nb::arg("dtype") = nb::none(), nb::arg("out") = nb::none());
}

void bind_reductions(nb::module_& m) {
  bind_reduction(m, "sum", xp::sum), bind_reduction(m, "prod", xp::prod);
  bind_reduction(m, "mean", xp::mean);
  bind_extreme(m, "max", xp::max), bind_extreme(m, "min", xp::min);
  bind_extreme(m, "any", xp::any), bind_extreme(m, "all", xp::all);
  bind_position(m, "argmax", xp::argmax), bind_position(m, "argmin", xp::argmin);
  bind_position(m, "ptp", xp::ptp);
  bind_spread(m, "var", xp::var), bind_spread(m, "std", xp::std);
  bind_scan(m, "cumsum", xp::cumsum), bind_scan(m, "cumprod", xp::cumprod);
}

// --- shapes ---

/// NumPy's a.reshape(2, 3) and a.reshape((2, 3)).
Shape shape_of_arguments(const nb::args& args) {
  if (args.size() == 1) return shape_of_object(args[0]);
  return shape_of_object(args);
}

void bind_axes(nb::module_& m) {
  def_both(
      m, "squeeze",
      [](nb::handle x, nb::handle axis) -> Array {
        Array a = array_of(x);
        if (axis.is_none()) return a.squeeze();
        Shape axes = shape_of_object(axis);
        // NumPy lets an array without axes be squeezed along the first and the last.
        if (a.ndim() == 0 && axes.size() == 1 && (axes[0] == 0 || axes[0] == -1)) return a;
        return a.squeeze(axes);
      },
      nb::arg("axis") = nb::none());
  def_both(
      m, "swapaxes",
      [](nb::handle x, int first, int second) { return array_of(x).swapaxes(first, second); },
      nb::arg("axis1"), nb::arg("axis2"));
  m.def(
      "expand_dims",
      [](nb::handle x, nb::handle axis) {
        return xp::expand_dims(array_of(x), shape_of_object(axis));
      },
      nb::arg("a"), nb::arg("axis"));
  m.def(
      "moveaxis",
      [](nb::handle x, nb::handle source, nb::handle destination) {
        return xp::moveaxis(array_of(x), shape_of_object(source), shape_of_object(destination));
      },
      nb::arg("a"), nb::arg("source"), nb::arg("destination"));
  m.def(
      "broadcast_to",
      [](nb::handle x, nb::handle shape) {
        return array_of(x).broadcast_to(shape_of_object(shape));
      },
      nb::arg("array"), nb::arg("shape"));
}

void bind_joins(nb::module_& m) {
  m.def(
      "concatenate",
      [](nb::handle arrays, nb::handle axis, nb::handle out, nb::handle dtype,
         const std::string& casting) {
        std::vector<Array> all = arrays_of(arrays);
        OptionalArray place(out);
        xp::JoinOptions options{.axis = optional_axis(axis),
                                .out = place.option(),
                                .dtype = optional_dtype(dtype),
                                .casting = casting};
        return stored(place, unlocked([&] { return xp::concatenate(all, options); }));
      },
      nb::arg("arrays"), nb::arg("axis").none() = 0, nb::arg("out") = nb::none(), nb::kw_only(),
      nb::arg("dtype") = nb::none(), nb::arg("casting") = "same_kind");
  m.def(
      "stack",
      [](nb::handle arrays, int axis, nb::handle out, nb::handle dtype,
         const std::string& casting) {
        std::vector<Array> all = arrays_of(arrays);
        OptionalArray place(out);
        xp::JoinOptions options{.axis = axis,
                                .out = place.option(),
                                .dtype = optional_dtype(dtype),
                                .casting = casting};
        return stored(place, unlocked([&] { return xp::stack(all, options); }));
      },
      nb::arg("arrays"), nb::arg("axis") = 0, nb::arg("out") = nb::none(), nb::kw_only(),
      nb::arg("dtype") = nb::none(), nb::arg("casting") = "same_kind");
}

void bind_shapes(nb::module_& m) {
  def_method(
      m, "reshape",
      [](const Array& a, const nb::args& args, nb::handle order, std::optional<bool> copy) {
        Shape shape = shape_of_arguments(args);
        Order in = order_of(order);
        return unlocked([&] { return a.reshape(shape, {.order = in, .copy = copy}); });
      },
      nb::arg("shape"), nb::kw_only(), nb::arg("order").none() = "C", nb::arg("copy") = nb::none());
  def_method(
      m, "transpose",
      [](const Array& a, const nb::args& args) {
        if (args.size() == 0 || (args.size() == 1 && args[0].is_none())) return a.transpose();
        return a.transpose(shape_of_arguments(args));
      },
      nb::arg("axes"));
  m.def(
      "reshape",
      [](nb::handle x, nb::handle shape, nb::handle order, std::optional<bool> copy) {
        Array a = array_of(x);
        Shape extents = shape_of_object(shape);
        Order in = order_of(order);
        return unlocked([&] { return a.reshape(extents, {.order = in, .copy = copy}); });
      },
      nb::arg("a"), nb::arg("shape"), nb::arg("order").none() = "C", nb::kw_only(),
      nb::arg("copy") = nb::none());
  m.def(
      "transpose",
      [](nb::handle x, nb::handle axes) {
        Array a = array_of(x);
        return axes.is_none() ? a.transpose() : a.transpose(shape_of_object(axes));
      },
      nb::arg("a"), nb::arg("axes") = nb::none());
  def_both(
      m, "ravel",
      [](nb::handle x, nb::handle order) {
        Array a = array_of(x);
        Order in = order_of(order);
        return unlocked([&] { return a.ravel(in); });
      },
      nb::arg("order").none() = "C");
  def_method(
      m, "flatten",
      [](const Array& a, nb::handle order) {
        Order in = order_of(order);
        return unlocked([&] { return a.flatten(in); });
      },
      nb::arg("order").none() = "C");
  bind_axes(m);
  bind_joins(m);
}

// --- the rest ---

Array where(nb::handle condition, nb::handle x, nb::handle y) {
  Array mask = array_of(condition);
  Operand a = operand_of(x), b = operand_of(y);
  return unlocked([&] {
    auto* first = std::get_if<Array>(&a);
    auto* second = std::get_if<Array>(&b);
    if (first && second) return xp::where(mask, *first, *second);
    if (first) return xp::where(mask, *first, std::get<Scalar>(b));
    if (second) return xp::where(mask, std::get<Scalar>(a), *second);
    return xp::where(mask, array_of_operand(a), array_of_operand(b));
  });
}

/// self @ other, and NotImplemented where the other is nothing to compute with.
template <bool reflected> nb::object multiply_matrices(const Array& self, nb::handle other) {
  if (!is_operand(other)) return nb::borrow(Py_NotImplemented);
  Array operand = array_of(other);
  return nb::cast(
      unlocked([&] { return reflected ? xp::matmul(operand, self) : xp::matmul(self, operand); }));
}

void bind_comparisons(nb::module_& m) {
  m.def(
      "copyto",
      [](const Array& to, nb::handle from, const std::string& casting, nb::handle where) {
        Array mask = where.ptr() == Py_True ? Array() : array_beside(where, to);
        if (scalar_of(where) && mask.defined()) mask = mask.astype(bool_, false);
        if (auto number = scalar_of(from))
          return unlocked([&] { xp::copyto(to, *number, casting, mask); });
        Array source = array_of(from);
        unlocked([&] { xp::copyto(to, source.to(to.device()), casting, mask); });
      },
      nb::arg("dst"), nb::arg("src"), nb::arg("casting") = "same_kind", nb::arg("where") = true);
  m.def(
      "array_equal",
      [](nb::handle x, nb::handle y, bool equal_nan) {
        Array a = array_of(x), b = array_of(y);
        return unlocked([&] { return xp::array_equal(a, b, equal_nan); });
      },
      nb::arg("a1"), nb::arg("a2"), nb::arg("equal_nan") = false);
  m.def(
      "array_equiv",
      [](nb::handle x, nb::handle y) {
        Array a = array_of(x), b = array_of(y);
        return unlocked([&] { return xp::array_equiv(a, b); });
      },
      nb::arg("a1"), nb::arg("a2"));
  m.def(
      "allclose",
      [](nb::handle x, nb::handle y, double rtol, double atol, bool equal_nan) {
        Array a = array_of(x), b = array_of(y);
        return unlocked([&] { return xp::allclose(a, b, rtol, atol, equal_nan); });
      },
      nb::arg("a"), nb::arg("b"), nb::arg("rtol") = 1e-5, nb::arg("atol") = 1e-8,
      nb::arg("equal_nan") = false);
}

void bind_others(nb::module_& m) {
  m.def(
      "matmul",
      [](nb::handle x, nb::handle y, nb::handle out, nb::handle axes, nb::handle dtype,
         const std::string& casting) {
        Array a = array_of(x), b = array_of(y);
        OptionalArray place(out);
        xp::MatmulOptions options{
            .out = place.option(), .casting = casting, .dtype = optional_dtype(dtype)};
        if (!axes.is_none()) {
          for (nb::handle one : nb::borrow<nb::sequence>(axes))
            options.axes.emplace_back(shape_of_object(one));
        }
        return stored(place, unlocked([&] { return xp::matmul(a, b, options); }));
      },
      nb::arg("x1"), nb::arg("x2"), nb::arg("out") = nb::none(), nb::kw_only(),
      nb::arg("axes") = nb::none(), nb::arg("dtype") = nb::none(),
      nb::arg("casting") = "same_kind");
  def_method(m, "__matmul__", &multiply_matrices<false>, nb::arg("other").none());
  def_method(m, "__rmatmul__", &multiply_matrices<true>, nb::arg("other").none());
  def_both(
      m, "dot",
      [](nb::handle x, nb::handle y, nb::handle out) {
        Array a = array_of(x), b = array_of(y);
        OptionalArray place(out);
        return stored(place, unlocked([&] { return xp::dot(a, b, {.out = place.option()}); }));
      },
      nb::arg("b"), nb::arg("out") = nb::none());
  m.def(
      "where",
      [](nb::handle condition, nb::handle x, nb::handle y) -> nb::object {
        if (!x.is_none() && !y.is_none()) return nb::cast(where(condition, x, y));
        if (!x.is_none() || !y.is_none()) throw ValueError("where: both x and y, or neither");
        Array mask = array_of(condition);
        return tuple_of(unlocked([&] { return xp::nonzero(mask); }));
      },
      nb::arg("condition"), nb::arg("x") = nb::none(), nb::arg("y") = nb::none());
  def_both(m, "nonzero", [](nb::handle x) {
    Array a = array_of(x);
    return tuple_of(unlocked([&] { return xp::nonzero(a); }));
  });
  def_both(
      m, "take",
      [](nb::handle x, nb::handle indices, nb::handle axis, nb::handle out,
         const std::string& mode) {
        Array a = array_of(x), at = array_of(indices);
        if (a.ndim() == 0) a = a.reshape({1});
        OptionalArray place(out);
        xp::TakeOptions options{
            .axis = axes_of(axis), .out = place.option(), .mode = std::string_view(mode)};
        return stored(place, unlocked([&] { return xp::take(a, at, options); }));
      },
      nb::arg("indices"), nb::arg("axis") = nb::none(), nb::arg("out") = nb::none(),
      nb::arg("mode") = "raise");
  bind_comparisons(m);
}

}  // namespace

void bind_routines(nb::module_& m) {
  bind_creation(m);
  bind_reductions(m);
  bind_shapes(m);
  bind_others(m);
  bind_sorting(m);
  bind_indexing(m);
  bind_math(m);
  bind_polynomials(m);
  bind_calculus(m);
  bind_histograms(m);
  bind_methods(m);
  bind_io(m);
}

void bind_seed(nb::module_& random) {
  bind_generator(random);
  random.def(
      "seed",
      [](nb::handle seed) {
        std::uint64_t number = seed_of(seed);
        unlocked([&] { xp::random::seed(number); });
      },
      nb::arg("seed") = nb::none(), "Of all devices' numbers; None: of the machine's chance.");
}

}  // namespace rensa::python
