// Who writes a snapshot's file: the thread of the training loop, or one beside it.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace rensa::extensions::snapshot_writers {

/// What a writer does, behind the handles.
class WriterBody {
 public:
  virtual ~WriterBody() = default;
  virtual void write(std::function<void()> job) = 0;  // runs the job, now or later
  virtual void finalize() = 0;                        // waits for the jobs that are not done
};

/// A handle to what writes snapshots.
class Writer {
 public:
  explicit Writer(std::shared_ptr<WriterBody> body) : body_(std::move(body)) {}
  /// Does `job`, which writes one file, now or later. Throws what an earlier one has thrown.
  void operator()(std::function<void()> job) const { body_->write(std::move(job)); }
  /// Waits until all is written. Throws what a job has thrown.
  void finalize() const { body_->finalize(); }

 private:
  std::shared_ptr<WriterBody> body_;
};

/// Writes at once.
class SimpleWriter : public Writer {
 public:
  SimpleWriter();
};

/// Writes in a thread, one file at a time: the next snapshot waits for the one before.
class ThreadWriter : public Writer {
 public:
  ThreadWriter();
};

/// Writes in a thread, one file after the other: no snapshot waits, and those that are to be
/// written yet are in memory.
class ThreadQueueWriter : public Writer {
 public:
  ThreadQueueWriter();
};

}  // namespace rensa::extensions::snapshot_writers
