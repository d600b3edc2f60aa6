// Arrays that processes share.
#include "rensa/array/ipc.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "rensa/array/index.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(Ipc, WhatIsRefused) {
  EXPECT_THROW(cuda::ipc_handle(Array()), ValueError);
  EXPECT_THROW(cuda::ipc_handle(xp::ones({3})), DeviceError);
  EXPECT_THROW(cuda::open_ipc_handle("", gpu(0)), ValueError);
  EXPECT_THROW(cuda::open_ipc_handle(std::string(64 + 160, 'x'), gpu(0)), ValueError);
}

// Run by the test below, as a process of its own: CUDA's state does not survive a fork.
TEST(Ipc, TheOtherProcess) {
  const char* path = std::getenv("RENSA_TEST_IPC");
  if (!path) GTEST_SKIP() << "runs below SharesMemoryWithAnotherProcess only";
  std::string bytes = testing::read_file(path);
  cuda::Event ready = cuda::Event::from_ipc_handle(bytes.substr(0, 64), gpu(0));
  cuda::current_stream(gpu(0)).wait(ready);
  Array a = cuda::open_ipc_handle(bytes.substr(64), gpu(0));
  EXPECT_EQ(a.shape(), (Shape{2, 3}));
  EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{1, 3, 5, 7, 9, 11}));
  a *= 2.f;
  EXPECT_EQ(a[0].to_vector<float>(), (std::vector<float>{2, 6, 10}));
}

TEST(Ipc, SharesMemoryWithAnotherProcess) {
  RENSA_NEEDS_GPUS(1);
  testing::TemporaryFolder folder;
  Array before = xp::ones({100}, float32, gpu());  // so that it is not the pool's first block
  Array whole = xp::arange(12, float32, gpu()).reshape({2, 6});
  Array odd = whole[{Slice(), Slice(1, none, 2)}];
  cuda::Event ready(cuda::EventOptions{.timing = false, .interprocess = true});
  ready.record(gpu());
  testing::write_file(folder / "handle", ready.ipc_handle() + cuda::ipc_handle(odd));
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv("RENSA_TEST_IPC", (folder / "handle").c_str(), 1);
    unsetenv("GTEST_TOTAL_SHARDS");  // a part of the tests may leave out the one that is meant
    unsetenv("GTEST_SHARD_INDEX");
    execl("/proc/self/exe", "ipc", "--gtest_filter=Ipc.TheOtherProcess", nullptr);
    _exit(127);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(whole.to_vector<float>(),
            (std::vector<float>{0, 2, 2, 6, 4, 10, 6, 14, 8, 18, 10, 22}));
}

}  // namespace
}  // namespace rensa
