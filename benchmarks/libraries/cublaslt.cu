// Small and skinny products of float32 on a GPU, ours beside cuBLASLt with the fastest of all its
// plans: microseconds of device time a product, from a CUDA graph of a hundred.
//
//   library_cublaslt [DEVICE]
#include "benchmarks/cublaslt.cuh"

#include <cuda_runtime.h>

#include <string>

#include "benchmarks/timing.h"
#include "rensa/array.h"
#include "rensa/device/stream_graph.h"

namespace {

using namespace rensa;

constexpr int kProducts = 100;

/// (m, k) @ (k, n), or @ a transposed (n, k), as a layer has its weights.
struct Sides {
  int m, k, n;
  bool transposed = false;
};

void print(const Sides& s, const char* who, const cuda::Graph& graph, const cuda::Stream& stream) {
  double seconds =
      benchmarks::median_seconds([&] { graph.launch(stream); }, 20, stream.device()) / kProducts;
  std::string name = "beside cuBLASLt: (" + std::to_string(s.m) + ", " + std::to_string(s.k) +
                     ") @ (" + std::to_string(s.k) + ", " + std::to_string(s.n) + ")" +
                     (s.transposed ? ", transposed " : " ") + who;
  benchmarks::print_figure(name, seconds * 1e6, "us");
}

void compare(const Context& context, const cuda::Stream& stream, const Sides& s) {
  Device device = stream.device();
  Array a = xp::random::uniform(-1, 1, {s.m, s.k}, float32, device),
        b = s.transposed ? Array(xp::random::uniform(-1, 1, {s.n, s.k}, float32, device).T())
                         : xp::random::uniform(-1, 1, {s.k, s.n}, float32, device),
        c = xp::empty({s.m, s.n}, float32, device), theirs = xp::empty_like(c);
  auto ours = [&] { xp::matmul(a, b, {.out = c}); };
  ours();  // chooses how, by timing
  print(s, "rensa",
        cuda::capture_graph(stream,
                            [&] {
                              for (int i = 0; i < kProducts; ++i) ours();
                            }),
        stream);
  // Row by row is to cuBLASLt the transposed product.
  Product product(context, s.transposed, false, s.n, s.m, s.k, static_cast<float*>(b.data()),
                  static_cast<float*>(a.data()), static_cast<float*>(theirs.data()));
  print(s, "cublaslt",
        cuda::capture_graph(stream,
                            [&] {
                              for (int i = 0; i < kProducts; ++i) product.run();
                            }),
        stream);
  if (!xp::allclose(c, theirs, 1e-3, 1e-3)) {
    std::fprintf(stderr, "the products differ\n");
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Device device(argc > 1 ? argv[1] : "cuda:0");
  DeviceScope scope(device);
  cuda::Stream stream(device, cuda::non_blocking);
  cuda::StreamScope current(stream);
  config().autotune = true;
  Context context;
  context.stream = static_cast<cudaStream_t>(stream.handle());
  CHECK(cublasLtCreate(&context.handle));
  context.workspace = device_memory<char>(kWorkspace);
  for (const Sides& shape : {Sides{32, 32, 32},
                             {64, 64, 64},
                             {100, 100, 100},
                             {100, 784, 100},
                             {256, 256, 256},
                             {100, 1000, 10, true},
                             {100, 10, 1000},
                             {10, 100, 1000},
                             {1, 4096, 4096},
                             {1, 4096, 4096, true},
                             {4096, 4096, 1},
                             {16, 4096, 4096},
                             {4096, 4096, 16},
                             {65536, 16, 64},
                             {512, 512, 512}}) {
    compare(context, stream, shape);
  }
  return 0;
}
