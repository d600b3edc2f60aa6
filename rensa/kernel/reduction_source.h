// The source of a reduction kernel for given dtypes and layouts.
#pragma once

#include <string>
#include <vector>

#include "rensa/kernel/kernel_operand.h"
#include "rensa/kernel/signature.h"

namespace rensa::detail {

/// The text of a reduction: what ReductionKernel is given, or fuse makes.
struct ReductionText {
  KernelSignature signature;  // inputs of the map, then those of kept shape; outputs
  std::string preamble;
  std::string map_statements, map;   // an expression of the inputs, and statements before it
  std::string reduce;                // an expression of a and b
  std::string identity;              // empty: a value-initialized one
  std::string post;                  // statements that assign the outputs from a
  std::string reduce_type;           // of a and b
  std::vector<std::string> options;  // NVRTC's
  /// Where there are some, what a CPU does instead of map and post: statements over whole blocks of
  /// kHostBlock values, in which an element's name is an array. The map's fill rensa_mapped.
  std::string map_blocks, post_blocks;
  int width = 0;         // elements of a GPU's vectors; 0: 16 bytes of the widest array
  bool ordered = false;  // the text asks for positions: axes are not put into another order
};

/// How an element argument lies along the axis that threads or lanes step over.
enum class Along : unsigned char { dense, constant, strided };

struct ReductionArgument {
  ArgumentKind kind = ArgumentKind::element;
  Dtype dtype = Dtype::float32;
  bool written = false;
  Along along = Along::dense;
  bool contiguous = true;  // raw
  int ndim = 1;            // raw and not contiguous
};

/// All that a source depends on besides the kernel's text.
struct ReductionLayout {
  std::vector<ReductionArgument> arguments;  // in the order of the signature
  int kept_ndim = 1, reduced_ndim = 1;       // axes that are walked; both at least 1
  bool columns = false;                      // outputs lie together: the last kept axis is apart
  bool aligned = true;                       // a GPU's vectors lie at multiples of their size
  bool small = true;                         // indices are 32-bit
  bool host = false;
  int width = 1;  // elements of a vector
  std::string key() const;
};

/// The kernel's one argument is a struct: cuda::ReduceBlocks or host::ReduceParts; the extents of
/// kept and of reduced axes, FastDiv where indices are small, else PlainDiv; per array its address
/// and: an element's strides of the kept and the reduced axes, a kept one's of the kept axes
/// (and both, with `columns`, that along the columns), a raw one's extents and strides unless it is
/// contiguous; numbers at multiples of 16 bytes. launch_reduction writes it.
std::string reduction_source(const ReductionText& text, const ReductionLayout& layout);

}  // namespace rensa::detail
