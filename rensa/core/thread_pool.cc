// The thread pool behind parallel_for. A caller publishes a job on its own stack; idle workers join
// it, and caller and workers claim pieces from one counter until none is left. The caller takes
// part and then waits for those that joined, so a job ends even if no worker ever comes.
#include "rensa/core/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/core/fork.h"

namespace rensa {

namespace {

constexpr int kMaxThreads = 1024;
// How long a thread looks for work before it sleeps: longer than what lies between two operations
// of a training step, short against a scheduler's time slice.
constexpr auto kSpinTime = std::chrono::microseconds(50);

thread_local bool inside_parallel_for = false;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Polls `ready` for a short while; whether it became true.
template <class F> bool spin_until(const F& ready) {
  auto start = std::chrono::steady_clock::now();
  for (;;) {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      pause();
    }
    if (std::chrono::steady_clock::now() - start > kSpinTime) return false;
  }
}

void run_inline(std::int64_t n, std::int64_t grain, const RangeFunction& f) {
  for (std::int64_t begin = 0; begin < n; begin += grain) f(begin, std::min(n, begin + grain));
}

class Job {
 public:
  Job(std::int64_t n, std::int64_t grain, const RangeFunction& f)
      : n_(n), grain_(grain), pieces_((n + grain - 1) / grain), f_(f) {}

  std::int64_t pieces() const { return pieces_; }

  void work() {
    inside_parallel_for = true;
    for (;;) {
      std::int64_t piece = next_.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces_) break;
      try {
        f_(piece * grain_, std::min(n_, (piece + 1) * grain_));
      } catch (...) {
        next_.store(pieces_, std::memory_order_relaxed);  // what is not begun stays undone
        std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
    inside_parallel_for = false;
  }
  void rethrow() {
    if (error_) std::rethrow_exception(error_);
  }

  // Guarded by the pool's mutex, but for the caller's wait on `helpers`.
  std::atomic<int> helpers{0};  // workers inside
  int joined = 0;               // workers that ever came
  bool caller_sleeps = false;
  std::condition_variable left;

 private:
  const std::int64_t n_, grain_, pieces_;
  const RangeFunction& f_;
  std::atomic<std::int64_t> next_{0};
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

int threads_of_environment() {
  if (auto n = environment::number("RENSA_NUM_THREADS", 1, kMaxThreads))
    return static_cast<int>(*n);
  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof(set), &set) == 0
                  ? CPU_COUNT(&set)
                  : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cores, 1, kMaxThreads);
}

class Pool {
 public:
  static Pool& get() { return *current().load(std::memory_order_acquire); }

  int num_threads() const { return num_threads_.load(std::memory_order_relaxed); }
  void set_num_threads(int n) { num_threads_.store(n, std::memory_order_relaxed); }

  void run(Job& job) {
    publish(job);
    job.work();
    wait_for_helpers(job);
    job.rethrow();
  }

 private:
  explicit Pool(int threads) : num_threads_(threads) {}

  // Never destroyed, since destructors of the program's own statics may still compute; the threads
  // are joined when the program exits.
  static std::atomic<Pool*>& current() {
    static std::atomic<Pool*>& pool = *[] {
      auto* made = new std::atomic<Pool*>(new Pool(threads_of_environment()));
      std::atexit([] { get().stop(); });
      at_fork(
          ForkOrder::inner, made, [](void*) { get().mutex_.lock(); },
          [](void*, bool in_child) {
            Pool& old = get();
            // The child has none of the threads, and nobody waits for the jobs.
            if (in_child) current().store(new Pool(old.num_threads()), std::memory_order_release);
            old.mutex_.unlock();
          });
      return made;
    }();
    return pool;
  }

  int wanted_helpers(const Job& job) const {
    return static_cast<int>(std::min<std::int64_t>(num_threads() - 1, job.pieces() - 1));
  }

  void publish(Job& job) {
    int sleepers;
    {
      std::lock_guard lock(mutex_);
      if (static_cast<int>(threads_.size()) < wanted_helpers(job))
        start_threads(wanted_helpers(job));
      jobs_.push_back(&job);
      open_jobs_.store(static_cast<int>(jobs_.size()), std::memory_order_release);
      sleepers = std::min(sleeping_, wanted_helpers(job));
    }
    for (int i = 0; i < sleepers; ++i) work_.notify_one();
  }

  // Until there are `count`, or the system gives no more: then those that there are do the work, at
  // the least the caller alone, and a later job asks again.
  void start_threads(int count) {
    auto now = std::chrono::steady_clock::now();
    if (now < next_try_) return;
    try {
      while (!stopping_ && static_cast<int>(threads_.size()) < count) {
        threads_.emplace_back([this] { serve(); });
      }
    } catch (const std::system_error&) {
      next_try_ = now + std::chrono::seconds(1);
    }
  }

  void wait_for_helpers(Job& job) {
    {
      std::lock_guard lock(mutex_);
      close(job);
    }
    auto done = [&job] { return job.helpers.load(std::memory_order_acquire) == 0; };
    bool seen = spin_until(done);
    // The last helper leaves under the mutex: only with it in hand is the job surely out of use.
    std::unique_lock lock(mutex_);
    if (seen) return;
    job.caller_sleeps = true;
    job.left.wait(lock, done);
  }

  void close(Job& job) {
    auto it = std::find(jobs_.begin(), jobs_.end(), &job);
    if (it != jobs_.end()) jobs_.erase(it);
    open_jobs_.store(static_cast<int>(jobs_.size()), std::memory_order_release);
  }

  // Joins the oldest open job that wants one more helper; null if there is none.
  Job* join() {
    for (Job* job : jobs_) {
      if (job->joined >= wanted_helpers(*job)) continue;
      ++job->joined;
      job->helpers.fetch_add(1, std::memory_order_relaxed);
      if (job->joined >= wanted_helpers(*job)) close(*job);
      return job;
    }
    return nullptr;
  }

  void leave(Job& job) {
    close(job);  // its pieces are all claimed
    if (job.helpers.fetch_sub(1, std::memory_order_release) == 1 && job.caller_sleeps) {
      job.left.notify_one();
    }
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (Job* job = join()) {
        lock.unlock();
        job->work();
        lock.lock();
        leave(*job);
        continue;
      }
      lock.unlock();
      bool found = spin_until([this] { return open_jobs_.load(std::memory_order_acquire) > 0; });
      lock.lock();
      if (found || stopping_ || !jobs_.empty()) continue;
      ++sleeping_;
      work_.wait(lock);
      --sleeping_;
    }
  }

  void stop() {
    std::vector<std::thread> threads;
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      threads.swap(threads_);
    }
    work_.notify_all();
    for (std::thread& thread : threads) {
      // A worker that calls exit cannot wait for itself.
      thread.get_id() != std::this_thread::get_id() ? thread.join() : thread.detach();
    }
  }

  std::atomic<int> num_threads_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::vector<Job*> jobs_;         // those that a worker may join
  std::atomic<int> open_jobs_{0};  // jobs_.size(), for spinning workers
  std::vector<std::thread> threads_;
  std::chrono::steady_clock::time_point next_try_{};  // to start a thread, after a failure
  int sleeping_ = 0;
  bool stopping_ = false;
};

}  // namespace

void parallel_for(std::int64_t n, std::int64_t grain, RangeFunction f) {
  grain = std::max<std::int64_t>(grain, 1);
  if (n <= grain) {
    if (n > 0) f(0, n);
    return;
  }
  if (inside_parallel_for || Pool::get().num_threads() == 1) return run_inline(n, grain, f);
  Job job(n, grain, f);
  Pool::get().run(job);
}

std::int64_t long_pieces(std::int64_t n, std::int64_t grain) {
  constexpr std::int64_t kPerThread = 4;
  return grain * std::max<std::int64_t>(1, n / (grain * kPerThread * get_num_threads()));
}

int get_num_threads() { return Pool::get().num_threads(); }

void set_num_threads(int n) {
  if (n < 1 || n > kMaxThreads) {
    throw ValueError(fmt::format("set_num_threads: {} is not in 1 to {}", n, kMaxThreads));
  }
  Pool::get().set_num_threads(n);
}

}  // namespace rensa
