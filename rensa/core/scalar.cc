// What dtype a number takes, alone and beside an array (NEP 50).
#include "rensa/core/scalar.h"

namespace rensa {

Dtype Scalar::default_dtype() const {
  switch (kind_) {
    case 'b': return bool_;
    case 'i': return int64;
    case 'u': return uint64;
    case 'f': return float64;
    default: return complex128;
  }
}

Dtype Scalar::result_type(Dtype array) const {
  auto rank = [](char kind) { return kind == 'b' ? 0 : kind == 'f' ? 2 : kind == 'c' ? 3 : 1; };
  int array_rank = rank(dtype_kind(array));
  if (rank(kind_) <= array_rank) return array;
  if (kind_ == 'c' && array_rank == 2) return array == float64 ? complex128 : complex64;
  return default_dtype();
}

}  // namespace rensa
