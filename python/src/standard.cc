// rensa.xp's names of the array API standard that are no ufuncs: dtypes and their limits, sets,
// transforms.
#include <string>
#include <vector>

#include "rensa/array/dtype_info.h"
#include "rensa/array/fft.h"
#include "rensa/core/error.h"
#include "routines.h"

namespace rensa::python {

namespace {

// --- dtypes ---

Dtype dtype_or_array(nb::handle object) {
  Array array;
  return nb::try_cast(object, array) ? array.dtype() : dtype_of_object(object);
}

void bind_limits(nb::module_& m) {
  nb::class_<xp::finfo>(m, "finfo", "The limits of a floating dtype.")
      .def(
          "__init__",
          [](xp::finfo* self, nb::handle type) { new (self) xp::finfo(dtype_or_array(type)); },
          nb::arg("type"))
      .def_prop_ro("dtype", [](const xp::finfo& i) { return DtypeObject{i.dtype}; })
      .def_ro("bits", &xp::finfo::bits)
      .def_ro("eps", &xp::finfo::eps)
      .def_ro("max", &xp::finfo::max)
      .def_ro("min", &xp::finfo::min)
      .def_ro("smallest_normal", &xp::finfo::smallest_normal)
      .def_ro("tiny", &xp::finfo::tiny);
  nb::class_<xp::iinfo>(m, "iinfo", "The limits of an integer dtype.")
      .def(
          "__init__",
          [](xp::iinfo* self, nb::handle type) { new (self) xp::iinfo(dtype_or_array(type)); },
          nb::arg("type"))
      .def_prop_ro("dtype", [](const xp::iinfo& i) { return DtypeObject{i.dtype}; })
      .def_ro("bits", &xp::iinfo::bits)
      .def_ro("min", &xp::iinfo::min)
      .def_ro("max", &xp::iinfo::max);
}

void bind_dtypes_of_results(nb::module_& m) {
  m.def(
      "can_cast",
      [](nb::handle from, nb::handle to, const std::string& casting) {
        return xp::can_cast(dtype_or_array(from), dtype_of_object(to), casting);
      },
      nb::arg("from_"), nb::arg("to"), nb::arg("casting") = "safe");
  m.def(
      "result_type",
      [](const nb::args& arguments) {
        std::vector<xp::TypeArgument> all;
        for (nb::handle argument : arguments) {
          Array array;
          if (nb::try_cast(argument, array)) all.emplace_back(array);
          else if (auto number = scalar_of(argument)) all.emplace_back(*number);
          else all.emplace_back(dtype_of_object(argument));
        }
        return DtypeObject{xp::result_type(all)};
      },
      nb::arg("arrays_and_dtypes"));
  m.def(
      "promote_types",
      [](nb::handle a, nb::handle b) {
        return DtypeObject{xp::promote_types(dtype_of_object(a), dtype_of_object(b))};
      },
      nb::arg("type1"), nb::arg("type2"));
  m.def("common_type", [](const nb::args& arrays) {
    std::vector<Array> all = arrays_of(arrays);
    return DtypeObject{xp::common_type(all)};
  });
  m.def(
      "min_scalar_type",
      [](nb::handle a) {
        if (auto number = scalar_of(a)) return DtypeObject{xp::min_scalar_type(*number)};
        return DtypeObject{xp::min_scalar_type(array_of(a))};
      },
      nb::arg("a"));
  auto fits = [](Dtype dtype, nb::handle kind) {
    if (PyUnicode_Check(kind.ptr())) return xp::isdtype(dtype, nb::cast<std::string>(kind));
    return xp::isdtype(dtype, dtype_of_object(kind));
  };
  m.def(
      "isdtype",
      [fits](nb::handle dtype, nb::handle kind) {
        Dtype of = dtype_of_object(dtype);
        if (!PyTuple_Check(kind.ptr())) return fits(of, kind);
        for (nb::handle one : nb::borrow<nb::tuple>(kind)) {
          if (fits(of, one)) return true;
        }
        return false;
      },
      nb::arg("dtype"), nb::arg("kind"));
  bind_limits(m);
}

// --- sets and sums ---

void bind_sets(nb::module_& m) {
  m.def("_unique", [](nb::handle x) {
    Array a = array_of(x);
    xp::UniqueResult r = unlocked([&] { return xp::unique_all(a); });
    return nb::make_tuple(r.values, r.indices, r.inverse, r.counts);
  });
  m.def(
      "unstack",
      [](nb::handle x, int axis) {
        Array a = array_of(x);
        return tuple_of(unlocked([&] { return xp::unstack(a, axis); }));
      },
      nb::arg("x"), nb::kw_only(), nb::arg("axis") = 0);
  m.def(
      "take_along_axis",
      [](nb::handle x, nb::handle indices, std::optional<int> axis) {
        Array a = array_of(x), at = array_beside(indices, a);
        return unlocked([&] {
          return axis ? xp::take_along_axis(a, at, *axis) : xp::take_along_axis(a.ravel(), at, 0);
        });
      },
      nb::arg("x"), nb::arg("indices"), nb::arg("axis").none() = -1);
  m.def(
      "vecdot",
      [](nb::handle x1, nb::handle x2, int axis) {
        Array a = array_of(x1), b = array_of(x2);
        return unlocked([&] { return xp::vecdot(a, b, axis); });
      },
      nb::arg("x1"), nb::arg("x2"), nb::kw_only(), nb::arg("axis") = -1);
  auto cumulative = [&m](const char* name,
                         Array (*sum)(const Array&, const xp::CumulativeOptions&)) {
    m.def(
        name,
        [sum](nb::handle x, std::optional<int> axis, nb::handle dtype, nb::handle out,
              bool include_initial) {
          Array a = array_of(x);
          OptionalArray place(out);
          xp::CumulativeOptions options;
          options.out = place.option();
          if (axis) options.axis = *axis;
          options.dtype = optional_dtype(dtype);
          options.include_initial = include_initial;
          return stored(place, unlocked([&] { return sum(a, options); }));
        },
        nb::arg("x"), nb::kw_only(), nb::arg("axis") = nb::none(), nb::arg("dtype") = nb::none(),
        nb::arg("out") = nb::none(), nb::arg("include_initial") = false);
  };
  cumulative("cumulative_sum", xp::cumulative_sum),
      cumulative("cumulative_prod", xp::cumulative_prod);
  def_of_one(m, "real", [](const Array& a) { return Array(a.real()); });
  def_of_one(m, "imag", [](const Array& a) { return Array(a.imag()); });
}

// --- factors and norms ---

/// A number, an array of numbers, or none.
class OfTolerance {
 public:
  explicit OfTolerance(nb::handle object) {
    if (auto number = scalar_of(object)) number_ = number->as<double>();
    else if (!object.is_none()) array_ = array_of(object);
  }
  xp::linalg::Tolerance value() const {
    if (array_.defined()) return array_;
    return number_;
  }

 private:
  Array array_;
  std::optional<double> number_;
};

void bind_more_linalg(nb::module_& linalg) {
  linalg.def(
      "cross",
      [](nb::handle x1, nb::handle x2, int axis) {
        Array a = array_of(x1), b = array_of(x2);
        return unlocked([&] { return xp::linalg::cross(a, b, axis); });
      },
      nb::arg("x1"), nb::arg("x2"), nb::kw_only(), nb::arg("axis") = -1);
  linalg.def(
      "diagonal",
      [](nb::handle x, std::int64_t offset) {
        Array a = array_of(x);
        return unlocked([&] { return xp::linalg::diagonal(a, offset); });
      },
      nb::arg("x"), nb::kw_only(), nb::arg("offset") = 0);
  linalg.def(
      "trace",
      [](nb::handle x, std::int64_t offset, nb::handle dtype) {
        Array a = array_of(x);
        if (auto to = optional_dtype(dtype)) a = a.astype(*to, false);
        return unlocked([&] { return xp::linalg::trace(a, offset); });
      },
      nb::arg("x"), nb::kw_only(), nb::arg("offset") = 0, nb::arg("dtype") = nb::none());
  linalg.def(
      "matrix_rank",
      [](nb::handle x, nb::handle tol, bool hermitian, nb::handle rtol) {
        Array a = array_of(x);
        OfTolerance absolute(tol), relative(rtol);
        xp::linalg::MatrixRankOptions options{
            .tol = absolute.value(), .hermitian = hermitian, .rtol = relative.value()};
        return unlocked([&] { return xp::linalg::matrix_rank(a, options); });
      },
      nb::arg("A"), nb::arg("tol") = nb::none(), nb::arg("hermitian") = false, nb::kw_only(),
      nb::arg("rtol") = nb::none());
  linalg.def(
      "pinv",
      [](nb::handle x, nb::handle rcond, bool hermitian, nb::handle rtol) {
        Array a = array_of(x);
        OfTolerance least(rcond), relative(rtol);
        xp::linalg::PinvOptions options{
            .rcond = least.value(), .hermitian = hermitian, .rtol = relative.value()};
        return unlocked([&] { return xp::linalg::pinv(a, options); });
      },
      nb::arg("a"), nb::arg("rcond") = nb::none(), nb::arg("hermitian") = false, nb::kw_only(),
      nb::arg("rtol") = nb::none());
}

void bind_norms(nb::module_& linalg) {
  auto order = [](nb::handle ord) -> xp::linalg::Ord {
    if (ord.is_none()) return {};
    if (PyUnicode_Check(ord.ptr())) return nb::cast<std::string>(ord).c_str();
    return nb::cast<double>(ord);
  };
  linalg.def(
      "vector_norm",
      [order](nb::handle x, Argument<AxisList> axis, bool keepdims, nb::handle ord) {
        Array a = array_of(x);
        xp::linalg::VectorNormOptions options;
        options.axis = axis.get(), options.keepdims = keepdims, options.ord = order(ord);
        return unlocked([&] { return xp::linalg::vector_norm(a, options); });
      },
      nb::arg("x"), nb::kw_only(), nb::arg("axis").none() = nb::none(), nb::arg("keepdims") = false,
      nb::arg("ord") = 2);
  linalg.def(
      "matrix_norm",
      [order](nb::handle x, bool keepdims, nb::handle ord) {
        Array a = array_of(x);
        xp::linalg::MatrixNormOptions options;
        options.keepdims = keepdims, options.ord = order(ord);
        return unlocked([&] { return xp::linalg::matrix_norm(a, options); });
      },
      nb::arg("x"), nb::kw_only(), nb::arg("keepdims") = false, nb::arg("ord") = "fro");
  linalg.def(
      "norm",
      [order](nb::handle x, nb::handle ord, Argument<AxisList> axis, bool keepdims) {
        Array a = array_of(x);
        xp::linalg::Ord how = order(ord);
        return unlocked([&] { return xp::linalg::norm(a, how, axis.get(), keepdims); });
      },
      nb::arg("x"), nb::arg("ord") = nb::none(), nb::arg("axis").none() = nb::none(),
      nb::arg("keepdims") = false);
  linalg.def(
      "cond",
      [order](nb::handle x, nb::handle p) {
        Array a = array_of(x);
        xp::linalg::Ord how = order(p);
        return unlocked([&] { return xp::linalg::cond(a, how); });
      },
      nb::arg("x"), nb::arg("p") = nb::none());
  def_of_one(linalg, "matrix_transpose", [](const Array& a) { return Array(a.mT()); });
}

// --- transforms ---

using OfOneAxis = Array (*)(const Array&, const xp::fft::FftOptions&);
using OfAxes = Array (*)(const Array&, const xp::fft::FftnOptions&);

void bind_fft(nb::module_& m) {
  auto one = [&m](const char* name, OfOneAxis transform) {
    m.def(
        name,
        [transform](nb::handle x, std::optional<std::int64_t> n, int axis,
                    const std::string& norm) {
          Array a = array_of(x);
          xp::fft::FftOptions options;
          options.n = n, options.axis = axis, options.norm = xp::fft::Norm(norm.c_str());
          return unlocked([&] { return transform(a, options); });
        },
        nb::arg("x"), nb::kw_only(), nb::arg("n") = nb::none(), nb::arg("axis") = -1,
        nb::arg("norm") = "backward");
  };
  one("fft", xp::fft::fft), one("ifft", xp::fft::ifft), one("rfft", xp::fft::rfft),
      one("irfft", xp::fft::irfft);
  one("hfft", xp::fft::hfft), one("ihfft", xp::fft::ihfft);
  auto several = [&m](const char* name, OfAxes transform) {
    m.def(
        name,
        [transform](nb::handle x, Argument<AxisList> s, Argument<AxisList> axes,
                    const std::string& norm) {
          Array a = array_of(x);
          xp::fft::FftnOptions options;
          options.s = s.get(), options.axes = axes.get(),
          options.norm = xp::fft::Norm(norm.c_str());
          return unlocked([&] { return transform(a, options); });
        },
        nb::arg("x"), nb::kw_only(), nb::arg("s").none() = nb::none(),
        nb::arg("axes").none() = nb::none(), nb::arg("norm") = "backward");
  };
  several("fftn", xp::fft::fftn), several("ifftn", xp::fft::ifftn);
  several("rfftn", xp::fft::rfftn), several("irfftn", xp::fft::irfftn);
  auto frequencies = [&m](const char* name,
                          Array (*make)(std::int64_t, double, const xp::fft::FreqOptions&)) {
    m.def(
        name,
        [make](std::int64_t n, double d, nb::handle dtype, nb::handle device) {
          xp::fft::FreqOptions options;
          if (auto given = optional_dtype(dtype)) options.dtype = *given;
          if (!device.is_none()) options.device = placement_of(device);
          return unlocked([&] { return make(n, d, options); });
        },
        nb::arg("n"), nb::kw_only(), nb::arg("d") = 1.0, nb::arg("dtype") = nb::none(),
        nb::arg("device") = nb::none());
  };
  frequencies("fftfreq", xp::fft::fftfreq), frequencies("rfftfreq", xp::fft::rfftfreq);
  auto shift = [&m](const char* name, Array (*move)(const Array&, AxisList)) {
    m.def(
        name,
        [move](nb::handle x, Argument<AxisList> axes) {
          Array a = array_of(x);
          return unlocked([&] { return move(a, axes.get()); });
        },
        nb::arg("x"), nb::kw_only(), nb::arg("axes").none() = nb::none());
  };
  shift("fftshift", xp::fft::fftshift), shift("ifftshift", xp::fft::ifftshift);
}

}  // namespace

void bind_standard(nb::module_& m) {
  bind_dtypes_of_results(m);
  bind_sets(m);
  nb::module_ linalg = m.attr("linalg");
  bind_more_linalg(linalg);
  bind_norms(linalg);
  nb::module_ fft = m.def_submodule("fft", "Fourier transforms.");
  bind_fft(fft);
}

}  // namespace rensa::python
