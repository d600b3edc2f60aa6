// rensa.Reporter, Summary and DictSummary: values that models report.
#include <nanobind/stl/map.h>

#include "bind.h"
#include "link.h"
#include "rensa/core/error.h"

namespace rensa::python {

namespace {

/// A reporter, with the observation that its scopes write to.
struct ReporterOfPython {
  struct Open {
    Open(const Reporter& reporter, nb::object target)
        : scope(reporter, observation), into(std::move(target)) {}
    Observation observation;
    Reporter::Scope scope;
    nb::object into;  // Python's dictionary
  };
  Reporter reporter;
  std::vector<std::shared_ptr<Open>> scopes;
};

/// Of the calling thread, the last one first.
thread_local std::vector<ReporterOfPython*> current;

void open(nb::handle self, nb::object into) {
  auto& r = nb::cast<ReporterOfPython&>(self);
  r.scopes.push_back(std::make_shared<ReporterOfPython::Open>(r.reporter, std::move(into)));
  current.push_back(&r);
}

/// What was reported goes to the dictionary at the end of the scope.
void close(nb::handle self) {
  auto& r = nb::cast<ReporterOfPython&>(self);
  if (r.scopes.empty()) throw ValueError("Reporter: there is no scope to end");
  auto last = r.scopes.back();
  r.scopes.pop_back();
  current.pop_back();
  for (const auto& [name, value] : last->observation) last->into[name.c_str()] = given(value);
}

/// Numbers and arrays of a dictionary, whose other values are left out.
Observation observation_of(const nb::dict& values) {
  Observation observation;
  for (auto [name, value] : values) {
    nb::object of = nb::getattr(value, "array", value);
    if (PyUnicode_Check(of.ptr()) || of.is_none()) continue;
    if (PyTuple_Check(of.ptr())) {
      throw NotImplementedError(
          "DictSummary: \"" + nb::cast<std::string>(name) +
          "\" is a value with a weight; means are of values that count alike");
    }
    observation[nb::cast<std::string>(name)] = array_of(of);
  }
  return observation;
}

nb::object array_of_number(double value) { return given(xp::full({}, value, float64, cpu())); }

void bind_summaries(nb::module_& m) {
  nb::class_<Summary>(m, "Summary", "A running mean.")
      .def(nb::init<>())
      .def("add", [](Summary& s, Argument<Array> value) { s.add(value.get()); })
      .def("compute_mean",
           [](const Summary& s) { return array_of_number(unlocked([&] { return s.mean(); })); })
      .def_prop_ro("count", &Summary::count);
  nb::class_<DictSummary>(m, "DictSummary", "A running mean of each value of dictionaries.")
      .def(nb::init<>())
      .def("add", [](DictSummary& s, const nb::dict& values) { s.add(observation_of(values)); })
      .def(
          "compute_mean",
          [](const DictSummary& s) {
            nb::dict means;
            for (auto& [name, mean] : unlocked([&] { return s.compute_mean(); }))
              means[name.c_str()] = array_of_number(mean);
            return means;
          },
          "The means by name. Waits.");
}

}  // namespace

void bind_reporters(nb::module_& m) {
  nb::class_<ReporterOfPython>(m, "Reporter", nb::dynamic_attr(),
                               "Knows the names of links that report, and where values go.")
      .def("__init__",
           [](nb::handle_t<ReporterOfPython> self) {
             new (nb::inst_ptr<ReporterOfPython>(self)) ReporterOfPython();
             nb::inst_mark_ready(self);
             self.attr("observation") = nb::dict();
           })
      .def("add_observer", [](ReporterOfPython& r, const std::string& name,
                              const Link& observer) { r.reporter.add_observer(name, observer); })
      .def(
          "add_observers",
          [](ReporterOfPython& r, const std::string& prefix, const nb::iterable& observers) {
            for (nb::handle one : observers) {
              std::string path = nb::cast<std::string>(nb::object(one[0]));
              r.reporter.add_observer(prefix + path, nb::cast<Link&>(nb::object(one[1])));
            }
          },
          "Of (path, link) pairs, as namedlinks() gives them.")
      .def("_open", [](nb::handle_t<ReporterOfPython> self,
                       nb::object into) { open(self, std::move(into)); })
      .def("_close", [](nb::handle_t<ReporterOfPython> self) { close(self); })
      .def("__enter__",
           [](nb::handle_t<ReporterOfPython> self) {
             open(self, self.attr("observation"));
             return nb::borrow(self);
           })
      .def("__exit__", [](nb::handle_t<ReporterOfPython> self, const nb::args&) { close(self); });
  m.def("_current_reporter",
        [] { return current.empty() ? nb::none() : nb::find(*current.back()); });
  bind_summaries(m);
}

}  // namespace rensa::python
