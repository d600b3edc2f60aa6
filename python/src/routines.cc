// Routines of rensa.xp that are no ufuncs.

#include <string>
#include <vector>

#include "bind.h"
#include "rensa/core/error.h"

namespace rensa::python {

namespace {

// --- creation ---

using OfShape = Array (*)(const Shape&, const xp::CreationOptions&);
using OfModel = Array (*)(const Array&, const xp::Like&);

xp::CreationOptions creation_options(nb::handle dtype, const std::string& order,
                                     nb::handle device) {
  // NumPy's default, not the engine's.
  return {.dtype = optional_dtype(dtype).value_or(float64),
          .order = Order(order.c_str()),
          .device = placement_of(device)};
}

void bind_filled(nb::module_& m, const char* name, OfShape make, const char* like_name,
                 OfModel make_like) {
  m.def(
      name,
      [make](nb::handle shape, nb::handle dtype, const std::string& order, nb::handle device) {
        Shape extents = shape_of_object(shape);
        xp::CreationOptions options = creation_options(dtype, order, device);
        return unlocked([&] { return make(extents, options); });
      },
      nb::arg("shape"), nb::arg("dtype") = nb::none(), nb::arg("order") = "C", nb::kw_only(),
      nb::arg("device") = nb::none());
  m.def(
      like_name,
      [make_like](nb::handle model, nb::handle dtype, const std::string& order, nb::handle shape,
                  nb::handle device) {
        Array a = array_of(model);
        xp::Like like{.dtype = optional_dtype(dtype), .order = Order(order.c_str())};
        if (!shape.is_none()) like.shape = shape_of_object(shape);
        if (!device.is_none()) like.device = placement_of(device).device();
        return unlocked([&] { return make_like(a, like); });
      },
      nb::arg("a"), nb::arg("dtype") = nb::none(), nb::arg("order") = "K",
      nb::arg("shape") = nb::none(), nb::kw_only(), nb::arg("device") = nb::none());
}

Array full(nb::handle shape, nb::handle value, nb::handle dtype, const std::string& order,
           nb::handle device) {
  Shape extents = shape_of_object(shape);
  auto number = scalar_of(value);
  xp::CreationOptions options{.dtype = optional_dtype(dtype),
                              .order = Order(order.c_str()),
                              .device = placement_of(device)};
  if (number) {
    if (!options.dtype) options.dtype = number->default_dtype();
    return unlocked([&] { return xp::full(extents, *number, options); });
  }
  Array values = array_of(value);
  if (!options.dtype) options.dtype = values.dtype();
  return unlocked([&] {
    Array a = xp::empty(extents, options);
    a.assign(values.to(a.device()).astype(a.dtype(), false));
    return a;
  });
}

Array arange(nb::handle start, nb::handle stop, nb::handle step, nb::handle dtype,
             nb::handle device) {
  auto number = [](nb::handle object) {
    auto value = scalar_of(object);
    return value ? *value : array_of(object).item_scalar();
  };
  xp::CreationOptions options{.dtype = optional_dtype(dtype), .device = placement_of(device)};
  Scalar by = step.is_none() ? Scalar(1) : number(step);
  if (stop.is_none()) return xp::arange(Scalar(0), number(start), by, options);
  return xp::arange(number(start), number(stop), by, options);
}

void bind_creation(nb::module_& m) {
  bind_filled(m, "empty", xp::empty, "empty_like", xp::empty_like);
  bind_filled(m, "zeros", xp::zeros, "zeros_like", xp::zeros_like);
  bind_filled(m, "ones", xp::ones, "ones_like", xp::ones_like);
  m.def("full", &full, nb::arg("shape"), nb::arg("fill_value"), nb::arg("dtype") = nb::none(),
        nb::arg("order") = "C", nb::kw_only(), nb::arg("device") = nb::none());
  m.def(
      "full_like",
      [](nb::handle model, nb::handle value, nb::handle dtype, const std::string& order,
         nb::handle shape, nb::handle device) {
        Array a = array_of(model), values = array_of(value);
        xp::Like like{.dtype = optional_dtype(dtype), .order = Order(order.c_str())};
        if (!shape.is_none()) like.shape = shape_of_object(shape);
        if (!device.is_none()) like.device = placement_of(device).device();
        return unlocked([&] {
          Array made = xp::empty_like(a, like);
          made.assign(values.to(made.device()).astype(made.dtype(), false));
          return made;
        });
      },
      nb::arg("a"), nb::arg("fill_value"), nb::arg("dtype") = nb::none(), nb::arg("order") = "K",
      nb::arg("shape") = nb::none(), nb::kw_only(), nb::arg("device") = nb::none());
  m.def("arange", &arange, nb::arg("start"), nb::arg("stop") = nb::none(),
        nb::arg("step") = nb::none(), nb::arg("dtype") = nb::none(), nb::kw_only(),
        nb::arg("device") = nb::none());
  m.def(
      "linspace",
      [](double start, double stop, std::int64_t num, bool endpoint, nb::handle dtype,
         nb::handle device) {
        xp::LinspaceOptions options{
            .endpoint = endpoint, .dtype = optional_dtype(dtype), .device = placement_of(device)};
        return unlocked([&] { return xp::linspace(Scalar(start), Scalar(stop), num, options); });
      },
      nb::arg("start"), nb::arg("stop"), nb::arg("num") = 50, nb::arg("endpoint") = true,
      nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("device") = nb::none());
  m.def(
      "array",
      [](nb::handle object, nb::handle dtype, bool copy, nb::handle device) {
        return array_of(object, optional_dtype(dtype), placement_of(device),
                        copy ? std::optional<bool>(true) : std::nullopt);
      },
      nb::arg("object"), nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("copy") = true,
      nb::arg("device") = nb::none(),
      "An array of numbers, of sequences of them, or of another array, which is copied.");
  m.def(
      "asarray",
      [](nb::handle object, nb::handle dtype, nb::handle device, nb::handle copy) {
        std::optional<bool> how;
        if (!copy.is_none()) how = nb::cast<bool>(copy);
        return array_of(object, optional_dtype(dtype), placement_of(device), how);
      },
      nb::arg("obj"), nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("device") = nb::none(),
      nb::arg("copy") = nb::none(), "array(), without a copy where none is needed.");
  m.def(
      "from_dlpack",
      [](nb::handle object, nb::handle device, nb::handle copy) {
        std::optional<bool> how;
        if (!copy.is_none()) how = nb::cast<bool>(copy);
        Placement where;
        if (!device.is_none()) where = placement_of(device);
        return array_of(object, {}, where, how);
      },
      nb::arg("x"), nb::kw_only(), nb::arg("device") = nb::none(), nb::arg("copy") = nb::none());
}

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
        return unlocked([&] { return reduce(a, options); });
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
        return unlocked([&] { return reduce(a, options); });
      },
      nb::arg("axis") = nb::none(), nb::arg("out") = nb::none(), nb::arg("keepdims") = false,
      nb::arg("initial") = nb::none(), nb::arg("where") = true);
}

using Position = Array (*)(const Array&, const xp::AxisOptions&);

void bind_position(nb::module_& m, const char* name, Position position) {
  def_both(
      m, name,
      [position](nb::handle x, nb::handle axis, nb::handle out, bool keepdims) {
        Array a = array_of(x);
        OptionalArray place(out);
        xp::AxisOptions options{.axis = axes_of(axis), .keepdims = keepdims, .out = place.option()};
        return unlocked([&] { return position(a, options); });
      },
      nb::arg("axis") = nb::none(), nb::arg("out") = nb::none(), nb::kw_only(),
      nb::arg("keepdims") = false);
}

using Spread = Array (*)(const Array&, const xp::VarianceOptions&);

void bind_spread(nb::module_& m, const char* name, Spread spread) {
  def_both(
      m, name,
      [spread](nb::handle x, nb::handle axis, nb::handle dtype, nb::handle out, double ddof,
               bool keepdims) {
        Array a = array_of(x);
        OptionalArray place(out);
        xp::VarianceOptions options{.axis = axes_of(axis),
                                    .ddof = ddof,
                                    .keepdims = keepdims,
                                    .dtype = optional_dtype(dtype),
                                    .out = place.option()};
        return unlocked([&] { return spread(a, options); });
      },
      nb::arg("axis") = nb::none(), nb::arg("dtype") = nb::none(), nb::arg("out") = nb::none(),
      nb::arg("ddof") = 0.0, nb::arg("keepdims") = false);
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
        return unlocked([&] { return scan(a, options); });
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

void bind_shapes(nb::module_& m) {
  def_method(
      m, "reshape",
      [](const Array& a, const nb::args& args, const std::string& order) {
        Shape shape = shape_of_arguments(args);
        return unlocked([&] { return a.reshape(shape, {.order = Order(order.c_str())}); });
      },
      nb::arg("shape"), nb::kw_only(), nb::arg("order") = "C");
  def_method(
      m, "transpose",
      [](const Array& a, const nb::args& args) {
        if (args.size() == 0 || (args.size() == 1 && args[0].is_none())) return a.transpose();
        return a.transpose(shape_of_arguments(args));
      },
      nb::arg("axes"));
  m.def(
      "reshape",
      [](nb::handle x, nb::handle shape, const std::string& order) {
        Array a = array_of(x);
        Shape extents = shape_of_object(shape);
        return unlocked([&] { return a.reshape(extents, {.order = Order(order.c_str())}); });
      },
      nb::arg("a"), nb::arg("shape"), nb::arg("order") = "C");
  m.def(
      "transpose",
      [](nb::handle x, nb::handle axes) {
        Array a = array_of(x);
        return axes.is_none() ? a.transpose() : a.transpose(shape_of_object(axes));
      },
      nb::arg("a"), nb::arg("axes") = nb::none());
  def_both(
      m, "ravel",
      [](nb::handle x, const std::string& order) {
        Array a = array_of(x);
        return unlocked([&] { return a.ravel(Order(order.c_str())); });
      },
      nb::arg("order") = "C");
  def_method(
      m, "flatten",
      [](const Array& a, const std::string& order) {
        return unlocked([&] { return a.flatten(Order(order.c_str())); });
      },
      nb::arg("order") = "C");
  def_both(
      m, "squeeze",
      [](nb::handle x, nb::handle axis) {
        Array a = array_of(x);
        return axis.is_none() ? a.squeeze() : a.squeeze(shape_of_object(axis));
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
        return unlocked([&] { return xp::concatenate(all, options); });
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
        return unlocked([&] { return xp::stack(all, options); });
      },
      nb::arg("arrays"), nb::arg("axis") = 0, nb::arg("out") = nb::none(), nb::kw_only(),
      nb::arg("dtype") = nb::none(), nb::arg("casting") = "same_kind");
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

void bind_others(nb::module_& m) {
  auto product = [](nb::handle x, nb::handle y, nb::handle out) {
    Array a = array_of(x), b = array_of(y);
    OptionalArray place(out);
    return unlocked([&] { return xp::matmul(a, b, {.out = place.option()}); });
  };
  m.def("matmul", product, nb::arg("x1"), nb::arg("x2"), nb::arg("out") = nb::none());
  def_method(m, "__matmul__", &multiply_matrices<false>, nb::arg("other").none());
  def_method(m, "__rmatmul__", &multiply_matrices<true>, nb::arg("other").none());
  def_both(
      m, "dot",
      [](nb::handle x, nb::handle y, nb::handle out) {
        Array a = array_of(x), b = array_of(y);
        OptionalArray place(out);
        return unlocked([&] { return xp::dot(a, b, {.out = place.option()}); });
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
        OptionalArray place(out);
        xp::TakeOptions options{
            .axis = axes_of(axis), .out = place.option(), .mode = std::string_view(mode)};
        return unlocked([&] { return xp::take(a, at, options); });
      },
      nb::arg("indices"), nb::arg("axis") = nb::none(), nb::arg("out") = nb::none(),
      nb::arg("mode") = "raise");
  def_both(
      m, "argsort",
      [](nb::handle x, nb::handle axis) {
        Array a = array_of(x);
        xp::SortOptions options{.axis = axes_of(axis)};
        return unlocked([&] { return xp::argsort(a, options); });
      },
      nb::arg("axis").none() = -1);
  m.def(
      "sort",
      [](nb::handle x, nb::handle axis) {
        Array a = array_of(x);
        xp::SortOptions options{.axis = axes_of(axis)};
        return unlocked([&] { return xp::sort(a, options); });
      },
      nb::arg("a"), nb::arg("axis").none() = -1);
  def_both(
      m, "round",
      [](nb::handle x, int decimals) {
        Array a = array_of(x);
        return unlocked([&] { return xp::round(a, decimals); });
      },
      nb::arg("decimals") = 0);
  m.def(
      "copyto",
      [](const Array& to, nb::handle from) {
        Array source = array_of(from);
        unlocked([&] { xp::copyto(to, source.to(to.device())); });
      },
      nb::arg("dst"), nb::arg("src"));
  m.def(
      "array_equal",
      [](nb::handle x, nb::handle y) {
        Array a = array_of(x), b = array_of(y);
        return unlocked([&] { return xp::array_equal(a, b); });
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

}  // namespace

void bind_routines(nb::module_& m) {
  bind_creation(m);
  bind_reductions(m);
  bind_shapes(m);
  bind_others(m);
}

void bind_seed(nb::module_& random) {
  random.def(
      "seed",
      [](nb::handle seed) {
        if (seed.is_none()) xp::random::seed(none);
        else xp::random::seed(nb::cast<std::uint64_t>(seed));
      },
      nb::arg("seed") = nb::none(), "Of all devices' numbers; None: of the machine's chance.");
}

}  // namespace rensa::python
