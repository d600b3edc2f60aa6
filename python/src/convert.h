// What Python gives, as the engine takes it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <variant>
#include <vector>

#include "rensa/array.h"

namespace rensa::python {

namespace nb = nanobind;

/// A dtype as an object of Python's: rensa.xp.float32.
struct DtypeObject {
  Dtype value;
};

/// A dtype by what NumPy takes for one: an object of ours, a name ("float32", "<f4"), bool, int,
/// float, complex, or a dtype or scalar type of NumPy's. Throws DtypeError.
Dtype dtype_of_object(nb::handle object);
/// None is nothing.
std::optional<Dtype> optional_dtype(nb::handle object);

/// "cpu", "cuda:1", or a Device; None: the current one.
Placement placement_of(nb::handle object);

/// A stream as DLPack and the CUDA array interface call it: its address, 1 the legacy default one.
std::uintptr_t stream_number(const cuda::Stream& stream);

/// Whether it is one integer: of Python's or of NumPy's, and no array of ours.
bool is_integer(nb::handle object);

/// An integer or a sequence of them. Throws TypeError (nb::type_error).
Shape shape_of_object(nb::handle object);
/// None: all axes.
Axes axes_of(nb::handle object);

/// One axis, or none.
OptionalAxis optional_axis(nb::handle object);

/// Python's number: bool, int, float or complex, which takes an array's dtype. Nothing for
/// whatever else.
std::optional<Scalar> scalar_of(nb::handle object);

/// An array of what is not one yet: a number, a sequence of sequences of numbers and arrays, a
/// buffer (NumPy's arrays and scalars) or what has __dlpack__. With `copy` = false memory on the
/// CPU is shared where it can be. Throws nb::type_error for what is none of these.
Array array_of(nb::handle object, std::optional<Dtype> dtype = {}, Placement device = {},
               std::optional<bool> copy = {});

/// What a ufunc works on.
using Operand = std::variant<Array, Scalar>;
Operand operand_of(nb::handle object);
/// A number becomes an array without axes, of its own dtype.
Array array_of_operand(const Operand& operand);
/// Whether it is a number or an array, or can be made one: else an operator gives NotImplemented.
bool is_operand(nb::handle object);

/// Those of a sequence, or an array's rows.
std::vector<Array> arrays_of(nb::handle object);
nb::tuple tuple_of(const std::vector<Array>& arrays);
/// An integer, or several.
IntegerList integers_of(nb::handle object);

/// What stands between brackets.
std::vector<Index> index_of(nb::handle key);

/// An array that a call may be given, for the length of the call.
class OptionalArray {
 public:
  /// None, and of `where` True, are nothing.
  explicit OptionalArray(nb::handle object);
  ArrayOption option() const { return array_ ? ArrayOption(*array_) : ArrayOption(); }
  const std::optional<Array>& array() const { return array_; }
  nb::handle object() const { return object_; }  // what was given

 private:
  std::optional<Array> array_;
  nb::handle object_;
};

/// An object of Python's that the engine holds on to: it may let go of it in any thread.
struct Held {
  explicit Held(nb::object o) : object(std::move(o)) {}
  ~Held() {
    if (!Py_IsInitialized()) {
      object.release();  // the interpreter is gone, and what it held with it
      return;
    }
    nb::gil_scoped_acquire lock;
    object.reset();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  nb::object object;
};

/// Python's object with attributes and weak references.
struct Box {};

/// An object that an owner of Python's holds for the engine, where the collector of garbage sees
/// it: a function that a trainer calls and that refers to the trainer goes with it. The engine's
/// part goes when the owner does.
class HeldByOwner {
 public:
  /// `owner` has a __dict__.
  HeldByOwner(nb::handle owner, nb::handle object);
  /// The object. Throws Error where the owner is gone. The caller has the interpreter's lock.
  nb::object get() const;

 private:
  Held box_;  // a weak reference to what the owner holds
};

/// The object of Python's that stands for what lies at `place`, while there is one; else not valid.
nb::object object_at(const void* place);
/// `object` stands for what lies at `place`, and keeps it there, as long as it lives.
void remember_object(const void* place, nb::handle object);

/// Calls f without the interpreter's lock: other threads of Python run while work is queued, done
/// or waited for.
template <class F> auto unlocked(F&& f) {
  nb::gil_scoped_release release;
  return f();
}

/// The body of a handle, whose last one goes without the interpreter's lock: threads that end with
/// it may be waiting for that.
template <class Body> std::shared_ptr<Body> let_go_unlocked(std::shared_ptr<Body> body) {
  Body* raw = body.get();
  auto hold = std::make_shared<std::shared_ptr<Body>>(std::move(body));
  return {raw, [hold](Body*) {
            if (PyGILState_Check()) unlocked([&] { hold->reset(); });
            else hold->reset();
          }};
}

}  // namespace rensa::python
