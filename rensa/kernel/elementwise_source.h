// The source of an elementwise kernel for given dtypes and layouts.
#pragma once

#include <string>
#include <vector>

#include "rensa/kernel/kernel_operand.h"
#include "rensa/kernel/signature.h"

namespace rensa::detail {

/// How one argument lies.
struct ArgumentLayout {
  ArgumentKind kind = ArgumentKind::element;
  Dtype dtype = Dtype::float32;
  bool contiguous = true;  // raw: its elements lie in C order without gaps
  bool loaded = true;      // false: an output whose earlier values are not read
  bool flat = false;       // element i stands at index i, also where others go by strides; GPUs
  bool constant = false;   // one element along the last axis of the loop
  int ndim = 1;            // raw and not contiguous
};

/// All that a source depends on besides the kernel's text.
struct ElementwiseLayout {
  std::vector<ArgumentLayout> arguments;  // inputs, then outputs
  int ndim = 1;                           // of the loop; with `straight` 1
  bool straight = true;                   // every element stands at i
  bool small = true;                      // indices are 32-bit
  bool host = false;                      // for the machine's compiler
  /// Elements that a thread of a GPU takes at once. They are of one row: where it is not
  /// `straight`, the last axis is a multiple of it, along which an array is dense or constant.
  int width = 1;
  std::string key() const;  // distinct for distinct layouts
  /// Whether the kernel finds the argument's elements by strides.
  bool has_strides(std::size_t k) const {
    return arguments[k].kind == ArgumentKind::element && !straight && !arguments[k].flat;
  }
};

/// Whether `operation` gives `name` a value for every element before it looks at it: where it first
/// stands begins a statement "name = ...", outside of braces and not behind anything that may jump.
/// What an output held before is then not read.
bool surely_assigned(const std::string& operation, const std::string& name);

/// Elements of a block of ElementwiseText::blocks: whole vectors of every instruction set.
inline constexpr int kHostBlock = 64;

struct ElementwiseText {
  KernelSignature signature;
  std::string operation, preamble, loop_prep, after_loop;
  std::vector<std::string> options;  // NVRTC's
  /// Where there is one, what a CPU does instead of `operation`: statements over whole blocks, in
  /// which an element's name is an array of kHostBlock values. Math functions then always run as
  /// vector code, wherever in an array a value stands.
  std::string blocks;
};

/// The kernel's one argument is a struct: per array its address and, where it has them, its strides
/// of `ndim` axes (a raw one that is not contiguous: extents and strides of its own); then the
/// extents, the size, and the numbers at multiples of 16 bytes. launch_elementwise writes it.
std::string elementwise_source(const ElementwiseText& text, const ElementwiseLayout& layout);

}  // namespace rensa::detail
