// Fourier transforms on the CPU: ours beside pocketfft's (NumPy's and SciPy's), where its header
// was found when this was built, and FFTW's measured plans, where the loader finds it, all of them
// with the pool's number of threads. Microseconds.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "benchmarks/libraries/fastest.h"
#include "benchmarks/timing.h"
#include "rensa/array.h"
#include "rensa/core/thread_pool.h"
#if RENSA_HAS_POCKETFFT
#define POCKETFFT_CACHE_SIZE 16
#include <pocketfft_hdronly.h>
#endif

namespace {

using namespace rensa;

/// FFTW for one precision, by its functions' names ("fftwf_" + name).
class Fftw {
 public:
  explicit Fftw(const char* suffix) : prefix_(std::string("fftw") + suffix + "_") {
    library_ = dlopen(("libfftw3" + std::string(suffix) + ".so.3").c_str(), RTLD_NOW | RTLD_GLOBAL);
    void* with_threads = dlopen(("libfftw3" + std::string(suffix) + "_threads.so.3").c_str(),
                                RTLD_NOW | RTLD_GLOBAL);
    if (!with_threads) library_ = nullptr;
    if (!library_) return;
    reinterpret_cast<int (*)()>(dlsym(with_threads, (prefix_ + "init_threads").c_str()))();
    threads_ = reinterpret_cast<void (*)(int)>(
        dlsym(with_threads, (prefix_ + "plan_with_nthreads").c_str()));
    find<void (*)(double)>("set_timelimit")(0.5);
  }
  explicit operator bool() const { return library_ != nullptr; }
  /// Plans that are made from now on have so many threads.
  void use(int threads) const { threads_(threads); }
  template <class F> F find(const char* name) const {
    return reinterpret_cast<F>(dlsym(library_, (prefix_ + name).c_str()));
  }

 private:
  std::string prefix_;
  void* library_;
  void (*threads_)(int) = nullptr;
};

struct Work {
  std::vector<std::int64_t> shape;
  int axes = 1;  // the last ones, which are transformed
  bool real = false;
};

template <class R> void compare(const Fftw& fftw, const Work& w) {
  bool wide = sizeof(R) == 8;
  Shape shape(w.shape);
  auto random = [&] { return xp::random::normal(0, 1, shape, wide ? float64 : float32, cpu()); };
  Array x =
      w.real ? random() : xp::add(random(), xp::multiply(random(), std::complex<float>(0, 1)));
  auto run = [&] {
    if (w.axes == 2) return w.real ? xp::fft::rfft2(x) : xp::fft::fft2(x);
    return w.real ? xp::fft::rfft(x) : xp::fft::fft(x);
  };
  Array ours = run(), theirs = xp::zeros_like(ours);
  std::string work = std::string(w.real ? "real " : "") + "(";
  for (std::size_t i = 0; i < w.shape.size(); ++i) {
    work += (i ? ", " : "") + std::to_string(w.shape[i]);
  }
  work += w.shape.size() == 1 ? ",)" : ")";
  work += std::string(w.axes == 2 ? ", both axes" : "") + (wide ? ", double" : ", float");
  auto seconds = [&](const auto& call) { return benchmarks::fastest_seconds(call); };
  auto print = [&](const char* who, double value) {
    benchmarks::print_figure("fourier: " + work + " " + who, value * 1e6, "us");
  };
  auto check = [&] {
    if (xp::allclose(ours, theirs, 1e-2, 1e-2 * std::sqrt(static_cast<double>(x.size())))) return;
    std::fprintf(stderr, "the transforms differ\n");
    std::exit(1);
  };
  print("rensa", seconds([&] { (void)run(); }));
#if RENSA_HAS_POCKETFFT
  {
    using C = std::complex<R>;
    pocketfft::shape_t sizes(w.shape.begin(), w.shape.end()), axes;
    pocketfft::stride_t in, out;
    for (int i = 0; i < x.ndim(); ++i)
      in.push_back(x.strides()[i]), out.push_back(ours.strides()[i]);
    for (int i = x.ndim() - w.axes; i < x.ndim(); ++i) axes.push_back(static_cast<std::size_t>(i));
    auto transform = [&](std::size_t threads) {
      auto* to = static_cast<C*>(theirs.data());
      if (w.real) {
        pocketfft::r2c(sizes, in, out, axes, true, static_cast<const R*>(x.data()), to, R(1),
                       threads);
      } else {
        pocketfft::c2c(sizes, in, out, axes, true, static_cast<const C*>(x.data()), to, R(1),
                       threads);
      }
    };
    auto threads = static_cast<std::size_t>(get_num_threads());
    print("pocketfft",
          std::min(seconds([&] { transform(1); }), seconds([&] { transform(threads); })));
    check();
  }
#endif
  if (!fftw) return;
  // plan_many_dft(rank, n, howmany, in, inembed, istride, idist, out, onembed, ostride, odist,
  // sign, flags); that of real values has no sign.
  std::vector<int> n(w.shape.end() - w.axes, w.shape.end());
  std::int64_t many = 1, size = 1, result = 1;
  for (std::size_t i = 0; i + static_cast<std::size_t>(w.axes) < w.shape.size(); ++i) {
    many *= w.shape[i];
  }
  for (int i = x.ndim() - w.axes; i < x.ndim(); ++i)
    size *= x.shape()[i], result *= ours.shape()[i];
  auto howmany = static_cast<int>(many), idist = static_cast<int>(size),
       odist = static_cast<int>(result);
  Array kept = x.copy();  // measuring writes to what is given
  using Complex = void* (*)(int, const int*, int, void*, const int*, int, int, void*, const int*,
                            int, int, int, unsigned);
  using Real = void* (*)(int, const int*, int, void*, const int*, int, int, void*, const int*, int,
                         int, unsigned);
  constexpr unsigned kMeasure = 0;
  auto execute = fftw.find<void (*)(void*)>("execute");
  double least = std::numeric_limits<double>::infinity();
  for (int threads : {1, get_num_threads()}) {
    fftw.use(threads);
    void* plan = w.real ? fftw.find<Real>("plan_many_dft_r2c")(w.axes, n.data(), howmany, x.data(),
                                                               nullptr, 1, idist, theirs.data(),
                                                               nullptr, 1, odist, kMeasure)
                        : fftw.find<Complex>("plan_many_dft")(w.axes, n.data(), howmany, x.data(),
                                                              nullptr, 1, idist, theirs.data(),
                                                              nullptr, 1, odist, -1, kMeasure);
    xp::copyto(x, kept);
    least = std::min(least, seconds([&] { execute(plan); }));
    xp::copyto(x, kept);  // transforms of several axes of real values may overwrite them
    execute(plan);
    check();
    xp::copyto(x, kept);
    fftw.find<void (*)(void*)>("destroy_plan")(plan);
  }
  print("fftw", least);
}

}  // namespace

int main() {
  xp::random::seed(1);
  Fftw single("f"), wide("");
  for (const Work& w : std::vector<Work>{{{64}},
                                         {{1024}},
                                         {{16384}},
                                         {{1 << 20}},
                                         {{1009}},
                                         {{65537}},
                                         {{1000}},
                                         {{100'000}},
                                         {{1'500'000}},
                                         {{10'000, 64}},
                                         {{1000, 1000}},
                                         {{1000, 1009}},
                                         {{100, 16384}},
                                         {{64, 64}, 2},
                                         {{1024, 1024}, 2},
                                         {{1024}, 1, true},
                                         {{1 << 20}, 1, true},
                                         {{1000, 1000}, 1, true},
                                         {{1024, 1024}, 2, true}}) {
    compare<float>(single, w);
    compare<double>(wide, w);
  }
  return 0;
}
