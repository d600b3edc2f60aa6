// MultithreadIterator: a queue of coming batches, whose elements threads fetch in order.
#include "rensa/data/multithread_iterator.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/fork.h"
#include "rensa/core/thread_pool.h"
#include "rensa/core/thread_state.h"
#include "rensa/data/batch_cursor.h"

namespace rensa::iterators {

namespace {

/// A batch that is being fetched. But for what a thread writes into the elements that it has
/// claimed, all is guarded by the fetcher's mutex.
struct Job {
  Job(Batch b, BatchCursor c)
      : batch(std::move(b)),
        behind(std::move(c)),
        examples(std::make_shared<std::vector<Columns>>(static_cast<std::size_t>(batch.size()))) {}
  Batch batch;
  BatchCursor behind;  // where the iterator is when this batch is handed out
  std::shared_ptr<std::vector<Columns>> examples;
  std::int64_t claimed = 0, done = 0;
  std::exception_ptr error;
  std::int64_t error_at = 0;
};

/// The threads and their queue.
class Fetcher {
 public:
  Fetcher(int n_threads, const ThreadState& state) : state_(state.snapshot()) {
    state_.reporter = nullptr;
    try {
      for (int i = 0; i < n_threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;  // else those that there are do the work
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Fetcher() { stop(); }
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // The iterator's thread alone adds and takes batches.
  std::int64_t size() const { return static_cast<std::int64_t>(jobs_.size()); }
  const Job& last() const { return *jobs_.back(); }

  void add(std::unique_ptr<Job> job) {
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    work_.notify_all();
  }

  /// The first batch, when all of it is there.
  std::unique_ptr<Job> take() {
    std::unique_lock lock(mutex_);
    const Job& first = *jobs_.front();
    progress_.wait(lock, [&] { return first.done == first.batch.size(); });
    std::unique_ptr<Job> job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
  }

  /// Drops all batches, and waits for the examples in work.
  void clear() {
    std::deque<std::unique_ptr<Job>> dropped;  // destroyed without the lock
    std::unique_lock lock(mutex_);
    for (auto& job : jobs_) job->claimed = job->batch.size();
    clearing_ = true;
    progress_.wait(lock, [this] { return busy_ == 0; });
    clearing_ = false;
    dropped.swap(jobs_);
    lock.unlock();
  }

 private:
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  /// The first batch with an element that nobody has claimed; null where there is none.
  Job* open_job() const {
    auto open = std::ranges::find_if(
        jobs_, [](const auto& job) { return job->claimed < job->batch.size(); });
    return open == jobs_.end() ? nullptr : open->get();
  }

  void work() {
    ThreadState::install(state_.snapshot());
    std::unique_lock lock(mutex_);
    for (;;) {
      Job* job = nullptr;
      work_.wait(lock, [&] { return stopping_ || (job = open_job()) != nullptr; });
      if (stopping_) return;
      std::int64_t k = job->claimed++;
      ++busy_;
      lock.unlock();
      std::exception_ptr error;
      try {
        (*job->examples)[static_cast<std::size_t>(k)] = job->batch.example(k);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      --busy_;
      ++job->done;
      if (error && (!job->error || k < job->error_at)) {
        std::swap(job->error, error);
        job->error_at = k;
      }
      if (job->done == job->batch.size() || (clearing_ && busy_ == 0)) progress_.notify_all();
    }
  }

  ThreadState state_;
  std::mutex mutex_;
  std::condition_variable work_, progress_;
  std::deque<std::unique_ptr<Job>> jobs_;
  int busy_ = 0;  // examples in work
  bool clearing_ = false, stopping_ = false;
  std::vector<std::thread> threads_;
};

/// Its cursor stands behind the batch that was handed out last.
class MultithreadBody final : public CursorBody {
 public:
  MultithreadBody(BatchCursor cursor, int n_threads, std::int64_t n_prefetch)
      : CursorBody(std::move(cursor)),
        n_threads_(n_threads ? n_threads : get_num_threads()),
        n_prefetch_(n_prefetch),
        state_(ThreadState::current().snapshot()) {}
  ~MultithreadBody() override { forget_after_fork(); }

  std::optional<Batch> next() override {
    if (cursor_.dataset().columns()) return cursor_.next();
    forget_after_fork();
    fill(1);
    if (!fetcher_ || fetcher_->size() == 0) return std::nullopt;
    try {
      fill(n_prefetch_ + 1);
    } catch (...) {
      // An order cannot be drawn: that is thrown when its first batch is asked for.
    }
    std::unique_ptr<Job> job = fetcher_->take();
    cursor_ = job->behind;
    if (job->error) std::rethrow_exception(job->error);
    return job->batch.with_examples(std::move(job->examples));
  }

  void reset() override {
    drop();
    cursor_.reset();
  }

  void members(Visitor& v) override {
    if (Visitor::Reading* file = v.reading()) file->then([this] { drop(); });
    cursor_.members(v);
  }

 private:
  /// Has `count` batches on their way, as far as there are so many.
  void fill(std::int64_t count) {
    while (!fetcher_ || fetcher_->size() < count) {
      BatchCursor ahead = fetcher_ && fetcher_->size() ? fetcher_->last().behind : cursor_;
      std::optional<Batch> batch = ahead.next();
      if (!batch) return;
      if (!fetcher_) {
        fetcher_ = std::make_unique<Fetcher>(n_threads_, state_);
        made_in_ = fork_generation();
      }
      fetcher_->add(std::make_unique<Job>(std::move(*batch), std::move(ahead)));
    }
  }

  void drop() {
    forget_after_fork();
    if (fetcher_) fetcher_->clear();
  }

  /// The child of a fork has none of the threads, and nobody to unlock what they held: it leaves
  /// the fetcher as it is, and makes another.
  void forget_after_fork() {
    if (fetcher_ && made_in_ != fork_generation()) static_cast<void>(fetcher_.release());
  }

  int n_threads_;
  std::int64_t n_prefetch_;
  ThreadState state_;
  int made_in_ = 0;  // of fork_generation(): the fetcher
  std::unique_ptr<Fetcher> fetcher_;
};

std::shared_ptr<IteratorBody> make_body(Dataset dataset, std::int64_t batch_size,
                                        MultithreadIteratorOptions options) {
  constexpr int kMaxThreads = 1024, kMaxPrefetch = 1 << 20;
  if (options.n_threads < 0 || options.n_threads > kMaxThreads || options.n_prefetch < 0 ||
      options.n_prefetch > kMaxPrefetch) {
    throw ValueError(fmt::format(
        "MultithreadIterator: {} threads and {} batches ahead; give 0 to {} threads, and 0 to {} "
        "batches",
        options.n_threads, options.n_prefetch, kMaxThreads, kMaxPrefetch));
  }
  BatchCursor cursor(
      "MultithreadIterator", std::move(dataset), batch_size,
      {options.repeat, options.shuffle, options.seed, std::move(options.order_sampler)});
  return std::make_shared<MultithreadBody>(std::move(cursor), options.n_threads,
                                           options.n_prefetch);
}

}  // namespace

MultithreadIterator::MultithreadIterator(Dataset dataset, std::int64_t batch_size,
                                         MultithreadIteratorOptions options)
    : Iterator(make_body(std::move(dataset), batch_size, std::move(options))) {}

}  // namespace rensa::iterators
