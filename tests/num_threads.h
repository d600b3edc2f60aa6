// Another number of threads for a scope.
#pragma once

#include "rensa/core/thread_pool.h"

namespace rensa::testing {

class NumThreads {
 public:
  explicit NumThreads(int n) : previous_(get_num_threads()) { set_num_threads(n); }
  ~NumThreads() { set_num_threads(previous_); }
  NumThreads(const NumThreads&) = delete;
  NumThreads& operator=(const NumThreads&) = delete;

 private:
  int previous_;
};

}  // namespace rensa::testing
