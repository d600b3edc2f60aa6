// The kernels around the factorizations of cuSOLVER and cuBLAS.
#pragma once

#include <cstdint>

#include "rensa/device/error_word.h"
#include "rensa/operations/linalg/linalg.h"

namespace rensa::cuda {

/// pointers[i] = base + i * stride (bytes): a batch as the batched routines take it.
void launch_batch_pointers(const char* operation, const LaunchContext& context, void* base,
                           std::int64_t stride, std::int64_t count, void** pointers);

/// Which elements of a matrix count.
enum class MatrixPart { all, upper, lower };

/// `count` matrices of `rows` x `columns` one behind the other, column by column, of a float or
/// complex dtype.
struct MatrixBatch {
  void* data = nullptr;
  Dtype dtype = Dtype::float32;
  std::int64_t rows = 0, columns = 0, count = 0;
};

/// contents[i] = the worst MatrixContent of matrix i; all are `finite` before.
void launch_look(const char* operation, const LaunchContext& context, const MatrixBatch& matrices,
                 MatrixPart part, int* contents);

/// Fills the matrices whose contents are not finite with `value`.
void launch_fill_marked(const char* operation, const LaunchContext& context, int* contents,
                        const MatrixBatch& matrices, double value);

/// Reports the first of `count` matrices whose info is not 0 as `error`.
void launch_check_info(const char* operation, const LaunchContext& context, ReportedError error,
                       const int* info, std::int64_t count);

/// Likewise of the first matrix whose info is not 0 or whose content is `bad` or worse; there may
/// be no `info`.
void launch_check_contents(const char* operation, const LaunchContext& context, ReportedError error,
                           const int* info, const int* contents, operations::MatrixContent bad,
                           std::int64_t count);

}  // namespace rensa::cuda
