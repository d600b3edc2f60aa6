// Products on the CPU: ours beside OpenBLAS, BLIS and oneDNN, those of them that the loader finds,
// each with its own threads (OMP_NUM_THREADS and the like). Microseconds.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/libraries/fastest.h"
#include "benchmarks/timing.h"
#include "rensa/array.h"
#include "rensa/core/thread_pool.h"

namespace {

using namespace rensa;

// cblas_?gemm, as every library of CBLAS has it: row-major is 101, as it stands 111, transposed
// 112.
template <class T>
using Cblas = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, T alpha,
                       const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);
// dnnl_sgemm, row-major.
using Dnnl = int (*)(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n,
                     std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
                     std::int64_t ldb, float beta, float* c, std::int64_t ldc);

// Deep: a BLAS calls its own routines, not those of the one that Rensa is linked with.
void* open(const char* file) { return dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND); }
template <class F> F find(void* library, const char* name) {
  return library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
}

struct Libraries {
  void* openblas = open("libopenblas.so.0");
  void* blis = open("libblis.so.4");
  void* dnnl = open("libdnnl.so.2");

  Libraries() {
    int threads = get_num_threads();
    if (auto set = find<void (*)(int)>(openblas, "openblas_set_num_threads")) set(threads);
    if (auto set = find<void (*)(std::int64_t)>(blis, "bli_thread_set_num_threads")) set(threads);
  }
};

/// (m, k) @ (k, n), or @ a transposed (n, k), as a layer has its weights.
struct Sides {
  int m, k, n;
  bool transposed = false;
};

template <class T> void compare(const Libraries& libraries, const char* type, const Sides& s) {
  Dtype dtype = sizeof(T) == 4 ? float32 : float64;
  auto random = [&](int rows, int columns) {
    return xp::random::uniform(-1, 1, {rows, columns}, dtype, cpu());
  };
  Array a = random(s.m, s.k), b = s.transposed ? Array(random(s.n, s.k).T()) : random(s.k, s.n),
        c = xp::empty({s.m, s.n}, dtype, cpu()), theirs = xp::empty_like(c);
  std::string work = "(" + std::to_string(s.m) + ", " + std::to_string(s.k) + ") @ (" +
                     std::to_string(s.k) + ", " + std::to_string(s.n) + ")" +
                     (s.transposed ? ", transposed, " : ", ") + type;
  auto time = [&](const char* who, const auto& call) {
    double seconds = benchmarks::fastest_seconds(call);
    benchmarks::print_figure("products: " + work + " " + who, seconds * 1e6, "us");
  };
  auto check = [&] {
    if (xp::allclose(c, theirs, 1e-3, 1e-3)) return;
    std::fprintf(stderr, "the products differ\n");
    std::exit(1);
  };
  const T *p = static_cast<const T*>(a.data()), *q = static_cast<const T*>(b.data());
  T* out = static_cast<T*>(theirs.data());
  int ldb = s.transposed ? s.k : s.n;
  time("rensa", [&] { xp::matmul(a, b, {.out = c}); });
  for (auto [who, library] :
       {std::pair("openblas", libraries.openblas), {"blis", libraries.blis}}) {
    auto gemm = find<Cblas<T>>(library, sizeof(T) == 4 ? "cblas_sgemm" : "cblas_dgemm");
    if (!gemm) continue;
    time(who, [&] {
      gemm(101, 111, s.transposed ? 112 : 111, s.m, s.n, s.k, 1, p, s.k, q, ldb, 0, out, s.n);
    });
    check();
  }
  if constexpr (sizeof(T) == 4) {
    auto gemm = find<Dnnl>(libraries.dnnl, "dnnl_sgemm");
    if (!gemm) return;
    time("dnnl", [&] {
      gemm('N', s.transposed ? 'T' : 'N', s.m, s.n, s.k, 1, p, s.k, q, ldb, 0, out, s.n);
    });
    check();
  }
}

}  // namespace

int main() {
  xp::random::seed(1);
  Libraries libraries;
  for (const Sides& s : {Sides{16, 16, 16},
                         {64, 64, 64},
                         {256, 256, 256},
                         {512, 512, 512},
                         {1024, 1024, 1024},
                         {2048, 2048, 2048},
                         {100, 784, 1000, true},
                         {1024, 1000, 1000, true},
                         {100, 1000, 10, true},
                         {10, 100, 1000},
                         {1, 2048, 2048},
                         {2048, 2048, 1},
                         {2048, 2048, 16}}) {
    compare<float>(libraries, "float32", s);
    compare<double>(libraries, "float64", s);
  }
  return 0;
}
