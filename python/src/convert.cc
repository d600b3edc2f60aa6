#include "convert.h"

#include <cstring>
#include <string>
#include <utility>

#include "rensa/array/dlpack.h"
#include "rensa/array/dtype_info.h"
#include "rensa/core/error.h"

namespace rensa::python {

namespace {

[[noreturn]] void throw_type(const std::string& what, nb::handle object) {
  std::string text = what + ", not " + nb::cast<std::string>(nb::repr(object.type()));
  throw nb::type_error(text.c_str());
}

bool is_text(nb::handle object) { return PyUnicode_Check(object.ptr()); }

std::int64_t integer_of(nb::handle object) {
  nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index) nb::raise_python_error();
  std::int64_t value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred()) nb::raise_python_error();
  return value;
}

/// A number of Python's that fits 64 bits.
Scalar scalar_of_integer(nb::handle object) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (overflow == 0) {
    if (value == -1 && PyErr_Occurred()) nb::raise_python_error();
    return static_cast<std::int64_t>(value);
  }
  unsigned long long large = PyLong_AsUnsignedLongLong(object.ptr());
  if (PyErr_Occurred()) nb::raise_python_error();  // OverflowError
  return static_cast<std::uint64_t>(large);
}

// --- memory of others ---

/// An element's type by the letters of the struct module; nothing for another one.
std::optional<Dtype> dtype_of_format(const char* format, Py_ssize_t size) {
  std::string letters = format ? format : "B";
  if (!letters.empty() && (letters[0] == '@' || letters[0] == '=' || letters[0] == '<')) {
    letters.erase(0, 1);
  }
  if (letters == "?") return bool_;
  if (letters == "Zf") return complex64;
  if (letters == "Zd") return complex128;
  if (letters.size() != 1) return {};
  if (std::strchr("efd", letters[0])) return size == 2 ? float16 : size == 4 ? float32 : float64;
  bool is_signed = std::strchr("bhilqn", letters[0]),
       is_unsigned = std::strchr("BHILQN", letters[0]);
  if (!is_signed && !is_unsigned) return {};
  switch (size) {
    case 1: return is_signed ? int8 : uint8;
    case 2: return is_signed ? int16 : uint16;
    case 4: return is_signed ? int32 : uint32;
    default: return is_signed ? int64 : uint64;
  }
}

/// A buffer that somebody exports, until the last array on it is gone.
class Buffer {
 public:
  explicit Buffer(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) nb::raise_python_error();
  }
  ~Buffer() {
    if (!Py_IsInitialized()) return;
    nb::gil_scoped_acquire lock;
    PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_{};
};

/// The array of ours that an array of NumPy's is made of; undefined where there is none.
Array owner_of(nb::handle object) {
  constexpr int kMostViews = 8;
  nb::object base = nb::borrow(object);
  for (int i = 0; i < kMostViews && !base.is_none(); ++i) {
    if (nb::isinstance<Array>(base)) return nb::cast<Array>(base);
    nb::object memory = nb::getattr(base, "obj", nb::none());  // a memoryview's
    base = memory.is_none() ? nb::getattr(base, "base", nb::none()) : memory;
  }
  return {};
}

/// On page-locked memory of ours an array is known as such: copies of it do not wait.
Array array_of_pinned(nb::handle object, const Py_buffer& view, const Shape& shape, Dtype dtype) {
  if (!PyBuffer_IsContiguous(&view, 'C')) return {};
  Array owner = owner_of(object);
  if (!owner.defined() || !owner.storage()->is_pinned() || !owner.is_contiguous()) return {};
  std::int64_t offset = static_cast<std::byte*>(view.buf) - static_cast<std::byte*>(owner.data());
  if (offset < 0 || offset + view.len > owner.nbytes()) return {};
  Array bytes = owner.ravel().view(uint8);
  return Array(bytes[Slice(offset, offset + view.len)]).view(dtype).reshape(shape);
}

/// Shares the memory; read-only memory is copied. Undefined where the object has a buffer that it
/// does not give, and __dlpack__ (CuPy's arrays).
Array array_of_buffer(nb::handle object, bool* shared) {
  std::shared_ptr<Buffer> buffer;
  try {
    buffer = std::make_shared<Buffer>(object, PyBUF_RECORDS_RO);
  } catch (nb::python_error&) {
    if (!nb::hasattr(object, "__dlpack__")) throw;
    return {};
  }
  const Py_buffer& view = buffer->view();
  auto dtype = dtype_of_format(view.format, view.itemsize);
  if (!dtype) {
    throw DtypeError("array: elements of the format \"" + std::string(view.format) +
                     "\" are none of an array's dtypes");
  }
  Shape shape, strides;
  for (int i = 0; i < view.ndim; ++i) shape.push_back(view.shape[i]);
  for (int i = 0; i < view.ndim; ++i) strides.push_back(view.strides[i]);
  *shared = false;
  std::int64_t size = 1;
  for (int i = 0; i < view.ndim; ++i) size *= view.shape[i];
  if (size == 0) return xp::empty(shape, *dtype, cpu());
  Array a = array_of_pinned(object, view, shape, *dtype);
  if (!a.defined()) a = xp::wrap(view.buf, shape, strides, *dtype, cpu(), buffer);
  if (view.readonly) return a.copy();
  *shared = true;
  return a;
}

/// What `object` has to be told by __dlpack__: the stream that is to follow its work.
nb::dict capsule_options(nb::handle object) {
  nb::dict options;
  if (!nb::hasattr(object, "__dlpack_device__")) return options;
  auto [type, index] = nb::cast<std::pair<int, int>>(object.attr("__dlpack_device__")());
  if (type != dlpack::kDLCUDA) return options;
  options["stream"] = stream_number(cuda::current_stream(gpu(index)));
  return options;
}

Array array_of_capsule(nb::handle object) {
  nb::dict options = capsule_options(object);
  nb::object made;
  try {
    made = object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0), **options);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    made = object.attr("__dlpack__")(**options);  // one that knows no versions
  }
  PyObject* capsule = made.ptr();
  auto take = [&]<class T>(const char* name, const char* used, T*) {
    auto* tensor = static_cast<T*>(PyCapsule_GetPointer(capsule, name));
    if (!tensor) nb::raise_python_error();
    Array a = xp::from_dlpack(tensor);
    PyCapsule_SetName(capsule, used);
    return a;
  };
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    return take("dltensor_versioned", "used_dltensor_versioned",
                static_cast<dlpack::DLManagedTensorVersioned*>(nullptr));
  }
  return take("dltensor", "used_dltensor", static_cast<dlpack::DLManagedTensor*>(nullptr));
}

// --- sequences ---

bool is_sequence(nb::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
}

/// The numbers of nested sequences, in C order.
struct Numbers {
  std::vector<Scalar> values;
  Shape shape;
};

[[noreturn]] void throw_ragged() {
  throw ShapeError("array: the sequences at one depth have different lengths");
}

void gather_numbers(nb::handle object, int depth, Numbers& out) {
  if (!is_sequence(object)) {
    if (depth != out.shape.size()) throw_ragged();
    auto number = scalar_of(object);
    if (!number) throw_type("array: a number or a sequence of them is needed", object);
    out.values.push_back(*number);
    return;
  }
  auto sequence = nb::borrow<nb::sequence>(object);
  auto n = static_cast<std::int64_t>(nb::len(sequence));
  if (depth >= out.shape.size() || out.shape[depth] != n) throw_ragged();
  for (nb::handle item : sequence) gather_numbers(item, depth + 1, out);
}

/// By the first element at each depth; whether there is an array among them.
bool find_shape(nb::handle object, Shape& shape) {
  while (is_sequence(object)) {
    auto sequence = nb::borrow<nb::sequence>(object);
    auto n = static_cast<std::int64_t>(nb::len(sequence));
    shape.push_back(n);
    for (nb::handle item : sequence) {
      if (!is_sequence(item) && !scalar_of(item)) return true;
    }
    if (n == 0) return false;
    object = sequence[0];
  }
  return false;
}

/// Throws OverflowError, as NumPy does, for an integer that the dtype does not hold.
void check_holds(const Scalar& value, Dtype dtype) {
  bool huge = value.kind() == 'u';  // no int64 holds it
  if (!huge && value.kind() != 'i') return;
  bool fits = false;
  if (dtype_kind(dtype) == 'u') {
    std::uint64_t most = xp::iinfo(dtype).max;
    fits = huge ? value.as<std::uint64_t>() <= most
                : value.as<std::int64_t>() >= 0 && value.as<std::uint64_t>() <= most;
  } else {
    auto most = static_cast<std::int64_t>(xp::iinfo(dtype).max);
    fits = !huge && value.as<std::int64_t>() >= xp::iinfo(dtype).min &&
           value.as<std::int64_t>() <= most;
  }
  if (fits) return;
  std::string number =
      huge ? std::to_string(value.as<std::uint64_t>()) : std::to_string(value.as<std::int64_t>());
  PyErr_SetString(PyExc_OverflowError, ("Python integer " + number + " out of bounds for " +
                                        std::string(dtype_name(dtype)))
                                           .c_str());
  nb::raise_python_error();
}

bool is_integral(Dtype dtype) { return dtype_kind(dtype) == 'i' || dtype_kind(dtype) == 'u'; }

Array array_of_numbers(const Numbers& numbers, std::optional<Dtype> dtype) {
  DtypeSet dtypes;
  bool integers = dtype && is_integral(*dtype);
  for (const Scalar& value : numbers.values) {
    dtypes.add(value.default_dtype());
    if (integers) check_holds(value, *dtype);
    integers = integers && (value.kind() == 'i' || value.kind() == 'u' || value.kind() == 'b');
  }
  Dtype natural = numbers.values.empty() ? float64 : dtypes.promoted();
  if (integers && natural == float64)
    natural = uint64;  // what no int64 holds, beside what one does
  Array a = xp::empty(numbers.shape, natural, cpu());
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    const Scalar& value = numbers.values[i];
    void* data = a.data();
    switch (natural) {
      case Dtype::bool_: static_cast<bool*>(data)[i] = value.as<bool>(); break;
      case Dtype::int64: static_cast<std::int64_t*>(data)[i] = value.as<std::int64_t>(); break;
      case Dtype::uint64: static_cast<std::uint64_t*>(data)[i] = value.as<std::uint64_t>(); break;
      case Dtype::float64: static_cast<double*>(data)[i] = value.as<double>(); break;
      default: static_cast<std::complex<double>*>(data)[i] = value.as<std::complex<double>>();
    }
  }
  return dtype ? a.astype(*dtype, false) : a;
}

Array array_of_sequence(nb::handle object, std::optional<Dtype> dtype) {
  Numbers numbers;
  if (!find_shape(object, numbers.shape)) {
    gather_numbers(object, 0, numbers);
    return array_of_numbers(numbers, dtype);
  }
  std::vector<Array> parts;
  DtypeSet dtypes;
  for (nb::handle item : nb::borrow<nb::sequence>(object)) {
    parts.push_back(array_of(item, dtype));
    dtypes.add(parts.back().dtype());
  }
  for (Array& part : parts) part = part.astype(dtypes.promoted(), false);
  return xp::stack(parts);
}

}  // namespace

namespace {

nb::object numpy_dtype(nb::handle object) {
  return nb::module_::import_("numpy").attr("dtype")(object);
}

/// NumPy has letters for the types of C, some of which are the same here, and words.
Dtype dtype_of_text(const std::string& text) {
  bool letter = text.size() == 1 && std::strchr("qQpPlLiI", text[0]);
  bool word = text == "int" || text == "uint" || text == "float" || text == "complex" ||
              text == "half" || text == "single" || text == "double";
  if (!letter && !word) return parse_dtype(text);
  return parse_dtype(nb::cast<std::string>(numpy_dtype(nb::str(text.c_str())).attr("name")));
}

}  // namespace

Dtype dtype_of_object(nb::handle object) {
  DtypeObject known{};
  if (nb::try_cast(object, known)) return known.value;
  if (is_text(object)) return dtype_of_text(nb::cast<std::string>(object));
  if (object.is(reinterpret_cast<PyObject*>(&PyBool_Type))) return bool_;
  if (object.is(reinterpret_cast<PyObject*>(&PyLong_Type))) return int64;
  if (object.is(reinterpret_cast<PyObject*>(&PyFloat_Type))) return float64;
  if (object.is(reinterpret_cast<PyObject*>(&PyComplex_Type))) return complex128;
  // numpy.dtype("f4").name is "float32".
  nb::object name = nb::getattr(object, "name", nb::none());
  if (is_text(name)) {
    auto word = nb::cast<std::string>(name);
    return word == "mixed16" ? float16 : parse_dtype(word);  // rensa.configuration.mixed16
  }
  // numpy.float32.__name__ is it too; of its other types (longlong) NumPy knows which one they are.
  name = nb::getattr(object, "__name__", nb::none());
  if (!is_text(name)) throw DtypeError("no dtype: " + nb::cast<std::string>(nb::repr(object)));
  auto text = nb::cast<std::string>(name);
  bool theirs = nb::borrow(nb::getattr(object, "__module__", nb::none())).equal(nb::str("numpy"));
  if (theirs) text = nb::cast<std::string>(numpy_dtype(object).attr("name"));
  return parse_dtype(text);
}

std::optional<Dtype> optional_dtype(nb::handle object) {
  if (object.is_none()) return {};
  return dtype_of_object(object);
}

Placement placement_of(nb::handle object) {
  if (object.is_none()) return {};
  if (is_text(object)) return Device(nb::cast<std::string>(object));
  Device device;
  if (!nb::try_cast(object, device)) throw_type("a Device, its name or None is needed", object);
  return device;
}

std::uintptr_t stream_number(const cuda::Stream& stream) {
  constexpr std::uintptr_t kLegacyStream = 1;
  void* handle = stream.handle();
  return handle ? reinterpret_cast<std::uintptr_t>(handle) : kLegacyStream;
}

bool is_integer(nb::handle object) {
  if (PyLong_Check(object.ptr())) return true;
  if (!PyIndex_Check(object.ptr()) || nb::isinstance<Array>(object)) return false;
  if (!PyObject_CheckBuffer(object.ptr())) return true;
  nb::object number = nb::steal(PyNumber_Index(object.ptr()));  // arrays of NumPy's are indexes
  PyErr_Clear();
  return number.is_valid();
}

Shape shape_of_object(nb::handle object) {
  Shape shape;
  Array array;
  if (nb::try_cast(object, array) && array.ndim() > 0) {
    for (std::int64_t extent : array.astype(int64, {.casting = "safe"}).to_vector<std::int64_t>())
      shape.push_back(extent);
    return shape;
  }
  if (is_integer(object) || array.defined()) {
    shape.push_back(integer_of(object));
  } else if (PySequence_Check(object.ptr()) && !is_text(object)) {
    for (nb::handle extent : nb::borrow<nb::sequence>(object)) shape.push_back(integer_of(extent));
  } else {
    throw_type("a shape is an integer or a sequence of integers (Use () for one element)", object);
  }
  return shape;
}

Axes axes_of(nb::handle object) {
  if (object.is_none()) return {};
  if (PyIndex_Check(object.ptr())) return static_cast<int>(integer_of(object));
  return shape_of_object(object);
}

OptionalAxis optional_axis(nb::handle object) {
  if (object.is_none()) return none;
  return nb::cast<int>(object);
}

std::optional<Scalar> scalar_of(nb::handle object) {
  PyObject* o = object.ptr();
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_Check(o)) return scalar_of_integer(object);
  // Not subclasses: numpy.float64 is one, which has a dtype.
  if (PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
  if (PyComplex_CheckExact(o)) {
    return std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o));
  }
  return {};
}

Array array_of(nb::handle object, std::optional<Dtype> dtype, Placement device,
               std::optional<bool> copy) {
  Array a;
  bool shared = true;
  if (nb::try_cast(object, a)) {
  } else if (auto number = scalar_of(object)) {
    a = xp::full({}, *number, dtype.value_or(number->default_dtype()), cpu());
    shared = false;
  } else if (is_sequence(object)) {
    a = array_of_sequence(object, dtype);
    shared = false;
  } else {
    if (PyObject_CheckBuffer(object.ptr())) a = array_of_buffer(object, &shared);
    if (!a.defined() && nb::hasattr(object, "__dlpack__")) a = array_of_capsule(object);
    if (!a.defined()) {
      throw_type("array: numbers, sequences of them, or what exports a buffer or has __dlpack__",
                 object);
    }
  }
  bool has_home = nb::isinstance<Array>(object) || a.device().is_cuda();
  Device home = device.given() || !has_home ? device.device() : a.device();
  Array converted = a;
  if (dtype) converted = converted.astype(*dtype, false);
  converted = converted.to(home);
  bool same = shared && converted.storage() == a.storage();
  if (copy == std::optional<bool>(false) && !same) {
    throw ValueError(
        "asarray: copy=False, but a copy is needed: the elements are of another dtype, on another "
        "device, read-only or no array yet");
  }
  return copy.value_or(false) && same ? converted.copy() : converted;
}

std::vector<Array> arrays_of(nb::handle object) {
  std::vector<Array> arrays;
  if (nb::isinstance<Array>(object)) {
    for (Array row : nb::cast<const Array&>(object)) arrays.push_back(row);
  } else {
    for (nb::handle item : nb::borrow<nb::sequence>(object)) arrays.push_back(array_of(item));
  }
  return arrays;
}

nb::tuple tuple_of(const std::vector<Array>& arrays) {
  nb::list list;
  for (const Array& a : arrays) list.append(a);
  return nb::tuple(list);
}

IntegerList integers_of(nb::handle object) {
  if (nb::isinstance<Array>(object)) {
    Shape shape = shape_of_object(object);
    if (nb::cast<const Array&>(object).ndim() == 0) return shape[0];
    return IntegerList(std::vector<std::int64_t>(shape.begin(), shape.end()));
  }
  if (is_integer(object)) return integer_of(object);
  std::vector<std::int64_t> values;
  for (nb::handle value : nb::borrow<nb::sequence>(object)) values.push_back(integer_of(value));
  return IntegerList(std::span<const std::int64_t>(values));
}

Operand operand_of(nb::handle object) {
  if (nb::isinstance<Array>(object)) return *nb::inst_ptr<Array>(object);
  if (auto number = scalar_of(object)) return *number;
  return array_of(object);
}

Array array_of_operand(const Operand& operand) {
  if (auto* a = std::get_if<Array>(&operand)) return *a;
  const Scalar& number = std::get<Scalar>(operand);
  return xp::full({}, number, number.default_dtype());
}

bool is_operand(nb::handle object) {
  return nb::isinstance<Array>(object) || scalar_of(object) || PyObject_CheckBuffer(object.ptr()) ||
         nb::hasattr(object, "__dlpack__");
}

namespace {

Slice slice_of(nb::handle object) {
  auto* s = reinterpret_cast<PySliceObject*>(object.ptr());
  std::int64_t step = s->step == Py_None ? 1 : integer_of(s->step);
  bool from = s->start != Py_None, to = s->stop != Py_None;
  if (from && to) return {integer_of(s->start), integer_of(s->stop), step};
  if (from) return {integer_of(s->start), none, step};
  if (to) return {none, integer_of(s->stop), step};
  return {none, none, step};
}

Index entry_of(nb::handle object) {
  PyObject* o = object.ptr();
  if (o == Py_None) return newaxis;
  if (o == Py_Ellipsis) return ellipsis;
  if (PySlice_Check(o)) return slice_of(object);
  Array a;
  if (nb::try_cast(object, a)) return a;
  if (!PyBool_Check(o) && PyIndex_Check(o) && !PyObject_CheckBuffer(o)) return integer_of(object);
  a = array_of(object);
  if (a.size() == 0 && is_sequence(object)) a = a.astype(int64);  // [] chooses nothing
  return a;
}

}  // namespace

std::vector<Index> index_of(nb::handle key) {
  std::vector<Index> index;
  auto add = [&](const Index& entry) {
    bool no_elements = entry.is_array() && entry.array().dtype() == bool_ &&
                       entry.array().size() == 0 && entry.array().ndim() > 0;
    if (!no_elements) return index.push_back(entry);
    // NumPy's: a mask without elements chooses nothing, whatever the extents of the array.
    Array nothing = xp::empty({0}, int64, entry.array().device());
    for (int i = 0; i < entry.array().ndim(); ++i) index.push_back(nothing);
  };
  if (PyTuple_Check(key.ptr())) {
    for (nb::handle entry : nb::borrow<nb::tuple>(key)) add(entry_of(entry));
  } else {
    add(entry_of(key));
  }
  return index;
}

namespace {

/// What there are weak references to, whatever the object is.
nb::object box_of(nb::handle object) {
  nb::object box = nb::cast(Box());
  box.attr("object") = object;
  return box;
}

nb::object keep(nb::handle owner, nb::handle object) {
  nb::object box = box_of(object);
  nb::dict names(owner.attr("__dict__"));
  names.attr("setdefault")("_held", nb::list()).attr("append")(box);
  return nb::module_::import_("weakref").attr("ref")(box);
}

}  // namespace

namespace {

nb::object known_objects() { return nb::module_::import_("rensa._engine").attr("_objects"); }

nb::int_ key_of(const void* place) { return nb::int_(reinterpret_cast<std::uintptr_t>(place)); }

}  // namespace

nb::object object_at(const void* place) {
  nb::object found = known_objects().attr("get")(key_of(place));
  return found.is_none() ? nb::object() : found;
}

void remember_object(const void* place, nb::handle object) {
  known_objects()[key_of(place)] = object;
}

HeldByOwner::HeldByOwner(nb::handle owner, nb::handle object) : box_(keep(owner, object)) {}

nb::object HeldByOwner::get() const {
  nb::object box = box_.object();
  if (box.is_none())
    throw Error("a function of Python's is gone with the object that it was given to");
  return box.attr("object");
}

OptionalArray::OptionalArray(nb::handle object) : object_(object) {
  if (object.is_none() || object.ptr() == Py_True) return;
  array_ = array_of(object);
}

}  // namespace rensa::python
