// Factorizations on a GPU: cuSOLVER matrix by matrix, and the batched routines of cuSOLVER and
// cuBLAS for many small ones. The info of each matrix stays on the device; a kernel behind the work
// looks at it and reports to the error word.
#include <fmt/format.h>

#include <limits>
#include <vector>

#include "rensa/backend/cuda/check.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"
#include "rensa/operations/linalg/cuda_cusolver.h"
#include "rensa/operations/linalg/cuda_kernels.h"
#include "rensa/operations/linalg/linalg.h"

namespace rensa::operations {

namespace {

using cuda::check_cublas;
using cuda::check_cusolver;
using cuda::cublas;
using cuda::CublasHandle;
using cuda::cusolver;
using cuda::CusolverHandle;

constexpr std::int64_t kBatchedRows = 256;  // up to here many matrices are better side by side

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

cudaDataType data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32: return CUDA_R_32F;
    case Dtype::float64: return CUDA_R_64F;
    case Dtype::complex64: return CUDA_C_32F;
    default: return CUDA_C_64F;
  }
}

cudaDataType real_type(Dtype dtype) {
  return dtype == float32 || dtype == complex64 ? CUDA_R_32F : CUDA_R_64F;
}

// An operand: a batch of matrices one behind the other.
struct Batch {
  char* data = nullptr;
  std::int64_t count = 0, bytes = 0;  // matrices, and of one

  explicit Batch(const Operand& operand) {
    if (!operand.present()) return;
    data = operand.view.data;
    count = operand.view.shape[0];
    bytes = operand.view.nbytes() / count;
  }
  void* operator[](std::int64_t i) const { return data ? data + i * bytes : nullptr; }
};

// What a routine wants of scratch: on the device, and on the host, where it lives for the call.
struct Scratch {
  std::size_t device = 0, host = 0;
};

// The workspace of an operation: one info per matrix (and a spare one), what each matrix holds, two
// tables of pointers, and the routine's own part.
struct Layout {
  std::size_t info, table;

  explicit Layout(std::int64_t count)
      : info(aligned(static_cast<std::size_t>(2 * count + 1) * sizeof(int))),
        table(aligned(static_cast<std::size_t>(count) * sizeof(void*))) {}
  std::size_t bytes(std::size_t routine) const { return info + 2 * table + aligned(routine); }
};

struct Workspace {
  int *info, *contents;
  void **first, **second;
  void* routine;
  std::size_t routine_bytes;

  Workspace(const cuda::LaunchContext& context, std::int64_t count) {
    Layout layout(count);
    char* base = static_cast<char*>(context.workspace);
    info = reinterpret_cast<int*>(base);
    contents = info + count + 1;
    first = reinterpret_cast<void**>(base + layout.info);
    second = reinterpret_cast<void**>(base + layout.info + layout.table);
    routine = base + layout.info + 2 * layout.table;
    routine_bytes = context.workspace_bytes - layout.info - 2 * layout.table;
    RENSA_CUDA_CALL(
        cudaMemsetAsync(info, 0, layout.info, static_cast<cudaStream_t>(context.handle)));
  }
};

cudaStream_t stream_of(const cuda::LaunchContext& context) {
  return static_cast<cudaStream_t>(context.handle);
}

cudaStream_t current_stream(Device device) {
  return static_cast<cudaStream_t>(cuda::current_stream_state(device)->handle());
}

// Around the iterations for eigenvalues and singular values, which take none but finite numbers: a
// matrix with others is factored as zeros, and what is found becomes NaN.
class Screen {
 public:
  Screen(const Operation& op, const cuda::LaunchContext& context, const Workspace& work,
         const Operand& a, cuda::MatrixPart part = cuda::MatrixPart::all)
      : name_(op.name()), context_(context), work_(work), count_(a.view.shape[0]) {
    cuda::launch_look(name_, context_, batch_of(a), part, work_.contents);
    cuda::launch_fill_marked(name_, context_, work_.contents, batch_of(a), 0);
  }

  void spoil(const Operand& found) const {
    if (!found.present()) return;
    cuda::launch_fill_marked(name_, context_, work_.contents, batch_of(found),
                             std::numeric_limits<double>::quiet_NaN());
  }

  // Reports the first matrix that is `bad` or that the routine could not factor.
  void check(MatrixContent bad, bool with_info = true) const {
    cuda::launch_check_contents(name_, context_, ReportedError::not_converged,
                                with_info ? work_.info : nullptr, work_.contents, bad, count_);
  }

 private:
  static cuda::MatrixBatch batch_of(const Operand& operand) {
    const ArrayView& view = operand.view;
    std::int64_t columns = view.ndim() > 2 ? view.shape[1] : 1;
    return {view.data, view.dtype, view.shape[view.ndim() - 1], columns, view.shape[0]};
  }

  const char* name_;
  const cuda::LaunchContext& context_;
  const Workspace& work_;
  std::int64_t count_;
};

cublasFillMode_t fill_mode(bool upper) {
  return upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}

int small_size(const Operation& operation, std::int64_t extent) {
  if (extent <= std::numeric_limits<int>::max()) return static_cast<int>(extent);
  throw NotImplementedError(
      fmt::format("{}: an extent of {} is more than cuSOLVER's 32-bit "
                  "routines take",
                  operation.name(), extent));
}

// Calls `call` with the letter of the type in the tables of functions, and its element.
#define RENSA_BY_TYPE(dtype, call)                    \
  switch (dtype) {                                    \
    case Dtype::float32: call(s, float); break;       \
    case Dtype::float64: call(d, double); break;      \
    case Dtype::complex64: call(c, cuComplex); break; \
    default: call(z, cuDoubleComplex); break;         \
  }

// --- Cholesky ---

bool is_batched(const CholeskyFactor& op) {
  return op.a.view.shape[0] > 1 && op.a.view.shape[1] <= kBatchedRows;
}

Scratch scratch_of(const CholeskyFactor& op, const CusolverHandle& use) {
  Scratch scratch;
  if (is_batched(op)) return scratch;
  std::int64_t n = op.a.view.shape[1];
  cudaDataType type = data_type(op.a.view.dtype);
  check_cusolver(op.name(), "cusolverDnXpotrf_bufferSize",
                 cusolver().potrf_size(use.handle(), use.params(), fill_mode(op.upper), n, type,
                                       op.a.view.data, n, type, &scratch.device, &scratch.host));
  return scratch;
}

// --- LU ---

bool is_batched(const LuSolve& op) { return op.pivots.view.dtype == int32; }

Scratch scratch_of(const LuSolve& op, const CusolverHandle& use) {
  Scratch scratch;
  if (is_batched(op)) return scratch;
  std::int64_t n = op.a.view.shape[1];
  cudaDataType type = data_type(op.a.view.dtype);
  check_cusolver(op.name(), "cusolverDnXgetrf_bufferSize",
                 cusolver().getrf_size(use.handle(), use.params(), n, n, type, op.a.view.data, n,
                                       type, &scratch.device, &scratch.host));
  return scratch;
}

void run_lu_batched(const LuSolve& op, const cuda::LaunchContext& context, const Workspace& work) {
  Batch a(op.a), b(op.b);
  int n = small_size(op, op.a.view.shape[1]), count = small_size(op, a.count);
  int columns = op.b.present() ? small_size(op, op.b.view.shape[1]) : 0;
  cuda::launch_batch_pointers(op.name(), context, a.data, a.bytes, a.count, work.first);
  if (columns > 0) {
    cuda::launch_batch_pointers(op.name(), context, b.data, b.bytes, b.count, work.second);
  }
  CublasHandle use(op.name(), context.device, stream_of(context));
  int* pivots = op.pivots.view.as<int>();
  cublasOperation_t way = op.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  int bad_argument = 0;
#define RENSA_FACTOR(t, T)                                                                    \
  check_cublas(                                                                               \
      op.name(), "cublas<t>getrfBatched",                                                     \
      cublas().getrf_batched_##t(use.handle(), n, reinterpret_cast<T* const*>(work.first), n, \
                                 pivots, work.info, count))
#define RENSA_SOLVE(t, T)                                                                        \
  check_cublas(op.name(), "cublas<t>getrsBatched",                                               \
               cublas().getrs_batched_##t(                                                       \
                   use.handle(), way, n, columns, reinterpret_cast<const T* const*>(work.first), \
                   n, pivots, reinterpret_cast<T* const*>(work.second), n, &bad_argument, count))
  RENSA_BY_TYPE(op.a.view.dtype, RENSA_FACTOR)
  if (columns > 0) {
    RENSA_BY_TYPE(op.a.view.dtype, RENSA_SOLVE)
  }
#undef RENSA_FACTOR
#undef RENSA_SOLVE
}

void run_lu_each(const LuSolve& op, const cuda::LaunchContext& context, const Workspace& work) {
  Batch a(op.a), b(op.b);
  std::int64_t n = op.a.view.shape[1], columns = op.b.present() ? op.b.view.shape[1] : 0;
  cudaDataType type = data_type(op.a.view.dtype);
  CusolverHandle use(op.name(), context.device, stream_of(context));
  std::vector<char> host(scratch_of(op, use).host);
  for (std::int64_t i = 0; i < a.count; ++i) {
    std::int64_t* pivots = op.pivots.view.as<std::int64_t>() + i * n;
    check_cusolver(op.name(), "cusolverDnXgetrf",
                   cusolver().getrf(use.handle(), use.params(), n, n, type, a[i], n, pivots, type,
                                    work.routine, work.routine_bytes, host.data(), host.size(),
                                    work.info + i));
    if (columns == 0) continue;
    check_cusolver(
        op.name(), "cusolverDnXgetrs",
        cusolver().getrs(use.handle(), use.params(), op.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, n,
                         columns, type, a[i], n, pivots, type, b[i], n, work.info + a.count));
  }
}

// --- QR ---

Scratch scratch_of(const QrFactor& op, const CusolverHandle& use) {
  Scratch scratch;
  std::int64_t m = op.a.view.shape[2], n = op.a.view.shape[1];
  cudaDataType type = data_type(op.a.view.dtype);
  check_cusolver(
      op.name(), "cusolverDnXgeqrf_bufferSize",
      cusolver().geqrf_size(use.handle(), use.params(), m, n, type, op.a.view.data, m, type,
                            op.tau.view.data, type, &scratch.device, &scratch.host));
  return scratch;
}

// Elements of scratch.
int orgqr_length(const QrForm& op, const CusolverHandle& use) {
  int m = small_size(op, op.q.view.shape[2]), columns = small_size(op, op.q.view.shape[1]);
  int k = small_size(op, op.tau.view.shape[1]), length = 0;
#define RENSA_SIZE(t, T)                                                                      \
  check_cusolver(op.name(), "cusolverDn<t>orgqr_bufferSize",                                  \
                 cusolver().orgqr_size_##t(use.handle(), m, columns, k, op.q.view.as<T>(), m, \
                                           op.tau.view.as<T>(), &length))
  RENSA_BY_TYPE(op.q.view.dtype, RENSA_SIZE)
#undef RENSA_SIZE
  return length;
}

Scratch scratch_of(const QrForm& op, const CusolverHandle& use) {
  return {static_cast<std::size_t>(orgqr_length(op, use)) *
              static_cast<std::size_t>(itemsize(op.q.view.dtype)),
          0};
}

// --- eigenvalues and singular values ---

cusolverEigMode_t eig_mode(bool vectors) {
  return vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}

bool is_batched(const Eigh& op) {
  return op.a.view.shape[0] > 1 && op.a.view.shape[1] <= kBatchedRows && cusolver().syev_batched &&
         cusolver().syev_batched_size;
}

Scratch scratch_of(const Eigh& op, const CusolverHandle& use) {
  Scratch scratch;
  std::int64_t n = op.a.view.shape[1];
  cudaDataType type = data_type(op.a.view.dtype), real = real_type(op.a.view.dtype);
  if (is_batched(op)) {
    check_cusolver(op.name(), "cusolverDnXsyevBatched_bufferSize",
                   cusolver().syev_batched_size(use.handle(), use.params(), eig_mode(op.vectors),
                                                fill_mode(op.upper), n, type, op.a.view.data, n,
                                                real, op.w.view.data, type, &scratch.device,
                                                &scratch.host, op.a.view.shape[0]));
    return scratch;
  }
  check_cusolver(op.name(), "cusolverDnXsyevd_bufferSize",
                 cusolver().syevd_size(use.handle(), use.params(), eig_mode(op.vectors),
                                       fill_mode(op.upper), n, type, op.a.view.data, n, real,
                                       op.w.view.data, type, &scratch.device, &scratch.host));
  return scratch;
}

struct SvdCall {
  signed char job;
  std::int64_t m, n;
  cudaDataType type, real;

  explicit SvdCall(const Svd& op)
      : m(op.a.view.shape[2]),
        n(op.a.view.shape[1]),
        type(data_type(op.a.view.dtype)),
        real(real_type(op.a.view.dtype)) {
    job = !op.u.present() ? 'N' : op.u.view.shape[1] == n ? 'S' : 'A';
  }
};

// What the batched routine takes; s is real.
#define RENSA_REAL_s float
#define RENSA_REAL_d double
#define RENSA_REAL_c float
#define RENSA_REAL_z double

// Whether Jacobi's matrices are factored side by side.
bool is_batched(const Svd& op) {
  return op.a.view.shape[0] > 1 && op.a.view.shape[2] <= Svd::kJacobiRows;
}

// u has as many columns as the matrix.
int is_economic(const Svd& op) { return op.u.view.shape[1] == op.a.view.shape[1]; }

int jacobi_length(const Svd& op, const CusolverHandle& use) {
  int m = small_size(op, op.a.view.shape[2]), n = small_size(op, op.a.view.shape[1]);
  int count = small_size(op, op.a.view.shape[0]), length = 0;
#define RENSA_BATCHED_SIZE(t, T)                                                                  \
  check_cusolver(op.name(), "cusolverDn<t>gesvdjBatched_bufferSize",                              \
                 cusolver().gesvdj_batched_size_##t(                                              \
                     use.handle(), CUSOLVER_EIG_MODE_VECTOR, m, n, op.a.view.as<T>(), m,          \
                     op.s.view.as<RENSA_REAL_##t>(), op.u.view.as<T>(), m, op.vt.view.as<T>(), n, \
                     &length, use.jacobi(), count))
#define RENSA_SIZE(t, T)                                                                          \
  check_cusolver(op.name(), "cusolverDn<t>gesvdj_bufferSize",                                     \
                 cusolver().gesvdj_size_##t(use.handle(), CUSOLVER_EIG_MODE_VECTOR,               \
                                            is_economic(op), m, n, op.a.view.as<T>(), m,          \
                                            op.s.view.as<RENSA_REAL_##t>(), op.u.view.as<T>(), m, \
                                            op.vt.view.as<T>(), n, &length, use.jacobi()))
  if (is_batched(op)) {
    RENSA_BY_TYPE(op.a.view.dtype, RENSA_BATCHED_SIZE)
  } else {
    RENSA_BY_TYPE(op.a.view.dtype, RENSA_SIZE)
  }
#undef RENSA_BATCHED_SIZE
#undef RENSA_SIZE
  return length;
}

void run_jacobi_batched(const Svd& op, const CusolverHandle& use, const Workspace& work) {
  int m = static_cast<int>(op.a.view.shape[2]), n = static_cast<int>(op.a.view.shape[1]);
  int count = static_cast<int>(op.a.view.shape[0]), length = jacobi_length(op, use);
#define RENSA_FACTOR(t, T)                                                                        \
  check_cusolver(op.name(), "cusolverDn<t>gesvdjBatched",                                         \
                 cusolver().gesvdj_batched_##t(                                                   \
                     use.handle(), CUSOLVER_EIG_MODE_VECTOR, m, n, op.a.view.as<T>(), m,          \
                     op.s.view.as<RENSA_REAL_##t>(), op.u.view.as<T>(), m, op.vt.view.as<T>(), n, \
                     static_cast<T*>(work.routine), length, work.info, use.jacobi(), count))
  RENSA_BY_TYPE(op.a.view.dtype, RENSA_FACTOR)
#undef RENSA_FACTOR
}

void run_jacobi_each(const Svd& op, const CusolverHandle& use, const Workspace& work) {
  Batch matrices(op.a), values(op.s), left(op.u), right(op.vt);
  int m = static_cast<int>(op.a.view.shape[2]), n = static_cast<int>(op.a.view.shape[1]);
  int length = jacobi_length(op, use);
  for (std::int64_t i = 0; i < matrices.count; ++i) {
#define RENSA_FACTOR(t, T)                                                                     \
  check_cusolver(op.name(), "cusolverDn<t>gesvdj",                                             \
                 cusolver().gesvdj_##t(                                                        \
                     use.handle(), CUSOLVER_EIG_MODE_VECTOR, is_economic(op), m, n,            \
                     static_cast<T*>(matrices[i]), m, static_cast<RENSA_REAL_##t*>(values[i]), \
                     static_cast<T*>(left[i]), m, static_cast<T*>(right[i]), n,                \
                     static_cast<T*>(work.routine), length, work.info + i, use.jacobi()))
    RENSA_BY_TYPE(op.a.view.dtype, RENSA_FACTOR)
#undef RENSA_FACTOR
  }
}

#undef RENSA_REAL_s
#undef RENSA_REAL_d
#undef RENSA_REAL_c
#undef RENSA_REAL_z

Scratch scratch_of(const Svd& op, const CusolverHandle& use) {
  Scratch scratch;
  if (op.jacobi) {
    scratch.device = static_cast<std::size_t>(jacobi_length(op, use)) *
                     static_cast<std::size_t>(itemsize(op.a.view.dtype));
    return scratch;
  }
  SvdCall c(op);
  check_cusolver(op.name(), "cusolverDnXgesvd_bufferSize",
                 cusolver().gesvd_size(use.handle(), use.params(), c.job, c.job, c.m, c.n, c.type,
                                       op.a.view.data, c.m, c.real, op.s.view.data, c.type,
                                       op.u.view.data, c.m, c.type, op.vt.view.data, c.n, c.type,
                                       &scratch.device, &scratch.host));
  return scratch;
}

Scratch scratch_of(const Eig& op, const CusolverHandle& use) {
  if (!cusolver().geev || !cusolver().geev_size) {
    throw NotImplementedError(fmt::format(
        "{}: {}: cuSOLVER has no such routine before CUDA 12.6; install a newer one, use "
        "linalg.eigh for symmetric matrices, or bring the array to the CPU with .to(cpu())",
        op.name(), op.a.view.describe()));
  }
  Scratch scratch;
  std::int64_t n = op.a.view.shape[1];
  cudaDataType type = data_type(op.a.view.dtype);
  check_cusolver(
      op.name(), "cusolverDnXgeev_bufferSize",
      cusolver().geev_size(use.handle(), use.params(), eig_mode(false), eig_mode(op.v.present()), n,
                           type, op.a.view.data, n, type, op.w.view.data, type, nullptr, n, type,
                           op.v.view.data, n, type, &scratch.device, &scratch.host));
  return scratch;
}

template <class Op> std::size_t workspace_of(const Op& op, const Operand& a) {
  Device device = a.view.device;
  if (device.is_cpu()) return 0;
  CusolverHandle use(op.name(), device, current_stream(device));
  return Layout(a.view.shape[0]).bytes(scratch_of(op, use).device);
}

}  // namespace

std::size_t CholeskyFactor::workspace_bytes() const { return workspace_of(*this, a); }
std::size_t LuSolve::workspace_bytes() const { return workspace_of(*this, a); }
std::size_t QrFactor::workspace_bytes() const { return workspace_of(*this, a); }
std::size_t QrForm::workspace_bytes() const { return workspace_of(*this, q); }
std::size_t Eigh::workspace_bytes() const { return workspace_of(*this, a); }
std::size_t Svd::workspace_bytes() const { return workspace_of(*this, a); }
std::size_t Eig::workspace_bytes() const { return workspace_of(*this, a); }

void CholeskyFactor::run_cuda(const cuda::LaunchContext& context) {
  Batch matrices(a);
  Workspace work(context, matrices.count);
  std::int64_t n = a.view.shape[1];
  if (is_batched(*this)) {
    cuda::launch_batch_pointers(name(), context, matrices.data, matrices.bytes, matrices.count,
                                work.first);
    CusolverHandle use(name(), context.device, stream_of(context));
    int order = small_size(*this, n), count = small_size(*this, matrices.count);
#define RENSA_FACTOR(t, T)                                                \
  check_cusolver(                                                         \
      name(), "cusolverDn<t>potrfBatched",                                \
      cusolver().potrf_batched_##t(use.handle(), fill_mode(upper), order, \
                                   reinterpret_cast<T**>(work.first), order, work.info, count))
    RENSA_BY_TYPE(a.view.dtype, RENSA_FACTOR)
#undef RENSA_FACTOR
  } else {
    CusolverHandle use(name(), context.device, stream_of(context));
    cudaDataType type = data_type(a.view.dtype);
    std::vector<char> host(scratch_of(*this, use).host);
    for (std::int64_t i = 0; i < matrices.count; ++i) {
      check_cusolver(name(), "cusolverDnXpotrf",
                     cusolver().potrf(use.handle(), use.params(), fill_mode(upper), n, type,
                                      matrices[i], n, type, work.routine, work.routine_bytes,
                                      host.data(), host.size(), work.info + i));
    }
  }
  cuda::launch_check_info(name(), context, ReportedError::not_positive_definite, work.info,
                          matrices.count);
}

void LuSolve::run_cuda(const cuda::LaunchContext& context) {
  Workspace work(context, a.view.shape[0]);
  if (is_batched(*this)) run_lu_batched(*this, context, work);
  else run_lu_each(*this, context, work);
  if (!singular_is_error) return;
  cuda::launch_check_info(name(), context, ReportedError::singular, work.info, a.view.shape[0]);
}

void QrFactor::run_cuda(const cuda::LaunchContext& context) {
  Batch matrices(a), factors(tau);
  Workspace work(context, matrices.count);
  std::int64_t m = a.view.shape[2], n = a.view.shape[1];
  cudaDataType type = data_type(a.view.dtype);
  CusolverHandle use(name(), context.device, stream_of(context));
  std::vector<char> host(scratch_of(*this, use).host);
  for (std::int64_t i = 0; i < matrices.count; ++i) {
    check_cusolver(name(), "cusolverDnXgeqrf",
                   cusolver().geqrf(use.handle(), use.params(), m, n, type, matrices[i], m, type,
                                    factors[i], type, work.routine, work.routine_bytes, host.data(),
                                    host.size(), work.info + i));
  }
}

void QrForm::run_cuda(const cuda::LaunchContext& context) {
  Batch matrices(q), factors(tau);
  Workspace work(context, matrices.count);
  CusolverHandle use(name(), context.device, stream_of(context));
  int length = orgqr_length(*this, use);
  int m = static_cast<int>(q.view.shape[2]), columns = static_cast<int>(q.view.shape[1]);
  int k = static_cast<int>(tau.view.shape[1]);
  for (std::int64_t i = 0; i < matrices.count; ++i) {
#define RENSA_FORM(t, T)                                                                         \
  check_cusolver(name(), "cusolverDn<t>orgqr",                                                   \
                 cusolver().orgqr_##t(use.handle(), m, columns, k, static_cast<T*>(matrices[i]), \
                                      m, static_cast<const T*>(factors[i]),                      \
                                      static_cast<T*>(work.routine), length, work.info + i))
    RENSA_BY_TYPE(q.view.dtype, RENSA_FORM)
#undef RENSA_FORM
  }
}

void Eigh::run_cuda(const cuda::LaunchContext& context) {
  Batch matrices(a), values(w);
  Workspace work(context, matrices.count);
  std::int64_t n = a.view.shape[1];
  cudaDataType type = data_type(a.view.dtype), real = real_type(a.view.dtype);
  Screen screen(*this, context, work, a, upper ? cuda::MatrixPart::upper : cuda::MatrixPart::lower);
  {
    CusolverHandle use(name(), context.device, stream_of(context));
    std::vector<char> host(scratch_of(*this, use).host);
    if (is_batched(*this)) {
      check_cusolver(name(), "cusolverDnXsyevBatched",
                     cusolver().syev_batched(use.handle(), use.params(), eig_mode(vectors),
                                             fill_mode(upper), n, type, a.view.data, n, real,
                                             w.view.data, type, work.routine, work.routine_bytes,
                                             host.data(), host.size(), work.info, matrices.count));
    } else {
      for (std::int64_t i = 0; i < matrices.count; ++i) {
        check_cusolver(
            name(), "cusolverDnXsyevd",
            cusolver().syevd(use.handle(), use.params(), eig_mode(vectors), fill_mode(upper), n,
                             type, matrices[i], n, real, values[i], type, work.routine,
                             work.routine_bytes, host.data(), host.size(), work.info + i));
      }
    }
  }
  screen.spoil(w);
  screen.spoil(a);
  screen.check(MatrixContent::nan);
}

void Svd::run_cuda(const cuda::LaunchContext& context) {
  Batch matrices(a), values(s), left(u), right(vt);
  Workspace work(context, matrices.count);
  Screen screen(*this, context, work, a);
  if (jacobi) {
    CusolverHandle use(name(), context.device, stream_of(context));
    (is_batched(*this) ? run_jacobi_batched : run_jacobi_each)(*this, use, work);
  } else {
    SvdCall c(*this);
    CusolverHandle use(name(), context.device, stream_of(context));
    std::vector<char> host(scratch_of(*this, use).host);
    for (std::int64_t i = 0; i < matrices.count; ++i) {
      check_cusolver(name(), "cusolverDnXgesvd",
                     cusolver().gesvd(use.handle(), use.params(), c.job, c.job, c.m, c.n, c.type,
                                      matrices[i], c.m, c.real, values[i], c.type, left[i], c.m,
                                      c.type, right[i], c.n, c.type, work.routine,
                                      work.routine_bytes, host.data(), host.size(), work.info + i));
    }
  }
  for (const Operand* found : {&s, &u, &vt}) screen.spoil(*found);
  // What Jacobi's last sweep leaves is as small as rounding lets it be: its info is not looked at.
  screen.check(MatrixContent::nan, !jacobi);
}

void Eig::run_cuda(const cuda::LaunchContext& context) {
  Batch matrices(a), values(w), columns(v);
  Workspace work(context, matrices.count);
  std::int64_t n = a.view.shape[1];
  cudaDataType type = data_type(a.view.dtype);
  Screen screen(*this, context, work, a);
  {
    CusolverHandle use(name(), context.device, stream_of(context));
    std::vector<char> host(scratch_of(*this, use).host);
    for (std::int64_t i = 0; i < matrices.count; ++i) {
      check_cusolver(
          name(), "cusolverDnXgeev",
          cusolver().geev(use.handle(), use.params(), eig_mode(false), eig_mode(v.present()), n,
                          type, matrices[i], n, type, values[i], type, nullptr, n, type, columns[i],
                          n, type, work.routine, work.routine_bytes, host.data(), host.size(),
                          work.info + i));
    }
  }
  screen.spoil(w);
  screen.spoil(v);
  screen.check(MatrixContent::infinite);
}

#undef RENSA_BY_TYPE

}  // namespace rensa::operations
