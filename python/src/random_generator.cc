// rensa.xp.random.Generator: a stream of random numbers of one's own.
#include <limits>

#include "rensa/core/error.h"
#include "routines.h"

namespace rensa::python {

std::uint64_t seed_of(nb::handle object) {
  if (object.is_none()) return xp::random::Seed(none).value();
  if (is_integer(object)) {
    nb::object number = nb::steal(PyNumber_Index(object.ptr()));
    if (!number.is_valid()) nb::raise_python_error();
    int negative = PyObject_RichCompareBool(number.ptr(), nb::int_(0).ptr(), Py_LT);
    if (negative < 0) nb::raise_python_error();
    if (negative) throw ValueError("a seed is not negative");
    return xp::random::Seed(nb::cast<std::uint64_t>(number)).value();
  }
  Array numbers = array_of(object);
  char kind = dtype_kind(numbers.dtype());
  if (kind != 'i' && kind != 'u' && kind != 'b')
    throw nb::type_error("a seed is an integer, several, or None");
  return unlocked([&] { return xp::random::Seed(numbers.ravel()).value(); });
}

namespace {

using xp::random::DrawOptions;
using xp::random::Generator;
using xp::random::Parameter;
using xp::random::Philox4x3210;

/// The keywords size, dtype and out; floats of float64 and counts of int64 where nothing is said.
class Draw {
 public:
  Draw(nb::handle size, nb::handle dtype, nb::handle out, Dtype usual) : place(out) {
    if (!size.is_none()) options_.size = xp::random::Size(shape_of_object(size));
    options_.dtype = optional_dtype(dtype);
    if (!options_.dtype && !place.array()) options_.dtype = usual;
    options_.out = place.option();
  }
  const DrawOptions& options() const { return options_; }
  OptionalArray place;

 private:
  DrawOptions options_;
};

using Class = nb::class_<Generator>;
using OfNone = Array (Generator::*)(const DrawOptions&) const;
using OfOne = Array (Generator::*)(const Parameter&, const DrawOptions&) const;
using OfTwo = Array (Generator::*)(const Parameter&, const Parameter&, const DrawOptions&) const;
using OfThree = Array (Generator::*)(const Parameter&, const Parameter&, const Parameter&,
                                     const DrawOptions&) const;

void def0(Class& c, const char* name, OfNone draw) {
  c.def(
      name,
      [draw](const Generator& g, nb::handle size, nb::handle dtype, nb::handle, nb::handle out) {
        Draw how(size, dtype, out, float64);
        return stored(how.place, unlocked([&] { return (g.*draw)(how.options()); }));
      },
      nb::arg("size") = nb::none(), nb::arg("dtype") = nb::none(), nb::arg("method") = nb::none(),
      nb::arg("out") = nb::none());
}

template <class First>
void def1(Class& c, const char* name, OfOne draw, const First& first, Dtype usual) {
  c.def(
      name,
      [draw, usual](const Generator& g, In<Parameter> a, nb::handle size, nb::handle dtype,
                    nb::handle out) {
        Draw how(size, dtype, out, usual);
        return stored(how.place, unlocked([&] { return (g.*draw)(give(a), how.options()); }));
      },
      first, nb::arg("size") = nb::none(), nb::arg("dtype") = nb::none(),
      nb::arg("out") = nb::none());
}

template <class First, class Second>
void def2(Class& c, const char* name, OfTwo draw, const First& first, const Second& second,
          Dtype usual = float64) {
  c.def(
      name,
      [draw, usual](const Generator& g, In<Parameter> a, In<Parameter> b, nb::handle size,
                    nb::handle dtype, nb::handle out) {
        Draw how(size, dtype, out, usual);
        return stored(how.place,
                      unlocked([&] { return (g.*draw)(give(a), give(b), how.options()); }));
      },
      first, second, nb::arg("size") = nb::none(), nb::arg("dtype") = nb::none(),
      nb::arg("out") = nb::none());
}

void def3(Class& c, const char* name, OfThree draw, const char* first, const char* second,
          const char* third, Dtype usual = float64) {
  c.def(
      name,
      [draw, usual](const Generator& g, In<Parameter> x, In<Parameter> y, In<Parameter> z,
                    nb::handle size, nb::handle dtype, nb::handle out) {
        Draw how(size, dtype, out, usual);
        return stored(how.place, unlocked([&] {
                        return (g.*draw)(give(x), give(y), give(z), how.options());
                      }));
      },
      nb::arg(first), nb::arg(second), nb::arg(third), nb::arg("size") = nb::none(),
      nb::arg("dtype") = nb::none(), nb::arg("out") = nb::none());
}

void bind_distributions(Class& c) {
  using G = Generator;
  auto usual = [](const char* name, double value) { return nb::arg(name) = value; };
  def0(c, "random", &G::random), def0(c, "standard_normal", &G::standard_normal);
  def0(c, "standard_exponential", &G::standard_exponential);
  def0(c, "standard_cauchy", &G::standard_cauchy);
  def1(c, "exponential", &G::exponential, usual("scale", 1), float64);
  def1(c, "rayleigh", &G::rayleigh, usual("scale", 1), float64);
  def1(c, "poisson", &G::poisson, usual("lam", 1), int64);
  def1(c, "standard_gamma", &G::standard_gamma, nb::arg("shape"), float64);
  def1(c, "chisquare", &G::chisquare, nb::arg("df"), float64);
  def1(c, "standard_t", &G::standard_t, nb::arg("df"), float64);
  def1(c, "pareto", &G::pareto, nb::arg("a"), float64);
  def1(c, "power", &G::power, nb::arg("a"), float64);
  def1(c, "weibull", &G::weibull, nb::arg("a"), float64);
  def1(c, "geometric", &G::geometric, nb::arg("p"), int64);
  def1(c, "zipf", &G::zipf, nb::arg("a"), int64);
  def1(c, "logseries", &G::logseries, nb::arg("p"), int64);
  def2(c, "uniform", &G::uniform, usual("low", 0), usual("high", 1));
  def2(c, "normal", &G::normal, usual("loc", 0), usual("scale", 1));
  def2(c, "lognormal", &G::lognormal, usual("mean", 0), usual("sigma", 1));
  def2(c, "gumbel", &G::gumbel, usual("loc", 0), usual("scale", 1));
  def2(c, "laplace", &G::laplace, usual("loc", 0), usual("scale", 1));
  def2(c, "logistic", &G::logistic, usual("loc", 0), usual("scale", 1));
  def2(c, "gamma", &G::gamma, nb::arg("shape"), usual("scale", 1));
  def2(c, "beta", &G::beta, nb::arg("a"), nb::arg("b"));
  def2(c, "noncentral_chisquare", &G::noncentral_chisquare, nb::arg("df"), nb::arg("nonc"));
  def2(c, "f", &G::f, nb::arg("dfnum"), nb::arg("dfden"));
  def2(c, "wald", &G::wald, nb::arg("mean"), nb::arg("scale"));
  def2(c, "vonmises", &G::vonmises, nb::arg("mu"), nb::arg("kappa"));
  def2(c, "binomial", &G::binomial, nb::arg("n"), nb::arg("p"), int64);
  def2(c, "negative_binomial", &G::negative_binomial, nb::arg("n"), nb::arg("p"), int64);
  def3(c, "noncentral_f", &G::noncentral_f, "dfnum", "dfden", "nonc");
  def3(c, "triangular", &G::triangular, "left", "mode", "right");
  def3(c, "hypergeometric", &G::hypergeometric, "ngood", "nbad", "nsample", int64);
}

/// Integers whose bounds are numbers or arrays.
Array integers(const Generator& g, nb::handle low, nb::handle high, nb::handle size,
               nb::handle dtype, bool endpoint) {
  nb::object from = high.is_none() ? nb::object(nb::int_(0)) : nb::borrow(low);
  nb::object to = high.is_none() ? nb::borrow(low) : nb::borrow(high);
  for (nb::object* bound : {&from, &to}) {
    if (PyFloat_Check(bound->ptr())) *bound = nb::int_(*bound);  // as NumPy's, towards zero
  }
  Dtype of = optional_dtype(dtype).value_or(int64);
  xp::random::Size shape;
  if (!size.is_none()) shape = xp::random::Size(shape_of_object(size));
  if (is_integer(from) && is_integer(to)) {
    auto least = nb::cast<std::int64_t>(nb::int_(from)),
         most = nb::cast<std::int64_t>(nb::int_(to));
    return unlocked([&] { return g.integers(least, most, shape, of, endpoint); });
  }
  Array least = array_of(from), most = array_of(to);
  return unlocked([&] { return g.randint(least, endpoint ? most + Scalar(1) : most, shape, of); });
}

Array choice(const Generator& g, nb::handle a, nb::handle size, bool replace, nb::handle p,
             int axis) {
  OptionalArray shares(p);
  xp::random::ChoiceOptions options{.replace = replace, .p = shares.option(), .axis = axis};
  if (!size.is_none()) options.size = xp::random::Size(shape_of_object(size));
  if (is_integer(a)) {
    auto n = nb::cast<std::int64_t>(nb::int_(nb::borrow(a)));
    return unlocked([&] { return g.choice(n, options); });
  }
  Array of = array_of(a);
  if (of.ndim() == 0) {
    auto n = of.item_scalar().as<std::int64_t>();
    return unlocked([&] { return g.choice(n, options); });
  }
  return unlocked([&] { return g.choice(of, options); });
}

void bind_orders(Class& c) {
  c.def("integers", &integers, nb::arg("low"), nb::arg("high") = nb::none(),
        nb::arg("size") = nb::none(), nb::arg("dtype") = nb::none(), nb::arg("endpoint") = false);
  c.def("choice", &choice, nb::arg("a"), nb::arg("size") = nb::none(), nb::arg("replace") = true,
        nb::arg("p") = nb::none(), nb::arg("axis") = 0);
  c.def(
      "permutation",
      [](const Generator& g, nb::handle a, int axis) {
        if (is_integer(a)) {
          auto n = nb::cast<std::int64_t>(nb::int_(nb::borrow(a)));
          return unlocked([&] { return g.permutation(n); });
        }
        Array of = array_of(a);
        return unlocked([&] { return g.permutation(of, axis); });
      },
      nb::arg("a"), nb::arg("axis") = 0);
  c.def(
      "shuffle",
      [](const Generator& g, const Array& a, int axis) { unlocked([&] { g.shuffle(a, axis); }); },
      nb::arg("a"), nb::arg("axis") = 0);
  c.def(
      "bytes",
      [](const Generator& g, std::int64_t length) {
        auto made = unlocked([&] { return g.bytes(length); });
        return nb::bytes(reinterpret_cast<const char*>(made.data()), made.size());
      },
      nb::arg("length"));
  auto size_of = [](nb::handle size) {
    return size.is_none() ? xp::random::Size() : xp::random::Size(shape_of_object(size));
  };
  c.def(
      "dirichlet",
      [size_of](const Generator& g, nb::handle alpha, nb::handle size, nb::handle dtype) {
        Array a = array_of(alpha);
        xp::random::Size shape = size_of(size);
        Dtype of = optional_dtype(dtype).value_or(float64);
        return unlocked([&] { return g.dirichlet(a, shape, of); });
      },
      nb::arg("alpha"), nb::arg("size") = nb::none(), nb::arg("dtype") = nb::none());
  c.def(
      "multivariate_normal",
      [size_of](const Generator& g, nb::handle mean, nb::handle cov, nb::handle size,
                nb::handle dtype) {
        Array center = array_of(mean), spread = array_of(cov);
        xp::random::Size shape = size_of(size);
        Dtype of = optional_dtype(dtype).value_or(float64);
        return unlocked([&] { return g.multivariate_normal(center, spread, shape, of); });
      },
      nb::arg("mean"), nb::arg("cov"), nb::arg("size") = nb::none(), nb::kw_only(),
      nb::arg("dtype") = nb::none());
  c.def(
      "multinomial",
      [size_of](const Generator& g, std::int64_t n, nb::handle pvals, nb::handle size) {
        Array shares = array_of(pvals);
        xp::random::Size shape = size_of(size);
        return unlocked([&] { return g.multinomial(n, shares, shape); });
      },
      nb::arg("n"), nb::arg("pvals"), nb::arg("size") = nb::none());
}

}  // namespace

void bind_generator(nb::module_& random) {
  nb::class_<Philox4x3210>(random, "Philox4x3210", "The bit generator: Philox4x32-10.")
      .def(
          "__init__",
          [](Philox4x3210* self, nb::handle seed) { new (self) Philox4x3210{seed_of(seed)}; },
          nb::arg("seed") = nb::none())
      .def_ro("seed", &Philox4x3210::seed)
      .def(
          "random_raw",
          [](const Philox4x3210& bits, nb::handle size) {
            xp::random::Size shape;
            if (!size.is_none()) shape = xp::random::Size(shape_of_object(size));
            constexpr auto most = std::numeric_limits<std::uint32_t>::max();
            return unlocked(
                [&] { return Generator(bits).integers(0, std::int64_t(most) + 1, shape, uint32); });
          },
          nb::arg("size") = nb::none(), "The first numbers of the stream: 32 bits each.");
  Class c(random, "Generator", "Random numbers of a stream of one's own.");
  c.def(
       "__init__",
       [](Generator* self, nb::handle bits, nb::handle device) {
         Placement where = placement_of(device);
         Philox4x3210 from = nb::isinstance<Philox4x3210>(bits) ? nb::cast<Philox4x3210>(bits)
                                                                : Philox4x3210{seed_of(bits)};
         new (self) Generator(from, where);
       },
       nb::arg("bit_generator") = nb::none(), nb::kw_only(), nb::arg("device") = nb::none(),
       "Of a bit generator, or of a seed.")
      .def_prop_rw(
          "bit_generator", [](const Generator& g) { return Philox4x3210{g.get_state().seed}; },
          [](Generator& g, const Philox4x3210& bits) {
            g.set_state({bits.seed, 0});
          })
      .def("get_state", [](const Generator& g) { return g.get_state().str(); })
      .def(
          "set_state",
          [](const Generator& g, const std::string& state) {
            g.set_state(xp::random::GeneratorState::parse(state));
          },
          nb::arg("state"))
      .def(
          "seed",
          [](const Generator& g, nb::handle seed) {
            g.set_state({seed_of(seed), 0});
          },
          nb::arg("seed") = nb::none(), "Begins anew.");
  bind_distributions(c);
  bind_orders(c);
  random.def(
      "default_rng",
      [](nb::handle seed, nb::handle device) {
        if (nb::isinstance<Generator>(seed)) return nb::cast<Generator>(seed);
        if (nb::isinstance<Philox4x3210>(seed))
          return Generator(nb::cast<Philox4x3210>(seed), placement_of(device));
        return Generator(Philox4x3210{seed_of(seed)}, placement_of(device));
      },
      nb::arg("seed") = nb::none(), nb::kw_only(), nb::arg("device") = nb::none());
}

}  // namespace rensa::python
