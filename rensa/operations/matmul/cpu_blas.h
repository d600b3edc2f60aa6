// Products by the CBLAS library that the build found, if any, or the project's own.
#pragma once

#include <cstdint>
#include <string>

#include "rensa/core/dtype.h"
#include "rensa/operations/matmul/cpu_gemm.h"

namespace rensa::host {

/// c = a @ b as gemm(), by the library; false, with nothing done, where it does not take the dtype
/// or the strides, or where the build has none.
bool blas_gemm(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
               const Matrix& b, const Matrix& c);

/// What library that is: "OpenBLAS 0.3.21 ...", or why there is none.
std::string blas_description();

/// c = a @ b as gemm(), by that or by the library, whichever is the faster one.
void multiply(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
              const Matrix& b, const Matrix& c);

}  // namespace rensa::host
