// rensa.serializers.
#include "link.h"

#include "bind.h"

namespace rensa::python {

namespace {

/// What has members, of an object of Python's.
template <class Use> void with_members(nb::handle object, Use use) {
  auto run = [&](auto& what) { unlocked([&] { use(Members(what)); }); };
  if (nb::isinstance<Link>(object)) return run(nb::cast<Link&>(object));
  if (nb::isinstance<Optimizer>(object)) return run(nb::cast<const Optimizer&>(object));
  if (nb::isinstance<training::Trainer>(object))
    return run(nb::cast<const training::Trainer&>(object));
  if (nb::isinstance<training::Updater>(object))
    return run(nb::cast<const training::Updater&>(object));
  if (nb::isinstance<Iterator>(object)) return run(nb::cast<const Iterator&>(object));
  if (nb::isinstance<training::Trigger>(object)) return run(nb::cast<training::Trigger&>(object));
  if (nb::isinstance<Summary>(object)) return run(nb::cast<Summary&>(object));
  if (nb::isinstance<DictSummary>(object)) return run(nb::cast<DictSummary&>(object));
  throw nb::type_error(
      "serializers: a link, an optimizer, an iterator, an updater or a trainer is needed");
}

}  // namespace

void bind_serializers(nb::module_& m) {
  m.def(
      "save_npz",
      [](const std::string& file, nb::handle obj, bool compression) {
        with_members(obj, [&](const Members& what) {
          serializers::save_npz(file, what, {.compression = compression});
        });
      },
      nb::arg("file"), nb::arg("obj"), nb::arg("compression") = true, "With Chainer's keys.");
  m.def(
      "load_npz",
      [](const std::string& file, nb::handle obj, const std::string& path, bool strict) {
        with_members(obj, [&](const Members& what) {
          serializers::detail::load_npz(file, what, {.strict = strict, .path = path});
        });
      },
      nb::arg("file"), nb::arg("obj"), nb::arg("path") = "", nb::arg("strict") = true);
  m.def(
      "save_hdf5",
      [](const std::string& filename, nb::handle obj, int compression) {
        with_members(obj, [&](const Members& what) {
          serializers::save_hdf5(filename, what, {.compression = compression});
        });
      },
      nb::arg("filename"), nb::arg("obj"), nb::arg("compression") = 4);
  m.def(
      "load_hdf5",
      [](const std::string& filename, nb::handle obj) {
        with_members(
            obj, [&](const Members& what) { serializers::detail::load_hdf5(filename, what, {}); });
      },
      nb::arg("filename"), nb::arg("obj"));
  m.def(
      "save_safetensors",
      [](const std::string& file, nb::handle obj) {
        with_members(obj, [&](const Members& what) { serializers::save_safetensors(file, what); });
      },
      nb::arg("file"), nb::arg("obj"));
  m.def(
      "load_safetensors",
      [](const std::string& file, nb::handle obj, bool strict) {
        with_members(obj, [&](const Members& what) {
          serializers::detail::load_safetensors(file, what, {.strict = strict});
        });
      },
      nb::arg("file"), nb::arg("obj"), nb::arg("strict") = true);
  m.def(
      "export_onnx",
      [](const std::string& path, const Link& model, Argument<Variables> inputs) {
        unlocked([&] { serializers::export_onnx(path, model, inputs.get()); });
      },
      nb::arg("path"), nb::arg("model"), nb::arg("inputs"));
}

}  // namespace rensa::python
