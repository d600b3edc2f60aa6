#include "arguments.h"

#include <atomic>

namespace rensa::python {

namespace {
std::atomic<bool> cpu_for_gpus = false;
}

void use_cpu_for_gpus(bool on) { cpu_for_gpus = on; }

Device gpu_of(std::optional<int> index) {
  if (cpu_for_gpus) return cpu();
  return index ? gpu(*index) : current_gpu();
}

Variable variable_of(nb::handle object) {
  Variable variable;
  if (object.is_none()) return variable;
  if (nb::try_cast(object, variable)) return variable;
  return constant(array_of(object));
}

Variables variables_of(nb::handle object) {
  Variables variables;
  if (nb::isinstance<Array>(object)) {
    for (Array row : nb::cast<const Array&>(object)) variables.push_back(constant(row));
  } else {
    for (nb::handle item : nb::borrow<nb::sequence>(object)) variables.push_back(variable_of(item));
  }
  return variables;
}

std::vector<Variables> variable_lists_of(nb::handle object) {
  std::vector<Variables> lists;
  for (nb::handle item : nb::borrow<nb::sequence>(object)) lists.push_back(variables_of(item));
  return lists;
}

Array plain_array_of(nb::handle object) {
  if (object.is_none()) return {};
  Variable variable;
  if (nb::try_cast(object, variable)) return variable.array();
  return array_of(object);
}

namespace {

/// A function of Python's that fills an array; of the dtype that it says.
struct FillOfPython {
  std::shared_ptr<Held> function;
  std::optional<Dtype> dtype;
  void operator()(const Array& out) const {
    nb::gil_scoped_acquire lock;
    function->object(out);
  }
};

/// Whether a class of Python's has a way of its own to fill arrays.
bool fills_itself(nb::handle initializer) {
  nb::object own = initializer.type().attr("__call__");
  return !own.is(nb::type<Initializer>().attr("__call__"));
}

}  // namespace

Initializer initializer_of(nb::handle object) {
  Initializer known;
  if (object.is_none()) return known;
  if (nb::try_cast(object, known) && !fills_itself(object)) return known;
  if (auto number = scalar_of(object)) return number->as<double>();
  if (nb::isinstance<Array>(object) || PyObject_CheckBuffer(object.ptr())) return array_of(object);
  if (!PyCallable_Check(object.ptr())) {
    throw nb::type_error("an initializer is a number, an array, or a function that fills one");
  }
  return FillOfPython{std::make_shared<Held>(nb::borrow(object)),
                      optional_dtype(nb::getattr(object, "dtype", nb::none()))};
}

Device device_of_object(nb::handle object) {
  if (PyIndex_Check(object.ptr())) {
    int index = nb::cast<int>(object);
    return index < 0 ? cpu() : gpu_of(index);
  }
  return placement_of(object).device();
}

xp::PadWidth pad_width_of(nb::handle object) {
  if (PyIndex_Check(object.ptr())) return nb::cast<std::int64_t>(object);
  auto list = nb::borrow<nb::sequence>(object);
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  bool flat = nb::len(list) > 0 && PyIndex_Check(nb::object(list[0]).ptr());
  if (flat && nb::len(list) == 2)
    return std::pair(nb::cast<std::int64_t>(list[0]), nb::cast<std::int64_t>(list[1]));
  for (nb::handle item : list) {
    if (PyIndex_Check(item.ptr())) {
      pairs.emplace_back(nb::cast<std::int64_t>(item), nb::cast<std::int64_t>(item));
    } else {
      auto [before, after] = nb::cast<std::pair<std::int64_t, std::int64_t>>(nb::tuple(item));
      pairs.emplace_back(before, after);
    }
  }
  return pairs;
}

nb::object parameter_object(const ParameterRef& parameter) {
  nb::object object = object_at(parameter.body().get());
  if (!object.is_valid()) {
    object = nb::cast(parameter);
    remember_object(parameter.body().get(), object);
  }
  return object;
}

xp::random::Parameter random_parameter_of(nb::handle object) {
  if (auto number = scalar_of(object)) return number->as<double>();
  return array_of(object);
}

Scalar one_scalar_of(nb::handle object) {
  if (auto number = scalar_of(object)) return *number;
  return plain_array_of(object).item_scalar();
}

nb::object list_of_extents(const Shape& shape) {
  if (shape.size() == 0) return nb::none();
  if (shape.size() == 1) return nb::int_(shape[0]);
  nb::list list;
  for (std::int64_t extent : shape) list.append(extent);
  return nb::tuple(list);
}

nb::object list_of_extents(const AxisList& axes) {
  return axes.given() ? list_of_extents(axes.values()) : nb::none();
}

nb::object shown_axes(const Axes& axes) {
  return axes.all() ? nb::none() : list_of_extents(axes.values());
}

}  // namespace rensa::python
