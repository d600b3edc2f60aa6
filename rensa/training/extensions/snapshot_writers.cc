// The writers of snapshots.
#include "rensa/training/extensions/snapshot_writers.h"

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace rensa::extensions::snapshot_writers {

namespace {

class SimpleBody final : public WriterBody {
 public:
  void write(std::function<void()> job) override { job(); }
  void finalize() override {}
};

/// A thread that is started by the first job and ends with the writer.
class ThreadBody final : public WriterBody {
 public:
  /// `one`: a new job waits until the one before is done.
  explicit ThreadBody(bool one) : one_(one) {}
  ~ThreadBody() override {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (error_) std::fputs("rensa: a snapshot could not be written, and nobody asked\n", stderr);
  }

  void write(std::function<void()> job) override {
    std::unique_lock lock(mutex_);
    if (one_) wait_for_all(lock);
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    jobs_.push_back(std::move(job));
    changed_.notify_all();
    throw_error();  // of an earlier job: this one is done all the same
  }

  void finalize() override {
    std::unique_lock lock(mutex_);
    wait_for_all(lock);
    throw_error();
  }

 private:
  void wait_for_all(std::unique_lock<std::mutex>& lock) {
    changed_.wait(lock, [this] { return jobs_.empty(); });
  }

  void throw_error() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  /// Does the jobs; one stays in the list until it is done.
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      std::function<void()> job = std::move(jobs_.front());
      lock.unlock();
      std::exception_ptr error;
      try {
        job();
      } catch (...) {
        error = std::current_exception();
      }
      job = nullptr;  // its memory goes before anybody hears that it is done
      lock.lock();
      jobs_.pop_front();
      if (!error_) error_ = error;
      changed_.notify_all();
    }
  }

  const bool one_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool ended_ = false;
  std::exception_ptr error_;  // the first that nobody has been told of
  std::thread thread_;
};

}  // namespace

SimpleWriter::SimpleWriter() : Writer(std::make_shared<SimpleBody>()) {}
ThreadWriter::ThreadWriter() : Writer(std::make_shared<ThreadBody>(true)) {}
ThreadQueueWriter::ThreadQueueWriter() : Writer(std::make_shared<ThreadBody>(false)) {}

}  // namespace rensa::extensions::snapshot_writers
