// Products on a GPU, ours beside cuBLASLt with the fastest of all its plans: microseconds of device
// time a product, from a CUDA graph of a hundred. "rensa" is chosen by timing (autotune), "rensa,
// untuned" as the shape tells.
//
//   library_cublaslt [DEVICE] [table]
//
// table: products of 1 to 1024 rows, columns and terms, 1 to 64 at a time, of three precisions;
// without it some small and skinny ones of float32.
#include "benchmarks/cublaslt.cuh"

#include <cuda_runtime.h>

#include <cstring>
#include <string>

#include "benchmarks/timing.h"
#include "rensa/array.h"
#include "rensa/device/stream_graph.h"

namespace {

using namespace rensa;

struct Precision {
  const char* name;
  Dtype dtype;
  cudaDataType_t type;
  bool tf32;
};
constexpr Precision kFloat32{"float32", Dtype::float32, CUDA_R_32F, false},
    kTf32{"TF32", Dtype::float32, CUDA_R_32F, true},
    kBfloat16{"bfloat16", Dtype::bfloat16, CUDA_R_16BF, false};

/// (m, k) @ (k, n), or @ a transposed (n, k), as a layer has its weights; `batch` of them.
struct Sides {
  int m, k, n;
  bool transposed = false;
  int batch = 1;
};

/// Prints microseconds of a call of f, from a graph of `count`.
template <class F>
void print(const std::string& name, const cuda::Stream& stream, int count, F&& f) {
  cuda::Graph graph = cuda::capture_graph(stream, [&] {
    for (int i = 0; i < count; ++i) f();
  });
  auto seconds = benchmarks::sorted_seconds([&] { graph.launch(stream); }, 5, stream.device(), 1);
  benchmarks::print_figure("beside cuBLASLt: " + name, seconds[0] / count * 1e6, "us");
}

/// Prints `name` of ours and of cuBLASLt.
void compare(Context& context, const cuda::Stream& stream, const Precision& precision,
             const Sides& s, const std::string& name, bool untuned) {
  Device device = stream.device();
  context.type = precision.type;
  context.tf32 = config().tf32 = precision.tf32;
  auto values = [&](int rows, int columns) {
    return xp::random::uniform(-1, 1, {s.batch, rows, columns}, float32, device)
        .astype(precision.dtype);
  };
  Array a = values(s.m, s.k), b = s.transposed ? values(s.n, s.k).swapaxes(1, 2) : values(s.k, s.n),
        c = xp::empty({s.batch, s.m, s.n}, precision.dtype, device), theirs = xp::empty_like(c);
  // Few runs are enough where one takes long.
  double work = 1.0 * s.m * s.k * s.n * s.batch;
  int count = work > 1e8 ? 20 : 100;
  auto ours = [&] { xp::matmul(a, b, {.out = c}); };
  for (bool autotune : {false, true}) {
    config().autotune = autotune;
    ours();  // chooses how
    if (autotune || untuned) {
      print(name + (autotune ? "rensa" : "rensa, untuned"), stream, count, ours);
    }
  }
  // Row by row is to cuBLASLt the transposed product.
  Product product(context, s.transposed, false, s.n, s.m, s.k, b.data(), a.data(), theirs.data(),
                  nullptr, false, s.batch);
  print(name + "cublaslt", stream, count, [&] { product.run(); });
  double tolerance = precision.dtype == Dtype::bfloat16 ? 0.1 : precision.tf32 ? 0.05 : 1e-3;
  if (!xp::allclose(c.astype(float32), theirs.astype(float32), 1e-2, tolerance)) {
    std::fprintf(stderr, "the products differ: %s\n", name.c_str());
    std::exit(1);
  }
}

void compare_some(Context& context, const cuda::Stream& stream) {
  for (const Sides& s : {Sides{32, 32, 32},
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
    compare(context, stream, kFloat32, s,
            "(" + std::to_string(s.m) + ", " + std::to_string(s.k) + ") @ (" + std::to_string(s.k) +
                ", " + std::to_string(s.n) + ")" + (s.transposed ? ", transposed " : " "),
            false);
  }
}

void compare_table(Context& context, const cuda::Stream& stream) {
  constexpr int kSizes[] = {1, 10, 64, 200, 1024};
  for (const Precision& precision : {kFloat32, kTf32, kBfloat16}) {
    for (int batch : {1, 8, 64}) {
      for (int m : kSizes) {
        for (int n : kSizes) {
          for (int k : kSizes) {
            if (1.0 * batch * m * n * k > 1e9) continue;  // nothing small
            std::string name = std::string(precision.name) + ", " + std::to_string(batch) +
                               " of (" + std::to_string(m) + ", " + std::to_string(k) + ") @ (" +
                               std::to_string(k) + ", " + std::to_string(n) + ") ";
            compare(context, stream, precision, {m, k, n, false, batch}, name, true);
          }
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool table = argc > 1 && std::strcmp(argv[argc - 1], "table") == 0;
  Device device(argc > (table ? 2 : 1) ? argv[1] : "cuda:0");
  DeviceScope scope(device);
  cuda::Stream stream(device, cuda::non_blocking);
  cuda::StreamScope current(stream);
  Context context;
  context.stream = static_cast<cudaStream_t>(stream.handle());
  CHECK(cublasLtCreate(&context.handle));
  context.workspace = device_memory<char>(kWorkspace);
  if (table) compare_table(context, stream);
  else compare_some(context, stream);
  return 0;
}
