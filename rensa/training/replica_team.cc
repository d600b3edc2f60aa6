// ReplicaTeam.
#include "rensa/training/replica_team.h"

#include <chrono>
#include <utility>

#include "rensa/core/thread_pool.h"
#include "rensa/core/thread_state.h"

namespace rensa::training {

struct ReplicaTeam::Shared {
  ThreadState state;
};

// Spinning is for machines with cores to spare: the members' own, and as many for what they start.
ReplicaTeam::ReplicaTeam(int size)
    : size_(size), spins_(get_num_threads() >= 2 * size), shared_(std::make_unique<Shared>()) {
  try {
    for (int member = 1; member < size; ++member) {
      threads_.emplace_back([this, member] { work(member); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

ReplicaTeam::~ReplicaTeam() { stop(); }

void ReplicaTeam::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  notify();
  for (std::thread& thread : threads_) thread.join();
}

void ReplicaTeam::notify() {
  changes_.fetch_add(1, std::memory_order_release);
  changed_.notify_all();
}

template <class Done> void ReplicaTeam::wait(std::unique_lock<std::mutex>& lock, Done done) {
  using Clock = std::chrono::steady_clock;
  auto patience = Clock::now() + std::chrono::microseconds(200);
  while (!done()) {
    if (!spins_ || Clock::now() >= patience) {
      changed_.wait(lock);
      continue;
    }
    std::int64_t seen = changes_.load(std::memory_order_acquire);
    lock.unlock();
    while (changes_.load(std::memory_order_acquire) == seen && Clock::now() < patience) {}
    lock.lock();
  }
}

void ReplicaTeam::run(const std::function<void(int)>& job) {
  {
    std::lock_guard lock(mutex_);
    shared_->state = ThreadState::current().snapshot();
    shared_->state.reporter = nullptr;
    job_ = &job;
    unfinished_ = size_;
    waiting_ = 0;
    error_ = nullptr;
    ++jobs_;
  }
  notify();
  do_job(0);
  std::unique_lock lock(mutex_);
  wait(lock, [&] { return unfinished_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ReplicaTeam::work(int member) {
  for (std::int64_t seen = 0;;) {
    {
      std::unique_lock lock(mutex_);
      wait(lock, [&] { return stopping_ || jobs_ != seen; });
      if (stopping_) return;
      seen = jobs_;
      ThreadState::install(shared_->state.snapshot());
    }
    do_job(member);
  }
}

void ReplicaTeam::do_job(int member) {
  std::exception_ptr error;
  try {
    (*job_)(member);
  } catch (const Aborted&) {
  } catch (...) {
    error = std::current_exception();
  }
  {
    std::lock_guard lock(mutex_);
    if (error && !error_) error_ = std::move(error);
    --unfinished_;
  }
  notify();
}

void ReplicaTeam::barrier() {
  std::unique_lock lock(mutex_);
  std::int64_t passed = barriers_;
  if (++waiting_ == size_) {
    waiting_ = 0;
    ++barriers_;
    lock.unlock();
    notify();
    return;
  }
  wait(lock, [&] { return barriers_ != passed || error_; });
  if (barriers_ == passed) throw Aborted();
}

}  // namespace rensa::training
