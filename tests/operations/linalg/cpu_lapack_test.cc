// LAPACK's prototypes as operations/linalg/cpu_lapack.h writes them against those of LAPACKE's own
// header, where that is installed.
#include <gtest/gtest.h>

#include <complex>
#include <type_traits>

#if __has_include(<lapack.h>)
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#define LAPACK_COMPLEX_CUSTOM
#include <lapack.h>
#define RENSA_TEST_LAPACK_HEADER 1
#endif

#include "rensa/operations/linalg/cpu_lapack.h"

namespace rensa::host::lapack {
namespace {

TEST(Lapack, PrototypesAreThoseOfItsHeader) {
#if RENSA_TEST_LAPACK_HEADER
#define RENSA_SAME(name) static_assert(std::is_same_v<decltype(name), decltype(::name)>)
#define RENSA_SAME_OF(s) \
  RENSA_SAME(s##potrf_); \
  RENSA_SAME(s##getrf_); \
  RENSA_SAME(s##getrs_); \
  RENSA_SAME(s##geqrf_); \
  RENSA_SAME(s##gesdd_)
  RENSA_SAME_OF(s);
  RENSA_SAME_OF(d);
  RENSA_SAME_OF(c);
  RENSA_SAME_OF(z);
  RENSA_SAME(sorgqr_);
  RENSA_SAME(dorgqr_);
  RENSA_SAME(cungqr_);
  RENSA_SAME(zungqr_);
  RENSA_SAME(ssyevd_);
  RENSA_SAME(dsyevd_);
  RENSA_SAME(cheevd_);
  RENSA_SAME(zheevd_);
  RENSA_SAME(cgeev_);
  RENSA_SAME(zgeev_);
#undef RENSA_SAME_OF
#undef RENSA_SAME
#else
  GTEST_SKIP() << "no lapack.h";
#endif
}

}  // namespace
}  // namespace rensa::host::lapack
