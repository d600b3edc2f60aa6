// What the launcher checks and tells, and the accounts of waits and of devices.
#include "rensa/device/launcher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "rensa/communication/thread_transport.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/kind.h"
#include "rensa/device/stream.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "rensa/operations/exchange/exchange.h"
#include "rensa/operations/matmul/matmul.h"
#include "rensa/operations/random/random.h"
#include "tests/device/driver_calls.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using operations::Random;

/// Notes whether it ran.
struct Probe final : KindOf<Probe> {
  explicit Probe(int* count) : KindOf("probe"), ran(count) {}
  int* ran;
  std::vector<Operand> operands;
  template <class V> void fields(V& v) {
    for (Operand& operand : operands) v.read(operand);
  }
  void run_cpu() override { ++*ran; }
  void run_cuda(const cuda::LaunchContext&) override { *ran += 100; }
};

Operand operand_on(Device device, const StoragePtr& storage, Shape shape) {
  Operand operand;
  operand.view.device = device;
  operand.view.shape = shape;
  operand.view.strides = contiguous_strides(shape, 4);
  operand.view.data = storage->data();
  operand.storage = storage.get();
  return operand;
}

class CountingRecorder final : public Recorder {
 public:
  void operation(Operation& operation) override { seen += std::string(operation.name()) + " "; }
  void effect(std::function<void()>, double, EffectTarget) override { seen += "effect "; }
  int scalar(std::function<HostScalar()>) override { return 7; }
  void output(const ArrayView&, Storage*,
              std::function<void(StoragePtr, const ArrayView&)>) override {}
  void binding(std::function<const Storage*()>) override {}
  void watch(std::function<std::vector<std::string>()>) override {}
  void state(const std::shared_ptr<StateBody>&, bool) override {}
  void cannot_record(const char* reason) override { seen += std::string("no: ") + reason; }
  std::string seen;
};

TEST(Launcher, RunsWhereTheOperandsAre) {
  StoragePtr storage = allocate(64, cpu());
  int ran = 0;
  Probe probe(&ran);
  launch(probe);
  EXPECT_EQ(ran, 0) << "nothing to work on";
  probe.operands = {operand_on(cpu(), storage, {4}), operand_on(cpu(), storage, {2, 2})};
  launch(probe);
  EXPECT_EQ(ran, 1);
}

TEST(Launcher, OperandsOfTwoDevicesAreNamed) {
  StoragePtr storage = allocate(1024, cpu());
  int ran = 0;
  Probe probe(&ran);
  probe.operands = {operand_on(cpu(), storage, {5, 4, 3}), operand_on(gpu(0), storage, {4, 3})};
  try {
    launch(probe);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_STREQ(
        error.what(),
        "probe: operands on cpu (5, 4, 3) float32 and cuda:0 (4, 3) float32; move one with "
        ".to(...)");
  }
  EXPECT_EQ(ran, 0);
}

TEST(Launcher, ARecordingSeesOperationsEffectsAndWaits) {
  StoragePtr storage = allocate(64, cpu());
  int ran = 0, effects = 0;
  Probe probe(&ran);
  probe.operands = {operand_on(cpu(), storage, {4})};
  CountingRecorder recorder;
  ThreadState::current().recorder = &recorder;
  launch(probe);
  host_effect([&] { ++effects; });
  HostScalar rate = host_scalar([] { return 0.5; });
  std::int64_t before = cuda::sync_count();
  cuda::count_sync("a wait");
  ThreadState::current().recorder = nullptr;
  launch(probe);
  EXPECT_EQ(recorder.seen, "probe effect no: a wait");
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(effects, 1);
  EXPECT_EQ(rate.slot, 7);
  EXPECT_EQ(rate.real, 0.5);
  EXPECT_EQ(cuda::sync_count(), before + 1);
}

TEST(Operations, VisitTheirOperandsInAFixedOrder) {
  StoragePtr storage = allocate(64, cpu());
  struct Listing final : OperandVisitor {
    void read(Operand& o) override { text += "r" + std::to_string(o.view.shape[0]); }
    void write(Operand& o) override { text += "w" + std::to_string(o.view.shape[0]); }
    void scalar(HostScalar& s) override { text += "s" + std::to_string(s.integer); }
    std::string text;
  };
  auto numbered = [&](std::int64_t n) { return operand_on(cpu(), storage, {n}); };
  auto listed = [](Operation& operation) {
    Listing listing;
    operation.clone()->visit(listing);
    return listing.text;
  };
  operations::Elementwise add("add", ufunc::add);
  add.num_inputs = 2;
  add.in[1].array = numbered(1);  // the other input is a number
  add.out = numbered(2);
  EXPECT_EQ(listed(add), "r1w2");
  operations::Matmul matmul;
  matmul.a = numbered(1), matmul.b = numbered(2), matmul.c = numbered(4);
  EXPECT_EQ(listed(matmul), "r1r2w4");
  matmul.bias = numbered(3);
  EXPECT_EQ(listed(matmul), "r1r2r3w4");
  Random random("uniform", Random::Kind::uniform);
  random.out = numbered(1);
  random.seed.integer = 3, random.offset.integer = 4;
  EXPECT_EQ(listed(random), "w1s3s4");
}

TEST(Operations, ToldApartByTheirNumbers) {
  auto numbers = [](Operation& operation) {
    std::vector<std::int64_t> bits;
    operation.numbers(bits);
    return bits;
  };
  Random one("uniform", Random::Kind::uniform), other = one;
  EXPECT_EQ(numbers(one), numbers(other));
  other.b = 1.5;
  EXPECT_NE(numbers(one), numbers(other));
  other = one;
  other.seed.integer = 7;  // a replay asks for it anew
  EXPECT_EQ(numbers(one), numbers(other));
  EXPECT_EQ(numbers(*other.clone()), numbers(other));
  auto groups = communication::connect_threads(2, std::chrono::seconds(1));
  operations::Exchange exchange("allreduce"), of_others = exchange;
  EXPECT_EQ(numbers(exchange), numbers(of_others));
  of_others.transport = groups[0];
  EXPECT_NE(numbers(exchange), numbers(of_others));
  operations::Elementwise x_less_0("subtract", ufunc::subtract), zero_less_x = x_less_0;
  x_less_0.num_inputs = zero_less_x.num_inputs = 2;
  Storage* some = reinterpret_cast<Storage*>(64);  // not looked into
  x_less_0.in[0].array.storage = zero_less_x.in[1].array.storage = some;
  EXPECT_NE(numbers(x_less_0), numbers(zero_less_x));
}

TEST(Operations, WithoutCudaTheirCudaSideSaysSo) {
#if RENSA_HAS_CUDA
  GTEST_SKIP() << "this build has CUDA";
#endif
  operations::Matmul matmul;
  Random random("uniform", Random::Kind::uniform);
  for (Operation* operation : std::initializer_list<Operation*>{&matmul, &random}) {
    EXPECT_EQ(operation->workspace_bytes(), 0u);
    try {
      operation->run_cuda({});
      FAIL() << operation->name();
    } catch (const NotImplementedError& error) {
      EXPECT_EQ(std::string(error.what()).find(operation->name()), 0u) << error.what();
    }
  }
}

// --- devices ---

TEST(Devices, WhatIsThere) {
  EXPECT_GE(num_gpus(), 0);
  EXPECT_EQ(cuda::is_available(), num_gpus() > 0);
  EXPECT_EQ(try_gpu(kMaxGpus), cpu());
  EXPECT_EQ(try_gpu(-1), cpu());
  EXPECT_EQ(try_gpu(0), num_gpus() > 0 ? gpu(0) : cpu());
  EXPECT_EQ(try_all_gpus().size(), static_cast<std::size_t>(std::max(num_gpus(), 1)));
  check_device(cpu());
}

// What a machine needs for its GPUs, line by line: what is there, or what is missing.
TEST(Devices, DiagnoseTellsWhatIsThereAndWhatIsMissing) {
  std::string text = cuda::diagnose();
  auto says = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  if (num_gpus() == 0) {
    EXPECT_TRUE(says("GPUs: none: " + cuda::runtime::why_no_device() + "\n")) << text;
  } else {
    EXPECT_EQ(text.rfind("GPUs: " + std::to_string(num_gpus()) + "\n", 0), 0u) << text;
    EXPECT_TRUE(says("cuda:0: " + gpu(0).name() + ", compute capability ")) << text;
  }
#if RENSA_HAS_CUDA
  EXPECT_TRUE(says("CUDA runtime: ") && says(", driver for up to: ")) << text;
  for (const char* library : {"cuBLAS", "NVRTC", "NCCL", "cuDNN", "CUPTI", "NVML"}) {
    EXPECT_TRUE(says(library)) << library << " in\n" << text;
  }
#endif
}

// A device is a name: neither making one nor reading, printing and comparing them asks the driver.
TEST(Devices, NamingAGpuIsNoDriverCalls) {
  RENSA_NEEDS_GPUS(1);
  RENSA_NEEDS_DRIVER_CALLS();
  testing::DriverCallCounter counter;
  testing::DriverCalls before = counter.snapshot();
  EXPECT_EQ(Device("gpu:0"), gpu(0));
  EXPECT_EQ(gpu(kMaxGpus - 1).str(), "cuda:" + std::to_string(kMaxGpus - 1));
  testing::DriverCalls made = counter.snapshot() - before;
  EXPECT_TRUE(made.calls.empty()) << made.str();
}

TEST(Devices, AnAbsentGpuIsExplained) {
  Device absent = gpu(num_gpus());
  std::string text;
  try {
    check_device(absent);
  } catch (const DeviceError& error) {
    text = error.what();
  }
  EXPECT_EQ(text.find(absent.str()), 0u) << text;
  EXPECT_NE(text.find(num_gpus() == 0 ? "cannot be used: " : "is not there: this machine has"),
            std::string::npos)
      << text;
  EXPECT_THROW(DeviceScope on(absent), DeviceError);
  EXPECT_THROW(absent.use(), DeviceError);
  EXPECT_THROW(cuda::mem_info(absent), DeviceError);
  EXPECT_THROW(cuda::mem_info(cpu()), DeviceError);
  EXPECT_THROW(cuda::Stream(absent, cuda::default_stream_flags), DeviceError);
  EXPECT_THROW(cuda::current_stream(absent), DeviceError);
  EXPECT_EQ(ThreadState::current().device, cpu());
}

TEST(Devices, AScopeEnds) {
  Device there = try_gpu();
  {
    DeviceScope on(there);
    EXPECT_EQ(ThreadState::current().device, there);
    std::thread elsewhere([] { EXPECT_EQ(ThreadState::current().device, cpu()); });
    elsewhere.join();
  }
  EXPECT_EQ(ThreadState::current().device, cpu());
}

}  // namespace
}  // namespace rensa
