// The CPU thread pool: one for the process, made of std::thread, so that the thread sanitizer sees
// through it. Work is cut into chunks whose borders do not depend on the number of threads.
#pragma once

#include <cstdint>

namespace rensa {

/// A borrowed reference to a callable void(int64 begin, int64 end).
class RangeFunction {
 public:
  template <class F>
  RangeFunction(const F& f)
      : object_(&f), call_([](const void* object, std::int64_t begin, std::int64_t end) {
          (*static_cast<const F*>(object))(begin, end);
        }) {}
  void operator()(std::int64_t begin, std::int64_t end) const { call_(object_, begin, end); }

 private:
  const void* object_;
  void (*call_)(const void*, std::int64_t, std::int64_t);
};

/// Calls f(begin, end) over [0, n) in pieces of `grain` (the last may be shorter), on the pool's
/// threads and the calling one; returns when all are done. Borders lie at multiples of `grain`. The
/// first exception thrown by f is rethrown here. Nested calls run in the calling thread. Safe to
/// call from several threads at once.
void parallel_for(std::int64_t n, std::int64_t grain, RangeFunction f);

/// For work that streams through memory: as few pieces of [0, n) as still share it out evenly, each
/// of a multiple of `grain`. Where many short ones lie in turns on several threads, each of them is
/// a new place to the processors' prefetching.
std::int64_t long_pieces(std::int64_t n, std::int64_t grain);

/// Threads that parallel_for uses, the caller's included: RENSA_NUM_THREADS, else the cores that
/// the process may run on.
int get_num_threads();
/// Throws ValueError for n < 1.
void set_num_threads(int n);

}  // namespace rensa
