// LAPACK's routines (Fortran symbols, which OpenBLAS carries) as overloads over the element type.
// Matrices are stored column by column; a result of 0 is success.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace rensa::host::lapack {

template <class T> struct RealOf { using type = T; };
template <class T> struct RealOf<std::complex<T>> { using type = T; };
template <class T> using real_of = typename RealOf<T>::type;

// The lengths of the character arguments come last, as gfortran passes them.
#define RENSA_LAPACK(s, T)                                                                  \
  extern "C" {                                                                              \
  void s##potrf_(const char*, const int*, T*, const int*, int*, std::size_t);               \
  void s##getrf_(const int*, const int*, T*, const int*, int*, int*);                       \
  void s##getrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*, \
                 const int*, int*, std::size_t);                                            \
  void s##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);         \
  }                                                                                         \
  inline int potrf(char uplo, int n, T* a) {                                                \
    int info = 0, ld = std::max(n, 1);                                                      \
    s##potrf_(&uplo, &n, a, &ld, &info, 1);                                                 \
    return info;                                                                            \
  }                                                                                         \
  inline int getrf(int n, T* a, int* pivots) {                                              \
    int info = 0, ld = std::max(n, 1);                                                      \
    s##getrf_(&n, &n, a, &ld, pivots, &info);                                               \
    return info;                                                                            \
  }                                                                                         \
  inline int getrs(char trans, int n, int columns, const T* a, const int* pivots, T* b) {   \
    int info = 0, ld = std::max(n, 1);                                                      \
    s##getrs_(&trans, &n, &columns, a, &ld, pivots, b, &ld, &info, 1);                      \
    return info;                                                                            \
  }                                                                                         \
  inline int geqrf(int m, int n, T* a, T* tau, T* work, int lwork) {                        \
    int info = 0, ld = std::max(m, 1);                                                      \
    s##geqrf_(&m, &n, a, &ld, tau, work, &lwork, &info);                                    \
    return info;                                                                            \
  }
RENSA_LAPACK(s, float)
RENSA_LAPACK(d, double)
RENSA_LAPACK(c, std::complex<float>)
RENSA_LAPACK(z, std::complex<double>)
#undef RENSA_LAPACK

// Q's columns from the reflectors; orgqr and ungqr are one routine of two names.
#define RENSA_LAPACK(name, T)                                                               \
  extern "C" void name##_(const int*, const int*, const int*, T*, const int*, const T*, T*, \
                          const int*, int*);                                                \
  inline int orgqr(int m, int columns, int k, T* q, const T* tau, T* work, int lwork) {     \
    int info = 0, ld = std::max(m, 1);                                                      \
    name##_(&m, &columns, &k, q, &ld, tau, work, &lwork, &info);                            \
    return info;                                                                            \
  }
RENSA_LAPACK(sorgqr, float)
RENSA_LAPACK(dorgqr, double)
RENSA_LAPACK(cungqr, std::complex<float>)
RENSA_LAPACK(zungqr, std::complex<double>)
#undef RENSA_LAPACK

/// The scratch of a call: LAPACK says how much it wants, once for all matrices of one size.
template <class T> struct Work {
  std::vector<T> values;
  std::vector<real_of<T>> reals;
  std::vector<int> integers;

  int length() const { return static_cast<int>(values.size()); }
  /// Takes what a call with lwork = -1 has written into `wanted`.
  void resize(T wanted) {
    values.resize(std::max<std::size_t>(1, static_cast<std::size_t>(std::real(wanted))));
  }
};

// Eigenvalues of symmetric (Hermitian) matrices. A length of -1 asks for the scratch.
#define RENSA_LAPACK_REAL(s, T)                                                                   \
  extern "C" {                                                                                    \
  void s##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*,  \
                 const int*, int*, std::size_t, std::size_t);                                     \
  void s##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*,     \
                 const int*, T*, const int*, int*, int*, std::size_t);                            \
  }                                                                                               \
  inline int syevd(char jobz, char uplo, int n, T* a, T* w, Work<T>& work) {                      \
    int info = 0, ld = std::max(n, 1), query = -1, wanted_integers = 0;                           \
    if (work.values.empty()) {                                                                    \
      T wanted = 0;                                                                               \
      s##syevd_(&jobz, &uplo, &n, a, &ld, w, &wanted, &query, &wanted_integers, &query, &info, 1, \
                1);                                                                               \
      work.resize(wanted);                                                                        \
      work.integers.resize(static_cast<std::size_t>(std::max(wanted_integers, 1)));               \
    }                                                                                             \
    int lwork = work.length(), liwork = static_cast<int>(work.integers.size());                   \
    s##syevd_(&jobz, &uplo, &n, a, &ld, w, work.values.data(), &lwork, work.integers.data(),      \
              &liwork, &info, 1, 1);                                                              \
    return info;                                                                                  \
  }                                                                                               \
  inline int gesdd(char jobz, int m, int n, T* a, T* singular, T* u, T* vt, int ldvt,             \
                   Work<T>& work) {                                                               \
    int info = 0, ld = std::max(m, 1), query = -1;                                                \
    if (work.values.empty()) {                                                                    \
      T wanted = 0;                                                                               \
      work.integers.resize(static_cast<std::size_t>(8 * std::max(std::min(m, n), 1)));            \
      s##gesdd_(&jobz, &m, &n, a, &ld, singular, u, &ld, vt, &ldvt, &wanted, &query,              \
                work.integers.data(), &info, 1);                                                  \
      work.resize(wanted);                                                                        \
    }                                                                                             \
    int lwork = work.length();                                                                    \
    s##gesdd_(&jobz, &m, &n, a, &ld, singular, u, &ld, vt, &ldvt, work.values.data(), &lwork,     \
              work.integers.data(), &info, 1);                                                    \
    return info;                                                                                  \
  }
RENSA_LAPACK_REAL(s, float)
RENSA_LAPACK_REAL(d, double)
#undef RENSA_LAPACK_REAL

#define RENSA_LAPACK_COMPLEX(s, R)                                                                 \
  extern "C" {                                                                                     \
  void s##heevd_(const char*, const char*, const int*, std::complex<R>*, const int*, R*,           \
                 std::complex<R>*, const int*, R*, const int*, int*, const int*, int*,             \
                 std::size_t, std::size_t);                                                        \
  void s##gesdd_(const char*, const int*, const int*, std::complex<R>*, const int*, R*,            \
                 std::complex<R>*, const int*, std::complex<R>*, const int*, std::complex<R>*,     \
                 const int*, R*, int*, int*, std::size_t);                                         \
  void s##geev_(const char*, const char*, const int*, std::complex<R>*, const int*,                \
                std::complex<R>*, std::complex<R>*, const int*, std::complex<R>*, const int*,      \
                std::complex<R>*, const int*, R*, int*, std::size_t, std::size_t);                 \
  }                                                                                                \
  inline int syevd(char jobz, char uplo, int n, std::complex<R>* a, R* w,                          \
                   Work<std::complex<R>>& work) {                                                  \
    int info = 0, ld = std::max(n, 1), query = -1, wanted_integers = 0;                            \
    if (work.values.empty()) {                                                                     \
      std::complex<R> wanted = 0;                                                                  \
      R wanted_reals = 0;                                                                          \
      s##heevd_(&jobz, &uplo, &n, a, &ld, w, &wanted, &query, &wanted_reals, &query,               \
                &wanted_integers, &query, &info, 1, 1);                                            \
      work.resize(wanted);                                                                         \
      work.reals.resize(std::max<std::size_t>(1, static_cast<std::size_t>(wanted_reals)));         \
      work.integers.resize(static_cast<std::size_t>(std::max(wanted_integers, 1)));                \
    }                                                                                              \
    int lwork = work.length(), lrwork = static_cast<int>(work.reals.size()),                       \
        liwork = static_cast<int>(work.integers.size());                                           \
    s##heevd_(&jobz, &uplo, &n, a, &ld, w, work.values.data(), &lwork, work.reals.data(), &lrwork, \
              work.integers.data(), &liwork, &info, 1, 1);                                         \
    return info;                                                                                   \
  }                                                                                                \
  inline int gesdd(char jobz, int m, int n, std::complex<R>* a, R* singular, std::complex<R>* u,   \
                   std::complex<R>* vt, int ldvt, Work<std::complex<R>>& work) {                   \
    int info = 0, ld = std::max(m, 1), query = -1;                                                 \
    if (work.values.empty()) {                                                                     \
      std::complex<R> wanted = 0;                                                                  \
      std::size_t least = static_cast<std::size_t>(std::max(std::min(m, n), 1)),                   \
                  most = static_cast<std::size_t>(std::max({m, n, 1}));                            \
      work.integers.resize(8 * least);                                                             \
      work.reals.resize(least* std::max(5 * least + 7, 2 * most + 2 * least + 1));                 \
      s##gesdd_(&jobz, &m, &n, a, &ld, singular, u, &ld, vt, &ldvt, &wanted, &query,               \
                work.reals.data(), work.integers.data(), &info, 1);                                \
      work.resize(wanted);                                                                         \
    }                                                                                              \
    int lwork = work.length();                                                                     \
    s##gesdd_(&jobz, &m, &n, a, &ld, singular, u, &ld, vt, &ldvt, work.values.data(), &lwork,      \
              work.reals.data(), work.integers.data(), &info, 1);                                  \
    return info;                                                                                   \
  }                                                                                                \
  inline int geev(char jobvr, int n, std::complex<R>* a, std::complex<R>* w, std::complex<R>* v,   \
                  Work<std::complex<R>>& work) {                                                   \
    int info = 0, ld = std::max(n, 1), query = -1, one = 1;                                        \
    char none = 'N';                                                                               \
    if (work.values.empty()) {                                                                     \
      std::complex<R> wanted = 0;                                                                  \
      work.reals.resize(static_cast<std::size_t>(2 * ld));                                         \
      s##geev_(&none, &jobvr, &n, a, &ld, w, nullptr, &one, v, &ld, &wanted, &query,               \
               work.reals.data(), &info, 1, 1);                                                    \
      work.resize(wanted);                                                                         \
    }                                                                                              \
    int lwork = work.length();                                                                     \
    s##geev_(&none, &jobvr, &n, a, &ld, w, nullptr, &one, v, &ld, work.values.data(), &lwork,      \
             work.reals.data(), &info, 1, 1);                                                      \
    return info;                                                                                   \
  }
RENSA_LAPACK_COMPLEX(c, float)
RENSA_LAPACK_COMPLEX(z, double)
#undef RENSA_LAPACK_COMPLEX

}  // namespace rensa::host::lapack
