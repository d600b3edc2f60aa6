// The training step of training_step.cc written by hand with nothing but cuBLASLt, a few kernels
// and one CUDA graph, every product's plan chosen by timing: what the first milestone is made of.
// The index that the batch is gathered by stays the same; the loss is reported, the accuracy is
// not.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "cublaslt.cuh"

namespace {

constexpr int kSamples = 60000, kInputs = 784, kUnits = 1000, kClasses = 10;
constexpr float kRate = 0.01f;

__global__ void gather(const float4* x, const long long* index, float4* out) {
  const float4* row = x + index[blockIdx.x] * (kInputs / 4);
  for (int i = threadIdx.x; i < kInputs / 4; i += blockDim.x) {
    out[blockIdx.x * (kInputs / 4) + i] = row[i];
  }
}

/// gz = gy where y > 0, else 0, in place; gb = the columns' sums. A block takes 32 columns.
__global__ void relu_bias_grad(float* gy, const float* y, float* gb, int rows) {
  __shared__ float sums[32][33];
  int column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (column < kUnits) {
    for (int row = threadIdx.y; row < rows; row += 32) {
      int i = row * kUnits + column;
      float g = y[i] > 0 ? gy[i] : 0;
      gy[i] = g;
      sum += g;
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  float total = sums[threadIdx.x][threadIdx.y];
  for (int d = 16; d > 0; d /= 2) total += __shfl_xor_sync(~0u, total, d);
  if (threadIdx.x == 0 && blockIdx.x * 32 + threadIdx.y < kUnits) {
    gb[blockIdx.x * 32 + threadIdx.y] = total;
  }
}

/// Mean loss, the gradient of the logits and its columns' sums, in one block: a thread takes a row.
__global__ void softmax_cross_entropy(const float* logits, const long long* labels,
                                      const long long* index, int rows, float* gradient, float* gb,
                                      float* loss) {
  __shared__ float sums[kClasses + 1][32];
  float mine[kClasses + 1] = {};
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    const float* z = logits + row * kClasses;
    float greatest = z[0], total = 0;
    for (int j = 1; j < kClasses; ++j) greatest = fmaxf(greatest, z[j]);
    for (int j = 0; j < kClasses; ++j) total += expf(z[j] - greatest);
    int label = int(labels[index[row]]);
    for (int j = 0; j < kClasses; ++j) {
      float g = (expf(z[j] - greatest) / total - (j == label)) / rows;
      gradient[row * kClasses + j] = g;
      mine[j] += g;
    }
    mine[kClasses] += (logf(total) + greatest - z[label]) / rows;
  }
  for (int j = 0; j <= kClasses; ++j) {
    for (int d = 16; d > 0; d /= 2) mine[j] += __shfl_xor_sync(~0u, mine[j], d);
    if (threadIdx.x % 32 == 0) sums[j][threadIdx.x / 32] = mine[j];
  }
  __syncthreads();
  if (threadIdx.x <= kClasses) {
    float total = 0;
    for (int warp = 0; warp < int(blockDim.x) / 32; ++warp) total += sums[threadIdx.x][warp];
    *(threadIdx.x == kClasses ? loss : gb + threadIdx.x) = total;
  }
}

__global__ void sgd(float4* parameters, const float4* gradients, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float4 p = parameters[i], g = gradients[i];
  parameters[i] = {p.x - kRate * g.x, p.y - kRate * g.y, p.z - kRate * g.z, p.w - kRate * g.w};
}

template <class T> void upload(T* to, const std::vector<T>& from) {
  CHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
}

constexpr int pad(int n) { return (n + 63) / 64 * 64; }

/// Where each array starts in the one block of all parameters, and in that of all gradients.
struct Layout {
  static constexpr int w1 = 0, b1 = w1 + pad(kUnits * kInputs), w2 = b1 + pad(kUnits),
                       b2 = w2 + pad(kUnits * kUnits), w3 = b2 + pad(kUnits),
                       b3 = w3 + pad(kClasses * kUnits), total = b3 + pad(kClasses);
};

struct Data {
  float* x;
  long long *t, *index;
};

void run_row(const Data& data, int batch, bool tf32) {
  Context context;
  context.tf32 = tf32;
  CHECK(cublasLtCreate(&context.handle));
  CHECK(cudaStreamCreateWithFlags(&context.stream, cudaStreamNonBlocking));
  context.workspace = device_memory<char>(kWorkspace);

  auto* p = device_memory<float>(Layout::total);
  auto* g = device_memory<float>(Layout::total);
  std::vector<float> initial(Layout::total);
  std::mt19937 random(0);
  std::normal_distribution<float> normal(0, 1.f / 30);
  for (int begin : {Layout::w1, Layout::w2, Layout::w3}) {
    int count = begin == Layout::w1   ? kUnits * kInputs
                : begin == Layout::w2 ? kUnits * kUnits
                                      : kClasses * kUnits;
    for (int i = 0; i < count; ++i) initial[begin + i] = normal(random);
  }
  upload(p, initial);
  std::size_t rows = batch;
  float *x = device_memory<float>(rows * kInputs), *h1 = device_memory<float>(rows * kUnits),
        *h2 = device_memory<float>(rows * kUnits), *z = device_memory<float>(rows * kClasses),
        *gz = device_memory<float>(rows * kClasses), *gh2 = device_memory<float>(rows * kUnits),
        *gh1 = device_memory<float>(rows * kUnits), *loss = device_memory<float>(1);

  // Row-major y = x w.T + b is column-major y' = w' (transposed) x'.
  Product forward1(context, true, false, kUnits, batch, kInputs, p + Layout::w1, x, h1,
                   p + Layout::b1, true);
  Product forward2(context, true, false, kUnits, batch, kUnits, p + Layout::w2, h1, h2,
                   p + Layout::b2, true);
  Product forward3(context, true, false, kClasses, batch, kUnits, p + Layout::w3, h2, z,
                   p + Layout::b3);
  Product weight3(context, false, true, kUnits, kClasses, batch, h2, gz, g + Layout::w3);
  Product input3(context, false, false, kUnits, batch, kClasses, p + Layout::w3, gz, gh2);
  Product weight2(context, false, true, kUnits, kUnits, batch, h1, gh2, g + Layout::w2);
  Product input2(context, false, false, kUnits, batch, kUnits, p + Layout::w2, gh2, gh1);
  Product weight1(context, false, true, kInputs, kUnits, batch, x, gh1, g + Layout::w1);

  auto step = [&] {
    gather<<<batch, 224, 0, context.stream>>>(reinterpret_cast<const float4*>(data.x), data.index,
                                              reinterpret_cast<float4*>(x));
    forward1.run();
    forward2.run();
    forward3.run();
    int threads = std::min((batch + 31) / 32 * 32, 1024);
    softmax_cross_entropy<<<1, threads, 0, context.stream>>>(z, data.t, data.index, batch, gz,
                                                             g + Layout::b3, loss);
    weight3.run();
    input3.run();
    dim3 grid((kUnits + 31) / 32), block(32, 32);
    relu_bias_grad<<<grid, block, 0, context.stream>>>(gh2, h2, g + Layout::b2, batch);
    weight2.run();
    input2.run();
    relu_bias_grad<<<grid, block, 0, context.stream>>>(gh1, h1, g + Layout::b1, batch);
    weight1.run();
    constexpr int kVectors = Layout::total / 4;
    sgd<<<(kVectors + 255) / 256, 256, 0, context.stream>>>(
        reinterpret_cast<float4*>(p), reinterpret_cast<const float4*>(g), kVectors);
    CHECK(cudaGetLastError());
  };
  auto loss_now = [&] {
    float value = 0;
    CHECK(cudaStreamSynchronize(context.stream));
    CHECK(cudaMemcpy(&value, loss, sizeof value, cudaMemcpyDeviceToHost));
    return value;
  };
  step();
  float first = loss_now();

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(context.stream, cudaStreamCaptureModeThreadLocal));
  step();
  CHECK(cudaStreamEndCapture(context.stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  std::vector<double> timings;
  for (int turn = 0; turn < 6; ++turn) {  // the first warms up
    CHECK(cudaStreamSynchronize(context.stream));
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) CHECK(cudaGraphLaunch(exec, context.stream));
    CHECK(cudaStreamSynchronize(context.stream));
    std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - start;
    if (turn > 0) timings.push_back(us.count() / 1000);
  }
  std::sort(timings.begin(), timings.end());
  std::printf(
      "{\"name\": \"mnist_mlp1000 B=%d %s by hand\", \"value\": %.4g, \"unit\": \"us/step\", "
      "\"first_loss\": %.4g, \"last_loss\": %.4g}\n",
      batch, tf32 ? "tf32" : "fp32", timings[2], first, loss_now());
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

}  // namespace

int main() {
  Data data{device_memory<float>(std::size_t(kSamples) * kInputs),
            device_memory<long long>(kSamples), device_memory<long long>(1024)};
  std::mt19937 random(1);
  std::vector<float> x(std::size_t(kSamples) * kInputs);
  for (float& value : x) value = float(random() >> 8) * 0x1p-24f;
  upload(data.x, x);
  std::vector<long long> t(kSamples), index(1024);
  for (long long& label : t) label = random() % kClasses;
  for (long long& row : index) row = random() % kSamples;
  upload(data.t, t);
  upload(data.index, index);
  for (bool tf32 : {false, true}) {
    for (int batch : {100, 1024}) run_row(data, batch, tf32);
  }
}
