// rensa.xp.ndarray and its dtypes.

#include <string>

#include "rensa/array/dlpack.h"
#include "rensa/core/error.h"
#include "rensa/device/stream.h"
#include "routines.h"

namespace rensa::python {

namespace {

nb::object number_of(const Scalar& value) {
  switch (value.kind()) {
    case 'b': return nb::bool_(value.as<bool>());
    case 'i': return nb::int_(value.as<std::int64_t>());
    case 'u': return nb::int_(value.as<std::uint64_t>());
    case 'f': return nb::float_(value.as<double>());
    default: return nb::steal(PyComplex_FromDoubles(value.as<double>(), value.imag()));
  }
}

nb::object item(const Array& a) {
  return number_of(unlocked([&] { return a.item_scalar(); }));
}

nb::object list_of(const Array& host) {
  if (host.ndim() == 0) return number_of(host.item_scalar());
  nb::list values;
  for (std::int64_t i = 0; i < host.shape(0); ++i) values.append(list_of(host[i]));
  return values;
}

Array get_item(const Array& a, nb::handle key) {
  std::vector<Index> index = index_of(key);
  return unlocked([&]() -> Array {
    bool basic = true;
    std::vector<BasicIndex> entries;
    for (const Index& entry : index) {
      basic = basic && !entry.is_array();
      if (basic) entries.push_back(entry.basic());
    }
    if (basic) return a[std::span<const BasicIndex>(entries)];
    return a[Selector(index)];
  });
}

/// Kinds of numbers, from bools to complex ones.
int kind_rank(char kind) {
  return kind == 'b' ? 0 : kind == 'i' || kind == 'u' ? 1 : kind == 'f' ? 2 : 3;
}

void set_item(const Array& a, nb::handle key, nb::handle value) {
  std::vector<Index> index = index_of(key);
  Operand operand = operand_of(value);
  // NumPy converts in whatever way; an integer that does not fit is an error.
  auto* number = std::get_if<Scalar>(&operand);
  if (number && kind_rank(number->kind()) > kind_rank(dtype_kind(a.dtype())))
    operand = array_of_operand(operand);
  unlocked([&] {
    auto* array = std::get_if<Array>(&operand);
    if (array) a[Selector(index)] = array->to(a.device()).astype(a.dtype(), false);
    else a[Selector(index)] = std::get<Scalar>(operand);
  });
}

/// An array of NumPy's on the memory of one on the CPU; itself where it has no such dtype.
nb::object array_of_numpy(const Array& host) {
  if (host.dtype() == bfloat16) return nb::cast(host);
  return nb::module_::import_("numpy").attr("asarray")(nb::cast(host));
}

/// numpy.array_repr: the dtype is told where the numbers do not. A device other than the CPU is,
/// too.
std::string repr(const Array& a) {
  return unlocked([&] {
    xp::Array2StringOptions options{.separator = ", ", .prefix = "array("};
    std::string text = "array(" + (a.size() > 0 ? xp::array2string(a, options) : "[]"), words;
    Dtype dtype = a.dtype();
    bool plain = dtype == bool_ || dtype == int64 || dtype == float64 || dtype == complex128;
    bool cut = a.size() > xp::get_printoptions().threshold;
    if (cut || (a.size() == 0 && a.ndim() > 1)) words += ", shape=" + a.shape().str();
    if (!plain || a.size() == 0) {
      words += ", dtype=" + std::string(dtype_name(dtype));
    }
    if (!a.device().is_cpu()) words += ", device='" + a.device().str() + "'";
    std::size_t last_line = text.size() - (text.rfind('\n') + 1);
    bool fits = last_line + words.size() + 1 <= std::size_t(xp::get_printoptions().linewidth);
    if (!words.empty() && !fits) words = ",\n      " + words.substr(2);
    return text + words + ")";
  });
}

/// What Numba and others take memory of GPUs by (version 3).
nb::dict cuda_interface(const Array& a) {
  if (!a.device().is_cuda() || a.dtype() == bfloat16) {
    throw nb::attribute_error(
        "__cuda_array_interface__: of arrays on a GPU, of a dtype that NumPy has");
  }
  nb::list shape, strides;
  for (int i = 0; i < a.ndim(); ++i) shape.append(a.shape()[i]), strides.append(a.strides()[i]);
  nb::dict interface;
  interface["shape"] = nb::tuple(shape);
  interface["strides"] = nb::tuple(strides);
  char kind = dtype_kind(a.dtype());
  interface["typestr"] = (kind == 'b' ? "|" : "<") + (kind + std::to_string(itemsize(a.dtype())));
  interface["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(a.data()), false);
  interface["version"] = 3;
  interface["stream"] = stream_number(cuda::current_stream(a.device()));
  return interface;
}

// --- DLPack ---

/// Gives what nobody took back to the engine.
template <class Tensor> void drop_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;  // taken
  auto* tensor = static_cast<Tensor*>(PyCapsule_GetPointer(capsule, name));
  if (tensor->deleter) tensor->deleter(tensor);
}

nb::object to_capsule(const Array& a, nb::handle stream, nb::handle max_version,
                      nb::handle dl_device, nb::handle copy) {
  Array given = a;
  if (!dl_device.is_none()) {
    auto [type, index] = nb::cast<std::pair<int, int>>(nb::make_tuple(dl_device[0], dl_device[1]));
    bool host = type == dlpack::kDLCPU;
    given = unlocked([&] { return a.to(host ? cpu() : gpu(index)); });
  }
  if (copy.ptr() == Py_True && given.storage() == a.storage()) given = given.copy();
  if (copy.ptr() == Py_False && given.storage() != a.storage()) {
    throw ValueError("__dlpack__: copy=False, but another device needs a copy");
  }
  ToDlpackOptions options;
  if (!stream.is_none()) {
    auto handle = nb::cast<std::intptr_t>(stream);  // 1: the legacy default stream; -1: no order
    if (handle != -1) options.stream = reinterpret_cast<void*>(handle == 1 ? 0 : handle);
  }
  if (!max_version.is_none() && nb::cast<int>(max_version[0]) >= 1) {
    return nb::steal(
        PyCapsule_New(to_dlpack(given, options), "dltensor_versioned", [](PyObject* c) {
          drop_capsule<dlpack::DLManagedTensorVersioned>(c, "dltensor_versioned");
        }));
  }
  return nb::steal(
      PyCapsule_New(to_dlpack_unversioned(given, options), "dltensor",
                    [](PyObject* c) { drop_capsule<dlpack::DLManagedTensor>(c, "dltensor"); }));
}

// --- the buffer protocol ---

const char* format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bool_: return "?";
    case Dtype::int8: return "b";
    case Dtype::int16: return "h";
    case Dtype::int32: return "i";
    case Dtype::int64: return "q";
    case Dtype::uint8: return "B";
    case Dtype::uint16: return "H";
    case Dtype::uint32: return "I";
    case Dtype::uint64: return "Q";
    case Dtype::float16: return "e";
    case Dtype::float32: return "f";
    case Dtype::float64: return "d";
    case Dtype::complex64: return "Zf";
    case Dtype::complex128: return "Zd";
    case Dtype::bfloat16: break;
  }
  return nullptr;
}

/// What a buffer's view points to.
struct Exported {
  Array array;
  Py_ssize_t shape[kMaxNdim], strides[kMaxNdim];
};

int get_buffer(PyObject* object, Py_buffer* view, int flags) {
  view->obj = nullptr;
  const Array& a = *nb::inst_ptr<Array>(object);
  const char* format = a.defined() ? format_of(a.dtype()) : nullptr;
  const char* why = !a.device().is_cpu() ? "the array is on a GPU; use get()"
                    : !format            ? "bfloat16 has no letter in a buffer's format"
                    : (flags & PyBUF_STRIDES) != PyBUF_STRIDES && !a.is_contiguous()
                        ? "the elements do not lie in C order"
                    : (flags & PyBUF_WRITABLE) && a.storage()->is_read_only()
                        ? "the memory is read-only"
                        : nullptr;
  if (why) {
    PyErr_SetString(PyExc_BufferError, why);
    return -1;
  }
  auto* exported = new Exported{a, {}, {}};
  for (int i = 0; i < a.ndim(); ++i) {
    exported->shape[i] = a.shape()[i], exported->strides[i] = a.strides()[i];
  }
  view->buf = a.data();
  view->obj = Py_NewRef(object);
  view->len = a.nbytes();
  view->itemsize = a.itemsize();
  view->readonly = a.storage()->is_read_only();
  view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
  view->ndim = a.ndim();
  view->shape = (flags & PyBUF_ND) ? exported->shape : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->strides : nullptr;
  view->suboffsets = nullptr;
  view->internal = exported;
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

PyType_Slot array_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                             {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                             {0, nullptr}};

void bind_dtypes(nb::module_& m) {
  nb::class_<DtypeObject>(m, "dtype", "The type of an array's elements.")
      .def(
          "__init__",
          [](DtypeObject* self, nb::handle of) { new (self) DtypeObject{dtype_of_object(of)}; },
          nb::arg("of").none(), "Of whatever NumPy takes for a dtype.")
      .def_prop_ro("name", [](const DtypeObject& d) { return std::string(dtype_name(d.value)); })
      .def_prop_ro("kind", [](const DtypeObject& d) { return std::string(1, dtype_kind(d.value)); })
      .def_prop_ro("itemsize", [](const DtypeObject& d) { return itemsize(d.value); })
      .def("__str__", [](const DtypeObject& d) { return std::string(dtype_name(d.value)); })
      .def("__repr__",
           [](const DtypeObject& d) { return "dtype('" + std::string(dtype_name(d.value)) + "')"; })
      .def(
          "__eq__",
          [](const DtypeObject& d, nb::handle other) {
            if (other.is_none()) return d.value == float64;  // NumPy's
            try {
              return dtype_of_object(other) == d.value;
            } catch (const DtypeError&) {
              return false;
            }
          },
          nb::arg("other").none())
      .def("__hash__", [](const DtypeObject& d) { return static_cast<int>(d.value); });
  for (int i = 0; i < kNumDtypes; ++i) {
    auto dtype = static_cast<Dtype>(i);
    std::string name(dtype_name(dtype));
    m.attr(name.c_str()) = DtypeObject{dtype};
    if (dtype == bool_) m.attr("bool_") = DtypeObject{dtype};
  }
}

}  // namespace

void bind_arrays(nb::module_& m) {
  bind_dtypes(m);
  nb::class_<Array> array(m, "ndarray", nb::type_slots(array_slots),
                          "An array on the CPU or a GPU. Slices are views, as NumPy's.");
  array.def_prop_ro("strides", [](const Array& a) { return tuple_of_extents(a.strides()); })
      .def_prop_ro("ndim", [](const Array& a) { return a.ndim(); })
      .def_prop_ro("size", [](const Array& a) { return a.size(); })
      .def_prop_ro("nbytes", [](const Array& a) { return a.nbytes(); })
      .def_prop_ro("itemsize", [](const Array& a) { return a.itemsize(); })
      .def_prop_ro("dtype", [](const Array& a) { return DtypeObject{a.dtype()}; })
      .def_prop_ro("device", [](const Array& a) { return a.device(); })
      .def_prop_ro("T", [](const Array& a) { return a.T(); })
      .def_prop_ro("mT", [](const Array& a) { return a.mT(); })
      .def("__len__",
           [](const Array& a) {
             if (a.ndim() == 0) throw nb::type_error("len() of an array without axes");
             return a.shape(0);
           })
      .def("__getitem__", &get_item, nb::arg("key").none())
      .def("__setitem__", &set_item, nb::arg("key").none(), nb::arg("value"))
      .def("__str__", [](const Array& a) { return unlocked([&] { return xp::array_str(a); }); })
      .def("__repr__", &repr)
      .def("item", &item, "The one element as a number of Python's. Waits.")
      .def(
          "tolist", [](const Array& a) { return list_of(unlocked([&] { return a.get(); })); },
          "The elements as nested lists. Waits.")
      .def("__bool__",
           [](const Array& a) {
             if (a.size() != 1) {
               throw ValueError("the truth of an array of " + std::to_string(a.size()) +
                                " elements: use a.any() or a.all()");
             }
             return unlocked([&] { return a.item<bool>(); });
           })
      .def("__int__", [](const Array& a) { return nb::int_(item(a)); })
      .def("__float__", [](const Array& a) { return unlocked([&] { return a.item<double>(); }); })
      .def("__complex__",
           [](const Array& a) {
             Scalar value = unlocked([&] { return a.item_scalar(); });
             return nb::steal(PyComplex_FromDoubles(value.as<double>(), value.imag()));
           })
      .def("__index__",
           [](const Array& a) {
             char kind = dtype_kind(a.dtype());
             if (a.size() != 1 || (kind != 'i' && kind != 'u')) {
               throw nb::type_error("only an array of one integer is an index");
             }
             return nb::int_(item(a));
           })
      .def("__copy__", [](const Array& a) { return a.copy(); })
      .def("__deepcopy__", [](const Array& a, nb::handle) { return a.copy(); })
      .def("__dlpack__", &to_capsule, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none())
      .def_prop_ro("__cuda_array_interface__", &cuda_interface)
      .def("__dlpack_device__",
           [](const Array& a) {
             Device d = a.device();
             return nb::make_tuple(static_cast<int>(d.is_cpu() ? dlpack::kDLCPU : dlpack::kDLCUDA),
                                   static_cast<int>(d.index));
           })
      .def(
          "to",
          [](const Array& a, nb::handle device) {
            Placement to = placement_of(device);
            return unlocked([&] { return a.to(to.device()); });
          },
          nb::arg("device"), "This array on a device. Waits towards the CPU.")
      .def(
          "get",
          [](const Array& a, nb::handle stream, nb::handle order, nb::handle out,
             bool) -> nb::object {
            Order in = order_of(order);
            bool host = a.device().is_cpu();  // where streams of GPUs are nothing
            OptionalArray place(out);
            if (!place.array() && (host || stream.is_none())) {
              Array made = unlocked([&] { return a.get(); });
              if (in.of(made) == 'F') made = made.copy(in);
              return array_of_numpy(made);
            }
            Array to = place.array() ? *place.array() : xp::empty(a.shape(), a.dtype(), cpu());
            if (host) {
              unlocked([&] { to.assign(a); });
              return nb::borrow(place.object());
            }
            cuda::Stream on = stream.is_none() ? cuda::current_stream(a.device())
                                               : nb::cast<const cuda::Stream&>(stream);
            unlocked([&] { a.get(to, on); });
            return place.array() ? nb::borrow(place.object()) : array_of_numpy(to);
          },
          nb::arg("stream") = nb::none(), nb::arg("order").none() = "C",
          nb::arg("out") = nb::none(), nb::arg("blocking") = true,
          "An array of NumPy's (of bfloat16, which it has not, one of ours on the CPU). Waits, "
          "unless "
          "`out` is of page-locked memory.")
      .def(
          "set",
          [](const Array& a, nb::handle source, nb::handle stream) {
            Array values = array_of(source, {}, cpu());
            if (stream.is_none() || a.device().is_cpu()) return unlocked([&] { a.set(values); });
            const auto& on = nb::cast<const cuda::Stream&>(stream);
            unlocked([&] { a.set(values, on); });
          },
          nb::arg("arr"), nb::arg("stream") = nb::none(),
          "Copies an array of the host into this one; of page-locked memory at once, else it "
          "waits.")
      .def("fill",
           [](const Array& a, nb::handle value) {
             if (nb::isinstance<Array>(value) && nb::cast<const Array&>(value).ndim() != 0)
               throw ValueError("fill: one value is needed");
             set_item(a, nb::ellipsis(), value);
           })
      .def(
          "astype",
          [](nb::handle self, nb::handle dtype, nb::handle order, nb::handle casting, nb::handle,
             bool copy) {
            const Array& a = nb::cast<const Array&>(self);
            Dtype to = dtype_of_object(dtype);
            xp::AstypeOptions options{.copy = copy, .order = order_of(order, 'K')};
            std::string how = casting.is_none() ? "unsafe" : nb::cast<std::string>(casting);
            options.casting = how;
            return itself_or(self, unlocked([&] { return a.astype(to, options); }));
          },
          nb::arg("dtype"), nb::arg("order").none() = "K", nb::arg("casting") = nb::none(),
          nb::arg("subok") = nb::none(), nb::arg("copy") = true)
      .def(
          "copy",
          [](const Array& a, nb::handle order) {
            Order in = order_of(order);
            return unlocked([&] { return a.copy(in); });
          },
          nb::arg("order").none() = "C")
      .def(
          "view",
          [](const Array& a, nb::handle dtype) {
            return dtype.is_none() ? a.reshape(a.shape()) : a.view(dtype_of_object(dtype));
          },
          nb::arg("dtype") = nb::none())
      .def(
          "tobytes",
          [](const Array& a, nb::handle order) {
            bool fortran = order_of(order).of(a) == 'F';
            std::string bytes =
                unlocked([&] { return fortran ? a.transpose().tobytes() : a.tobytes(); });
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("order").none() = "C");
}

}  // namespace rensa::python
