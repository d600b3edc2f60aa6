// Memory that ends where no page follows: whoever reads behind it is stopped.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace rensa::testing {

/// `nbytes` bytes right before a page that may not be read, zeros at first.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t nbytes) {
    auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::size_t pages = (nbytes + page - 1) / page * page;
    size_ = pages + page;
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory_, MAP_FAILED);
    char* end = static_cast<char*>(memory_) + pages;
    EXPECT_EQ(mprotect(end, page, PROT_NONE), 0);
    data_ = end - nbytes;
  }
  ~GuardedMemory() { munmap(memory_, size_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  void* data() const { return data_; }

 private:
  std::size_t size_;
  void *memory_, *data_;
};

}  // namespace rensa::testing
