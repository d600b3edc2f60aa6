// Factorizations on the CPU: LAPACK, a batch of small matrices shared out over the pool's threads,
// one large matrix computed by the library's own.
#include "rensa/operations/linalg/linalg.h"

#include <fmt/format.h>

#include "rensa/core/error.h"

#if RENSA_BLAS

#include <cmath>
#include <complex>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "rensa/core/fork.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/error_word.h"
#include "rensa/operations/linalg/cpu_lapack.h"

// Only OpenBLAS has it.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace rensa::operations {

namespace {

using host::lapack::real_of;
using host::lapack::Work;

constexpr std::int64_t kSmallWork = 1 << 18;  // multiplications of one thread's share of a batch
constexpr std::int64_t kLargeMatrix = 200;    // rows worth the library's own threads

// The library computes in the calling thread (operations/matmul/cpu_blas.cc); while this object
// lives and `many` is set, in as many threads as the pool has.
class LibraryThreads {
 public:
  explicit LibraryThreads(bool many) {
    if (&openblas_set_num_threads == nullptr) return;
    static std::once_flag once;
    std::call_once(once, [] { openblas_set_num_threads(1); });
    if (!many || get_num_threads() == 1) return;
    hold_ = std::unique_lock(mutex());
    openblas_set_num_threads(get_num_threads());
  }
  ~LibraryThreads() {
    if (hold_.owns_lock()) openblas_set_num_threads(1);
  }
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  static std::mutex& mutex() {
    // Taken before the locks of memory: matrices are allocated while it is held.
    static auto& one_at_a_time = make_held_over_fork<std::mutex>(ForkOrder::outer);
    return one_at_a_time;
  }
  std::unique_lock<std::mutex> hold_;
};

template <class F> void visit_element(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::float32: return f(float{});
    case Dtype::float64: return f(double{});
    case Dtype::complex64: return f(std::complex<float>{});
    default: return f(std::complex<double>{});
  }
}

// An operand: a batch of matrices one behind the other.
template <class T> struct Batch {
  T* data = nullptr;
  std::int64_t matrix = 0;  // elements of one

  Batch() = default;
  explicit Batch(const Operand& operand) {
    if (!operand.present()) return;
    data = operand.view.as<T>();
    matrix = operand.view.shape[0] ? operand.view.size() / operand.view.shape[0] : 0;
  }
  T* operator[](std::int64_t i) const { return data + i * matrix; }
};

template <class R> MatrixContent content_of(const R* values, std::int64_t n) {
  bool infinite = false, nan = false;
  for (std::int64_t i = 0; i < n; ++i) {
    infinite |= std::abs(values[i]) > std::numeric_limits<R>::max();
    nan |= values[i] != values[i];
  }
  return nan ? MatrixContent::nan : infinite ? MatrixContent::infinite : MatrixContent::finite;
}

template <class R> MatrixContent content_of(const std::complex<R>* values, std::int64_t n) {
  return content_of(reinterpret_cast<const R*>(values), 2 * n);
}

// Of one triangle of an n x n matrix.
template <class T> MatrixContent content_of(const T* matrix, std::int64_t n, bool upper) {
  MatrixContent worst = MatrixContent::finite;
  for (std::int64_t j = 0; j < n; ++j) {
    const T* column = matrix + j * n;
    worst = std::max(worst, upper ? content_of(column, j + 1) : content_of(column + j, n - j));
  }
  return worst;
}

template <class T> void fill_with_nan(const Batch<T>& batch, std::int64_t i) {
  real_of<T> nan = std::numeric_limits<real_of<T>>::quiet_NaN();
  auto* values = reinterpret_cast<real_of<T>*>(batch[i]);
  std::int64_t width = sizeof(T) / sizeof(nan);
  if (batch.data) std::fill_n(values, batch.matrix * width, nan);
}

int lapack_size(const Operation& operation, const ArrayView& view, int axis) {
  std::int64_t extent = view.shape[axis];
  if (extent <= std::numeric_limits<int>::max()) return static_cast<int>(extent);
  throw NotImplementedError(fmt::format("{}: {} is larger than LAPACK's 32-bit integers count",
                                        operation.name(), view.describe()));
}

// Calls factor(i, work) for each matrix; what it returns is not 0 where it failed. Throws `failure`
// of the first such matrix, if there is one.
template <class T, class F>
void for_each_matrix(const Operation& operation, const ArrayView& a,
                     std::optional<ReportedError> failure, F factor) {
  std::int64_t batch = a.shape[0], rows = a.shape[a.ndim() - 1];
  std::int64_t work = std::max<std::int64_t>(1, a.shape[1] * rows * std::min(a.shape[1], rows));
  LibraryThreads threads(batch == 1 && std::min(a.shape[1], rows) >= kLargeMatrix);
  std::vector<int> info(static_cast<std::size_t>(batch));
  parallel_for(batch, std::max<std::int64_t>(1, kSmallWork / work),
               [&](std::int64_t begin, std::int64_t end) {
                 Work<T> scratch;
                 for (std::int64_t i = begin; i < end; ++i) {
                   info[static_cast<std::size_t>(i)] = factor(i, scratch);
                 }
               });
  for (std::int64_t i = 0; i < batch && failure; ++i) {
    if (info[static_cast<std::size_t>(i)] != 0) {
      throw_reported({*failure, operation.name(), i, batch}, a.device);
    }
  }
}

}  // namespace

void CholeskyFactor::run_cpu() {
  int n = lapack_size(*this, a.view, 2);
  visit_element(a.view.dtype, [&](auto element) {
    using T = decltype(element);
    Batch<T> matrices(a);
    for_each_matrix<T>(*this, a.view, ReportedError::not_positive_definite,
                       [&](std::int64_t i, Work<T>&) {
                         return host::lapack::potrf(upper ? 'U' : 'L', n, matrices[i]);
                       });
  });
}

void LuSolve::run_cpu() {
  int n = lapack_size(*this, a.view, 2);
  int columns = b.present() ? lapack_size(*this, b.view, 1) : 0;
  visit_element(a.view.dtype, [&](auto element) {
    using T = decltype(element);
    Batch<T> matrices(a), right(b);
    Batch<int> exchanges(pivots);
    std::optional<ReportedError> failure;
    if (singular_is_error) failure = ReportedError::singular;
    for_each_matrix<T>(*this, a.view, failure, [&](std::int64_t i, Work<T>&) {
      int info = host::lapack::getrf(n, matrices[i], exchanges[i]);
      if (right.data && (info == 0 || !singular_is_error)) {
        host::lapack::getrs(transposed ? 'T' : 'N', n, columns, matrices[i], exchanges[i],
                            right[i]);
      }
      return info;
    });
  });
}

void QrFactor::run_cpu() {
  int m = lapack_size(*this, a.view, 2), n = lapack_size(*this, a.view, 1);
  visit_element(a.view.dtype, [&](auto element) {
    using T = decltype(element);
    Batch<T> matrices(a), factors(tau);
    for_each_matrix<T>(*this, a.view, std::nullopt, [&](std::int64_t i, Work<T>& work) {
      if (work.values.empty()) {
        T wanted = 0;
        host::lapack::geqrf(m, n, matrices[i], factors[i], &wanted, -1);
        work.resize(wanted);
      }
      return host::lapack::geqrf(m, n, matrices[i], factors[i], work.values.data(), work.length());
    });
  });
}

void QrForm::run_cpu() {
  int m = lapack_size(*this, q.view, 2), columns = lapack_size(*this, q.view, 1);
  int k = lapack_size(*this, tau.view, 1);
  visit_element(q.view.dtype, [&](auto element) {
    using T = decltype(element);
    Batch<T> matrices(q), factors(tau);
    for_each_matrix<T>(*this, q.view, std::nullopt, [&](std::int64_t i, Work<T>& work) {
      if (work.values.empty()) {
        T wanted = 0;
        host::lapack::orgqr(m, columns, k, matrices[i], factors[i], &wanted, -1);
        work.resize(wanted);
      }
      return host::lapack::orgqr(m, columns, k, matrices[i], factors[i], work.values.data(),
                                 work.length());
    });
  });
}

void Eigh::run_cpu() {
  int n = lapack_size(*this, a.view, 2);
  visit_element(a.view.dtype, [&](auto element) {
    using T = decltype(element);
    Batch<T> matrices(a);
    Batch<real_of<T>> values(w);
    for_each_matrix<T>(*this, a.view, ReportedError::not_converged,
                       [&](std::int64_t i, Work<T>& work) {
                         MatrixContent content = content_of(matrices[i], n, upper);
                         if (content != MatrixContent::finite) {
                           fill_with_nan(matrices, i);
                           fill_with_nan(values, i);
                           return content == MatrixContent::nan ? 1 : 0;
                         }
                         return host::lapack::syevd(vectors ? 'V' : 'N', upper ? 'U' : 'L', n,
                                                    matrices[i], values[i], work);
                       });
  });
}

void Svd::run_cpu() {
  int m = lapack_size(*this, a.view, 2), n = lapack_size(*this, a.view, 1);
  char job = !u.present() ? 'N' : u.view.shape[1] == n ? 'S' : 'A';
  visit_element(a.view.dtype, [&](auto element) {
    using T = decltype(element);
    Batch<T> matrices(a), left(u), right(vt);
    Batch<real_of<T>> values(s);
    for_each_matrix<T>(*this, a.view, ReportedError::not_converged,
                       [&](std::int64_t i, Work<T>& work) {
                         MatrixContent content = content_of(matrices[i], matrices.matrix);
                         if (content != MatrixContent::finite) {
                           fill_with_nan(values, i);
                           fill_with_nan(left, i);
                           fill_with_nan(right, i);
                           return content == MatrixContent::nan ? 1 : 0;
                         }
                         return host::lapack::gesdd(job, m, n, matrices[i], values[i], left[i],
                                                    right[i], std::max(n, 1), work);
                       });
  });
}

void Eig::run_cpu() {
  int n = lapack_size(*this, a.view, 2);
  auto run = [&](auto element) {
    using T = decltype(element);
    Batch<T> matrices(a), values(w), columns(v);
    for_each_matrix<T>(*this, a.view, ReportedError::not_converged,
                       [&](std::int64_t i, Work<T>& work) {
                         if (content_of(matrices[i], matrices.matrix) != MatrixContent::finite)
                           return 1;
                         return host::lapack::geev(v.present() ? 'V' : 'N', n, matrices[i],
                                                   values[i], columns[i], work);
                       });
  };
  if (a.view.dtype == complex64) run(std::complex<float>{});
  else run(std::complex<double>{});
}

}  // namespace rensa::operations

#else

namespace rensa::operations {

namespace {
[[noreturn]] void absent(const Operation& operation) {
  throw NotImplementedError(
      fmt::format("{}: this build of Rensa has no LAPACK for the CPU; build with RENSA_BLAS=ON "
                  "(needs libopenblas-dev), or compute on a GPU",
                  operation.name()));
}
}  // namespace

void CholeskyFactor::run_cpu() { absent(*this); }
void LuSolve::run_cpu() { absent(*this); }
void QrFactor::run_cpu() { absent(*this); }
void QrForm::run_cpu() { absent(*this); }
void Eigh::run_cpu() { absent(*this); }
void Svd::run_cpu() { absent(*this); }
void Eig::run_cpu() { absent(*this); }

}  // namespace rensa::operations

#endif
