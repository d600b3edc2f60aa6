// rensa.gradient_check.
#include "bind.h"
#include "link.h"
#include "rensa/autograd/gradient_check.h"

namespace rensa::python {

namespace {

/// A function of Python's of variables: one, or a tuple of them.
gradient_check::Function function_of(nb::handle object) {
  auto function = std::make_shared<Held>(nb::borrow(object));
  return [function](const Variables& inputs) {
    nb::gil_scoped_acquire lock;
    nb::object result = function->object(*nb::tuple(given(inputs)));
    if (PyTuple_Check(result.ptr())) return variables_of(result);
    return Variables{variable_of(result)};
  };
}

/// One array, or several; none at all of None.
Arrays arrays_of_argument(nb::handle object) {
  Arrays arrays;
  if (object.is_none()) return arrays;
  if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) return {plain_array_of(object)};
  for (nb::handle one : nb::borrow<nb::sequence>(object)) arrays.push_back(plain_array_of(one));
  return arrays;
}

std::vector<ParameterRef> parameters_of(const nb::list& list) {
  std::vector<ParameterRef> parameters;
  for (nb::handle one : list) parameters.push_back(nb::cast<const ParameterRef&>(one));
  return parameters;
}

template <class Check> void def_check(nb::module_& m, const char* name, Check check) {
  m.def(
      name,
      [check](nb::handle func, nb::handle inputs, nb::handle grad_outputs, const nb::list& params,
              double eps, double atol, double rtol) {
        gradient_check::Function f = function_of(func);
        Arrays xs = arrays_of_argument(inputs), gys = arrays_of_argument(grad_outputs);
        std::vector<ParameterRef> ps = parameters_of(params);
        unlocked([&] { check(f, xs, gys, ps, gradient_check::Options{eps, atol, rtol}); });
      },
      nb::arg("func"), nb::arg("inputs"), nb::arg("grad_outputs").none() = nb::none(),
      nb::arg("params") = nb::list(), nb::arg("eps") = 1e-3, nb::arg("atol") = 1e-5,
      nb::arg("rtol") = 1e-4,
      "Compares gradients with differences of values: ValueError, with both, where they differ.");
}

}  // namespace

void bind_checks(nb::module_& m) {
  m.def(
      "numerical_grad",
      [](nb::handle f, nb::handle inputs, nb::handle grad_outputs, double eps) {
        Held function(nb::borrow(f));
        Arrays xs = arrays_of_argument(inputs), gys = arrays_of_argument(grad_outputs);
        return given(unlocked([&] {
          return gradient_check::numerical_grad(
              [&] {
                nb::gil_scoped_acquire lock;
                return arrays_of_argument(function.object());
              },
              xs, gys, eps);
        }));
      },
      nb::arg("f"), nb::arg("inputs"), nb::arg("grad_outputs"), nb::arg("eps") = 1e-3,
      "Gradients of sum(f() * grad_outputs) by differences: f reads `inputs`, which are changed in "
      "place and restored.");
  def_check(m, "check_backward", &gradient_check::check_backward);
  def_check(m, "check_double_backward", &gradient_check::check_double_backward);
}

}  // namespace rensa::python
