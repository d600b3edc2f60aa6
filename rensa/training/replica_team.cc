// ReplicaTeam.
#include "rensa/training/replica_team.h"

#include <utility>

#include "rensa/core/thread_state.h"

namespace rensa::training {

struct ReplicaTeam::Shared {
  ThreadState state;
};

ReplicaTeam::ReplicaTeam(int size) : size_(size), shared_(std::make_unique<Shared>()) {
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
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
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
  changed_.notify_all();
  do_job(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return unfinished_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ReplicaTeam::work(int member) {
  for (std::int64_t seen = 0;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || jobs_ != seen; });
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
  changed_.notify_all();
}

void ReplicaTeam::barrier() {
  std::unique_lock lock(mutex_);
  std::int64_t passed = barriers_;
  if (++waiting_ == size_) {
    waiting_ = 0;
    ++barriers_;
    lock.unlock();
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&] { return barriers_ != passed || error_; });
  if (barriers_ == passed) throw Aborted();
}

}  // namespace rensa::training
