// What functions and links take from Python, and give it: In<T> is the argument for a parameter of
// type T, give(argument) what the engine is called with, and given(result) what Python gets.
#pragma once

#include <nanobind/stl/function.h>

#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "convert.h"
#include "rensa/core/error.h"
#include "rensa/rensa.h"

namespace rensa::python {

/// An argument that is more in Python than one class. What goes wrong while it is converted is
/// thrown when it is used: nanobind would say no more than that no overload fits.
template <class T> struct Argument {
  Argument() = default;
  Argument(T v) : value(std::move(v)) {}
  const T& get() const {
    if (error) std::rethrow_exception(error);
    return value;
  }
  T value = nothing();
  std::exception_ptr error;

 private:
  static T nothing() {
    if constexpr (std::is_default_constructible_v<T>) return T{};
    else if constexpr (std::is_constructible_v<T, None>) return T(none);
    else return T(0);
  }
};

/// A Variable of an object: one, or an array or what becomes one, to which no gradient goes. None
/// is undefined.
Variable variable_of(nb::handle object);
Variables variables_of(nb::handle object);  // of a sequence, or of an array's rows
std::vector<Variables> variable_lists_of(nb::handle object);
/// An array, or what becomes one; of a Variable its values. None is undefined.
Array plain_array_of(nb::handle object);
/// None, a number, values, an initializer of the engine's, or a function that fills the array it is
/// given.
Initializer initializer_of(nb::handle object);
/// A Device, its name, or as in Chainer the number of a GPU, the CPU below 0.
Device device_of_object(nb::handle object);
/// The GPU of that number, the current one without; the CPU where it stands for all GPUs.
Device gpu_of(std::optional<int> index);
/// Whether the CPU stands for GPUs: code that names them runs where there are none.
void use_cpu_for_gpus(bool on);
xp::PadWidth pad_width_of(nb::handle object);
/// The object of Python's that stands for a parameter, while there is one: `l.W is l.W`.
nb::object parameter_object(const ParameterRef& parameter);
xp::random::Parameter random_parameter_of(nb::handle object);  // a number, or an array of them
Scalar one_scalar_of(nb::handle object);                       // a number, or an array of one
// What defaults look like: one number for a list of one, None for what is left out.
nb::object list_of_extents(const Shape& shape);
nb::object list_of_extents(const AxisList& axes);
nb::object shown_axes(const Axes& axes);

// --- In<T> ---

template <class T> struct InOf { using type = T; };
template <class T> using In = typename InOf<std::remove_cvref_t<T>>::type;

#define RENSA_ARGUMENT(T) \
  template <> struct InOf<T> { using type = Argument<T>; };
RENSA_ARGUMENT(Variable)
RENSA_ARGUMENT(Variables)
RENSA_ARGUMENT(std::vector<Variables>)
RENSA_ARGUMENT(Array)
RENSA_ARGUMENT(Initializer)
RENSA_ARGUMENT(Shape)
RENSA_ARGUMENT(AxisList)
RENSA_ARGUMENT(Axes)
RENSA_ARGUMENT(OptionalAxis)
RENSA_ARGUMENT(IntegerList)
RENSA_ARGUMENT(Scalar)
RENSA_ARGUMENT(Dtype)
RENSA_ARGUMENT(Device)
RENSA_ARGUMENT(xp::PadWidth)
RENSA_ARGUMENT(None)
RENSA_ARGUMENT(xp::random::Parameter)
RENSA_ARGUMENT(xp::random::Size)
RENSA_ARGUMENT(Placement)
#undef RENSA_ARGUMENT
template <> struct InOf<std::string_view> { using type = std::string; };
template <> struct InOf<const char*> { using type = std::string; };
template <class T> struct InOf<std::optional<T>> { using type = std::optional<In<T>>; };

template <class T> const T& give(const Argument<T>& argument) { return argument.get(); }
template <class T> const T& give(const T& argument) { return argument; }
template <class T> std::optional<T> give(const std::optional<Argument<T>>& argument) {
  if (!argument) return {};
  return argument->get();
}

/// A dtype that was given, or another.
inline Dtype given_dtype(const std::optional<Argument<Dtype>>& argument, Dtype otherwise) {
  return argument ? argument->get() : otherwise;
}

/// A default of the engine's as Python shows it.
template <class T> In<T> shown(const T& value) { return In<T>(value); }
template <class T> std::optional<In<T>> shown(const std::optional<T>& value) {
  if (!value) return {};
  return shown<T>(*value);
}

// --- given(result) ---

inline nb::object given(const Variable& v) { return v.defined() ? nb::cast(v) : nb::none(); }
inline nb::object given(const Array& a) { return a.defined() ? nb::cast(a) : nb::none(); }
template <class T> nb::object given(const std::vector<T>& values) {
  nb::list list;
  for (const T& value : values) list.append(given(value));
  return nb::tuple(list);
}
template <class A, class B> nb::object given(const std::pair<A, B>& pair) {
  return nb::make_tuple(given(pair.first), given(pair.second));
}
inline nb::object given(const F::NStepOutput& o) {
  return nb::make_tuple(given(o.hy), given(o.ys));
}
inline nb::object given(const F::NStepLSTMOutput& o) {
  return nb::make_tuple(given(o.hy), given(o.cy), given(o.ys));
}
inline nb::object given(const L::Activations& activations) {
  nb::dict dict;
  for (const auto& [name, value] : activations) dict[name.c_str()] = given(value);
  return dict;
}
/// What a call of that result gives Python, for signatures.
template <class T> struct Returned {
  Returned(nb::object o) : object(std::move(o)) {}
  nb::object object;
};
/// A result with what was asked for beside it.
inline nb::object with_more(nb::object result, bool asked, const Array& more) {
  return asked ? nb::object(nb::make_tuple(result, given(more))) : result;
}

}  // namespace rensa::python

// --- casters ---

namespace nanobind::detail {

/// Of arguments that are one of several classes.
template <class T, class Convert>
bool take(rensa::python::Argument<T>& out, Convert convert) noexcept {
  try {
    out.value = convert();
    return true;
  } catch (...) {
    out.error = std::current_exception();
    return true;
  }
}

template <class T> struct type_caster<rensa::python::Returned<T>> {
  static constexpr auto name() {
    if constexpr (std::is_same_v<T, rensa::Variable>)
      return const_name("rensa._engine.networks.Variable");
    else if constexpr (std::is_same_v<T, rensa::Array>) return const_name("rensa._engine.ndarray");
    else if constexpr (std::is_same_v<T, rensa::L::Activations>) return const_name("dict");
    else return const_name("tuple");
  }
  NB_TYPE_CASTER(rensa::python::Returned<T>, name())
  static handle from_cpp(const rensa::python::Returned<T>& returned, rv_policy, cleanup_list*) {
    return object(returned.object).release();
  }
};

#define RENSA_CASTER(T, text, fits, convert, shown_as)                                             \
  template <> struct type_caster<rensa::python::Argument<T>> {                                     \
    NB_TYPE_CASTER(rensa::python::Argument<T>, const_name(text))                                   \
    bool from_python(handle src, uint8_t, cleanup_list*) noexcept {                                \
      return (fits) && take(value, [&]() -> T { return convert; });                                \
    }                                                                                              \
    static handle from_cpp(const rensa::python::Argument<T>& argument, rv_policy, cleanup_list*) { \
      [[maybe_unused]] const T& value = argument.value;                                            \
      return object(shown_as).release();                                                           \
    }                                                                                              \
  };

inline bool is_text(handle o) { return PyUnicode_Check(o.ptr()); }
/// A list of variables or arrays is several; one of numbers is an array's elements.
inline bool holds_variables(handle o) {
  if (!PyList_Check(o.ptr()) && !PyTuple_Check(o.ptr())) return false;
  auto list = borrow<sequence>(o);
  return len(list) > 0 && (isinstance<rensa::Variable>(object(list[0])) ||
                           isinstance<rensa::Array>(object(list[0])));
}
inline bool is_list(handle o) { return PyList_Check(o.ptr()) || PyTuple_Check(o.ptr()); }
inline bool is_one_integer(handle o) { return PyIndex_Check(o.ptr()) && !PyBool_Check(o.ptr()); }
inline bool is_integers(handle o) { return is_one_integer(o) || is_list(o); }

RENSA_CASTER(rensa::Variable, "rensa._engine.networks.Variable",
             !is_text(src) && !holds_variables(src), rensa::python::variable_of(src),
             value.defined() ? cast(value) : none())
RENSA_CASTER(rensa::Variables, "collections.abc.Sequence[rensa._engine.networks.Variable]",
             is_list(src) || isinstance<rensa::Array>(src), rensa::python::variables_of(src),
             rensa::python::given(value))
RENSA_CASTER(std::vector<rensa::Variables>,
             "collections.abc.Sequence[collections.abc.Sequence[rensa._engine.networks.Variable]]",
             is_list(src), rensa::python::variable_lists_of(src), none())
RENSA_CASTER(rensa::Array, "rensa._engine.ndarray", !is_text(src),
             rensa::python::plain_array_of(src), value.defined() ? cast(value) : none())
RENSA_CASTER(rensa::Initializer, "rensa._engine.networks.Initializer", true,
             rensa::python::initializer_of(src), value ? cast(value) : none())
RENSA_CASTER(rensa::Shape, "int | collections.abc.Sequence[int]", is_integers(src) || src.is_none(),
             src.is_none() ? rensa::Shape() : rensa::python::shape_of_object(src),
             rensa::python::list_of_extents(value))
RENSA_CASTER(rensa::AxisList, "int | collections.abc.Sequence[int]",
             is_integers(src) || src.is_none(),
             src.is_none() ? rensa::AxisList()
                           : rensa::AxisList(rensa::python::shape_of_object(src)),
             rensa::python::list_of_extents(value))
RENSA_CASTER(rensa::Axes, "int | collections.abc.Sequence[int] | None",
             is_integers(src) || src.is_none(), rensa::python::axes_of(src),
             rensa::python::shown_axes(value))
RENSA_CASTER(rensa::OptionalAxis, "int | None", is_one_integer(src) || src.is_none(),
             rensa::python::optional_axis(src), none())
RENSA_CASTER(rensa::IntegerList, "int | collections.abc.Sequence[int]", is_integers(src),
             rensa::python::integers_of(src), none())
RENSA_CASTER(rensa::Scalar, "float", !is_text(src) && !is_list(src) && !src.is_none(),
             rensa::python::one_scalar_of(src), float_(value.as<double>()))
RENSA_CASTER(rensa::Dtype, "rensa._engine.dtype", !src.is_none(),
             rensa::python::dtype_of_object(src), cast(rensa::python::DtypeObject{value}))
RENSA_CASTER(rensa::Device, "rensa._engine.Device", !src.is_none(),
             rensa::python::device_of_object(src), cast(value))
RENSA_CASTER(rensa::xp::PadWidth, "int | collections.abc.Sequence", is_integers(src),
             rensa::python::pad_width_of(src), none())
RENSA_CASTER(rensa::xp::random::Parameter, "float | rensa._engine.ndarray",
             !is_text(src) && !src.is_none(), rensa::python::random_parameter_of(src),
             value.is_array() ? cast(value.array()) : object(float_(value.number())))
RENSA_CASTER(rensa::xp::random::Size, "int | collections.abc.Sequence[int] | None",
             is_integers(src) || src.is_none(),
             src.is_none() ? rensa::xp::random::Size()
                           : rensa::xp::random::Size(rensa::python::shape_of_object(src)),
             none())
RENSA_CASTER(rensa::Placement, "rensa._engine.Device | str | None", true,
             rensa::python::placement_of(src), none())
RENSA_CASTER(rensa::None, "None", src.is_none(), (rensa::none), none())

}  // namespace nanobind::detail
