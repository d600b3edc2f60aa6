// rensa.xp's routines that make arrays.
#include <string>

#include "rensa/core/error.h"
#include "routines.h"

namespace rensa::python {

namespace {

using OfShape = Array (*)(const Shape&, const xp::CreationOptions&);
using OfModel = Array (*)(const Array&, const xp::Like&);

xp::CreationOptions creation_options(nb::handle dtype, nb::handle order, nb::handle device) {
  // NumPy's default, not the engine's.
  return {.dtype = optional_dtype(dtype).value_or(float64),
          .order = order_of(order),
          .device = placement_of(device)};
}

void bind_filled(nb::module_& m, const char* name, OfShape make, const char* like_name,
                 OfModel make_like) {
  m.def(
      name,
      [make](nb::handle shape, nb::handle dtype, nb::handle order, nb::handle device) {
        Shape extents = shape_of_object(shape);
        xp::CreationOptions options = creation_options(dtype, order, device);
        return unlocked([&] { return make(extents, options); });
      },
      nb::arg("shape"), nb::arg("dtype") = nb::none(), nb::arg("order").none() = "C", nb::kw_only(),
      nb::arg("device") = nb::none());
  m.def(
      like_name,
      [make_like](nb::handle model, nb::handle dtype, nb::handle order, nb::handle subok,
                  nb::handle shape, nb::handle device) {
        refuse_subclasses(subok);
        Array a = array_of(model);
        xp::Like like{.dtype = optional_dtype(dtype), .order = order_of(order, 'K')};
        if (!shape.is_none()) like.shape = shape_of_object(shape);
        if (!device.is_none()) like.device = placement_of(device).device();
        return unlocked([&] { return make_like(a, like); });
      },
      nb::arg("a"), nb::arg("dtype") = nb::none(), nb::arg("order").none() = "K",
      nb::arg("subok") = nb::none(), nb::arg("shape") = nb::none(), nb::kw_only(),
      nb::arg("device") = nb::none());
}

Array full(nb::handle shape, nb::handle value, nb::handle dtype, nb::handle order,
           nb::handle device) {
  Shape extents = shape_of_object(shape);
  auto number = scalar_of(value);
  xp::CreationOptions options{
      .dtype = optional_dtype(dtype), .order = order_of(order), .device = placement_of(device)};
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
  Array made = stop.is_none() ? xp::arange(Scalar(0), number(start), by, options)
                              : xp::arange(number(start), number(stop), by, options);
  if (made.dtype() == bool_ && made.size() > 2)
    throw DtypeError("arange: bools make no range of more than two: take zeros, ones or array");
  return made;
}

/// `a` itself where its elements lie in that order, else a copy.
Array in_order(const Array& a, nb::handle order, bool copy) {
  char letter = order_of(order, 'K').letter();
  bool c = a.is_contiguous(), f = a.transpose().is_contiguous();
  bool lies_so =
      letter == 'K' || (letter == 'C' && c) || (letter == 'F' && f) || (letter == 'A' && (c || f));
  if (lies_so && !copy) return a;
  return unlocked([&] { return a.copy(Order(letter)); });
}

/// numpy.array.
Array made_array(nb::handle object, std::optional<Dtype> dtype, bool copy, nb::handle order,
                 int ndmin, Placement device) {
  Array given = nb::isinstance<Array>(object) ? array_of(object) : Array();
  bool theirs = PyObject_CheckBuffer(object.ptr());
  Array a = array_of(object, given.defined() || theirs ? std::nullopt : dtype, device);
  bool fresh = a.storage() != given.storage() && !theirs;
  if (dtype && *dtype != a.dtype()) {
    Order in = order_of(order, 'K');
    a = unlocked([&] { return a.astype(*dtype, in); });
    fresh = true;
  }
  a = in_order(a, order, copy && !fresh);
  if (a.ndim() >= ndmin) return a;
  Shape shape = Shape::filled(ndmin - a.ndim(), 1);
  for (std::int64_t extent : a.shape()) shape.push_back(extent);
  return a.reshape(shape);
}

double number_of(nb::handle object) {
  auto number = scalar_of(object);
  return (number ? *number : array_of(object).item_scalar()).as<double>();
}

bool is_number(nb::handle object) {
  return scalar_of(object) || PyFloat_Check(object.ptr()) || is_integer(object);
}

nb::object linspace(nb::handle start, nb::handle stop, std::int64_t num, bool endpoint,
                    bool retstep, nb::handle dtype, int axis, nb::handle device) {
  xp::LinspaceOptions options{.endpoint = endpoint,
                              .dtype = optional_dtype(dtype),
                              .axis = axis,
                              .device = placement_of(device)};
  if (!is_number(start) || !is_number(stop)) {
    Array from = array_of(start), to = array_of(stop);
    Array values = unlocked([&] { return xp::linspace(from, to, num, options); });
    if (!retstep) return nb::cast(values);
    auto gaps = static_cast<double>(endpoint ? num - 1 : num);
    return nb::make_tuple(values, unlocked([&] { return (to - from) / Scalar(gaps); }));
  }
  auto bound = [](nb::handle object) {
    auto number = scalar_of(object);
    return number ? *number : array_of(object).item_scalar();
  };
  Scalar from = bound(start), to = bound(stop);
  Array values = unlocked([&] { return xp::linspace(from, to, num, options); });
  if (!retstep) return nb::cast(values);
  double step = xp::linspace_retstep(number_of(start), number_of(stop), num, endpoint).second;
  return nb::make_tuple(values, step);
}

void bind_spaces(nb::module_& m) {
  m.def("linspace", &linspace, nb::arg("start"), nb::arg("stop"), nb::arg("num") = 50,
        nb::arg("endpoint") = true, nb::arg("retstep") = false, nb::arg("dtype") = nb::none(),
        nb::arg("axis") = 0, nb::kw_only(), nb::arg("device") = nb::none());
  m.def(
      "logspace",
      [](nb::handle start, nb::handle stop, std::int64_t num, bool endpoint, double base,
         nb::handle dtype, int axis, nb::handle device) {
        if (!is_number(start) || !is_number(stop)) {
          Array from = array_of(start), to = array_of(stop);
          auto of = optional_dtype(dtype);
          return unlocked([&] {
            Array powers = xp::power(
                Scalar(base), xp::linspace(from, to, num, {.endpoint = endpoint, .axis = axis}));
            return of ? powers.astype(*of, false) : powers;
          });
        }
        return xp::logspace(number_of(start), number_of(stop), num, endpoint, base,
                            optional_dtype(dtype).value_or(float64), placement_of(device));
      },
      nb::arg("start"), nb::arg("stop"), nb::arg("num") = 50, nb::arg("endpoint") = true,
      nb::arg("base") = 10.0, nb::arg("dtype") = nb::none(), nb::arg("axis") = 0, nb::kw_only(),
      nb::arg("device") = nb::none());
  m.def(
      "geomspace",
      [](nb::handle start, nb::handle stop, std::int64_t num, bool endpoint, nb::handle dtype,
         nb::handle device) {
        return xp::geomspace(number_of(start), number_of(stop), num, endpoint,
                             optional_dtype(dtype).value_or(float64), placement_of(device));
      },
      nb::arg("start"), nb::arg("stop"), nb::arg("num") = 50, nb::arg("endpoint") = true,
      nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("device") = nb::none());
  m.def(
      "identity",
      [](std::int64_t n, nb::handle dtype, nb::handle device) {
        return xp::identity(n, optional_dtype(dtype).value_or(float64), placement_of(device));
      },
      nb::arg("n"), nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("device") = nb::none());
  m.def(
      "copy",
      [](nb::handle x, nb::handle order) {
        Array a = array_of(x);
        Order in = order_of(order, 'K');
        return unlocked([&] { return a.copy(in); });
      },
      nb::arg("a"), nb::arg("order").none() = "K");
}

void bind_conversions(nb::module_& m) {
  bind_spaces(m);
  m.def(
      "array",
      [](nb::handle object, nb::handle dtype, std::optional<bool> copy, nb::handle order,
         nb::handle, int ndmin, nb::handle device) {
        auto to = optional_dtype(dtype);
        if (copy == std::optional<bool>(false)) array_of(object, to, placement_of(device), false);
        return made_array(object, to, copy.value_or(false), order, ndmin, placement_of(device));
      },
      nb::arg("object"), nb::arg("dtype") = nb::none(), nb::arg("copy").none() = true,
      nb::arg("order").none() = "K", nb::arg("subok") = nb::none(), nb::arg("ndmin") = 0,
      nb::kw_only(), nb::arg("device") = nb::none(),
      "An array of numbers, of sequences of them, or of another array, which is copied.");
  m.def(
      "asarray",
      [](nb::handle object, nb::handle dtype, nb::handle order, nb::handle device,
         nb::handle copy) {
        std::optional<bool> how;
        if (!copy.is_none()) how = nb::cast<bool>(copy);
        Array a = array_of(object, optional_dtype(dtype), placement_of(device), how);
        return itself_or(object, in_order(a, order, false));
      },
      nb::arg("obj"), nb::arg("dtype") = nb::none(), nb::arg("order") = nb::none(), nb::kw_only(),
      nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
      "array(), without a copy where none is needed.");
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

}  // namespace

void bind_creation(nb::module_& m) {
  bind_filled(m, "empty", xp::empty, "empty_like", xp::empty_like);
  bind_filled(m, "zeros", xp::zeros, "zeros_like", xp::zeros_like);
  bind_filled(m, "ones", xp::ones, "ones_like", xp::ones_like);
  m.def("full", &full, nb::arg("shape"), nb::arg("fill_value"), nb::arg("dtype") = nb::none(),
        nb::arg("order").none() = "C", nb::kw_only(), nb::arg("device") = nb::none());
  m.def(
      "full_like",
      [](nb::handle model, nb::handle value, nb::handle dtype, nb::handle order, nb::handle subok,
         nb::handle shape, nb::handle device) {
        refuse_subclasses(subok);
        Array a = array_of(model), values = array_of(value);
        xp::Like like{.dtype = optional_dtype(dtype), .order = order_of(order, 'K')};
        if (!shape.is_none()) like.shape = shape_of_object(shape);
        if (!device.is_none()) like.device = placement_of(device).device();
        return unlocked([&] {
          Array made = xp::empty_like(a, like);
          made.assign(values.to(made.device()).astype(made.dtype(), false));
          return made;
        });
      },
      nb::arg("a"), nb::arg("fill_value"), nb::arg("dtype") = nb::none(),
      nb::arg("order").none() = "K", nb::arg("subok") = nb::none(), nb::arg("shape") = nb::none(),
      nb::kw_only(), nb::arg("device") = nb::none());
  m.def("arange", &arange, nb::arg("start"), nb::arg("stop") = nb::none(),
        nb::arg("step") = nb::none(), nb::arg("dtype") = nb::none(), nb::kw_only(),
        nb::arg("device") = nb::none());
  bind_conversions(m);
}

}  // namespace rensa::python
