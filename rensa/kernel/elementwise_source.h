// The source of an ElementwiseKernel for given dtypes and layouts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rensa/core/dtype.h"

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

/// How one argument reaches the kernel.
struct ArgumentLayout {
  enum class Kind : unsigned char { number, element, raw };
  Kind kind = Kind::element;
  Dtype dtype = Dtype::float32;
  bool contiguous = true;  // raw: its elements lie in C order without gaps
  bool loaded = true;      // not so: an output whose earlier values do not matter
  int ndim = 1;            // raw and not contiguous
};

/// All that a source depends on besides the user's text.
struct ElementwiseLayout {
  std::vector<ArgumentLayout> arguments;  // inputs, then outputs
  int num_inputs = 0;
  int ndim = 1;             // of the loop; with `straight` 1
  bool straight = true;     // every element stands at i
  bool small = true;        // indices are 32-bit
  bool host = false;        // for the machine's compiler
  int width = 1;            // elements that a thread of a GPU takes at once; needs `straight`
  std::string key() const;  // distinct for distinct layouts
};

/// Whether `operation` gives `name` a value for every element before it looks at it: where it first
/// stands begins a statement "name = ...", outside of braces and not behind anything that may jump.
/// What an output held before is then not read.
bool surely_assigned(const std::string& operation, const std::string& name);

/// The user's text of a kernel.
struct ElementwiseText {
  std::vector<KernelParameter> inputs, outputs;
  std::string operation, name, preamble, loop_prep, after_loop;
};

/// The kernel's one argument is a struct: per array its address and, unless `straight`, its strides
/// of `ndim` axes (a raw one that is not contiguous: extents and strides of its own); then the
/// extents, the size, and the numbers at multiples of 16 bytes. ElementwiseKernel::call writes it.
std::string elementwise_source(const ElementwiseText& text, const ElementwiseLayout& layout);

}  // namespace rensa::detail
