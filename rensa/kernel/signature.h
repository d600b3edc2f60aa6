// What the user's kernels take: CuPy's parameter strings, and a call's arguments checked against
// them.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/core/dtype.h"
#include "rensa/kernel/kernel_input.h"

namespace rensa::detail {

/// "raw T x" taken apart.
struct KernelParameter {
  std::string type;            // a NumPy name, or a letter that stands for a dtype
  std::optional<Dtype> dtype;  // none for a letter
  std::string name;
  bool raw = false;
};

/// The parameters of "T x, raw float32 y". Throws ValueError naming `kernel` and what is wrong.
std::vector<KernelParameter> parse_parameters(const std::string& kernel, const std::string& text);

/// The dtype that a type names, by NumPy or in C; none for a letter. Throws ValueError.
std::optional<Dtype> dtype_of_type(const std::string& kernel, const std::string& type);

/// A call's arguments: inputs, then outputs.
struct KernelArguments {
  std::vector<Array> arrays;    // undefined: a number, or an output that is to be made
  std::vector<Scalar> numbers;  // of inputs that are no arrays
  std::vector<Dtype> dtypes;
  Device device;  // of the arrays; the current one where there are none
};

struct KernelSignature {
  std::string name;
  std::vector<KernelParameter> inputs, outputs;

  std::size_t size() const { return inputs.size() + outputs.size(); }
  bool is_input(std::size_t k) const { return k < inputs.size(); }
  const KernelParameter& parameter(std::size_t k) const {
    return is_input(k) ? inputs[k] : outputs[k - inputs.size()];
  }

  /// Throws ValueError where there is no output, two parameters have one name, or one has a name
  /// of `reserved`, of a type, or of the kernel's own ("rensa_...").
  void check(std::initializer_list<std::string_view> reserved) const;
  /// Checks the inputs, and after them perhaps outputs to write: their number, what they are, their
  /// device; finds the dtypes that letters stand for. Throws ValueError, DtypeError, DeviceError.
  KernelArguments bind(const std::vector<KernelInput>& given) const;
  /// Throws ValueError where the output cannot be written, DtypeError where it is of another dtype.
  void check_output(std::size_t k, const Array& out, Dtype dtype) const;

 private:
  Device find_device(const KernelArguments& a) const;
  void find_dtypes(KernelArguments& a) const;
  [[noreturn]] void fail_dtype(std::size_t k, Dtype wanted, Dtype got) const;
};

}  // namespace rensa::detail
