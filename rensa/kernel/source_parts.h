// Pieces of source that all generated kernels have.
#pragma once

#include <string>
#include <vector>

#include "rensa/kernel/signature.h"

namespace rensa::detail {

/// What stands in front of every kernel: the types by NumPy's names, `rensa_index` (32 bits where
/// `small`), raw arrays that are not contiguous, and portable/pack.h.
std::string kernel_prelude(bool host, bool small);

/// The letters of a signature as the types that they stand for.
std::string placeholder_types(const KernelSignature& signature, const std::vector<Dtype>& dtypes);

/// A text of the user's, by whose name ("operation of f") the compiler counts its lines; what comes
/// after it is the kernel's again.
std::string user_text(const char* what, const std::string& kernel, const std::string& text);

/// Whether `word` stands in `text`, by itself.
bool has_word(const std::string& text, const std::string& word);

}  // namespace rensa::detail
