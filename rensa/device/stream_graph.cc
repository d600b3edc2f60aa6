// Capturing a stream's work at the level of streams: Capture, Graph and the functions of Stream for
// them. The rules that keep memory safe:
// - what is allocated meanwhile comes from a pool that the graph owns and that gives nothing back
//   before the graph ends; a block freed meanwhile serves again only on its own stream, whose order
//   the graph keeps;
// - arrays from elsewhere that the work touches, and the operations, are kept by the graph;
// - operations get scratch of the graph's own;
// - other pools order frees behind what was queued before (StreamState::order_handle).
#include "rensa/device/stream_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/device_state.h"
#include "rensa/device/launcher.h"
#include "rensa/device/stream_capture.h"
#include "rensa/device/timeline_span.h"

namespace rensa::cuda {

namespace {

/// The device's memory for a pool that records: no event may be recorded on a stream that is being
/// captured, so a block that several streams use stays theirs until the capture is over.
class CaptureSource final : public MemorySource {
 public:
  CaptureSource(std::unique_ptr<MemorySource> source, std::shared_ptr<std::atomic<bool>> capturing)
      : source_(std::move(source)), capturing_(std::move(capturing)) {}

  void* allocate(std::int64_t nbytes) override { return source_->allocate(nbytes); }
  void free(void* data) noexcept override { source_->free(data); }
  void* record(StreamState* stream) override {
    return *capturing_ ? capturing_.get() : source_->record(stream);
  }
  bool is_done(void* ticket) override {
    return ticket == capturing_.get() ? !*capturing_ : source_->is_done(ticket);
  }
  void discard(void* ticket) noexcept override {
    if (ticket != capturing_.get()) source_->discard(ticket);
  }
  /// Within the capture by an edge of the graph: what had a block before is part of it as well.
  bool order(StreamState* earlier, StreamState* later) override {
    if (!later->capture()) return source_->order(earlier, later);
    if (earlier->capture() != later->capture()) return false;
    order_handles(earlier->device(), earlier->handle(), later->handle());
    return true;
  }
  void poison(void*, std::int64_t, StreamState*) noexcept override {}  // it would be recorded
  void synchronize() override {
    if (!*capturing_) source_->synchronize();
  }
  std::int64_t capacity() override { return source_->capacity(); }

 private:
  std::unique_ptr<MemorySource> source_;
  std::shared_ptr<std::atomic<bool>> capturing_;
};

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// The calling thread's capture; one that is never ended ends with the thread.
std::unique_ptr<Capture>& slot() {
  thread_local std::unique_ptr<Capture> capture;
  return capture;
}

std::unique_ptr<MemoryPool> capture_pool(Device device,
                                         std::shared_ptr<std::atomic<bool>> capturing) {
  auto pool = std::make_unique<MemoryPool>(
      device,
      std::make_unique<CaptureSource>(runtime::device_source(device), std::move(capturing)));
  pool->set_name("graph");
  pool->set_caching(true);
  pool->set_poison(false);
  pool->set_retaining(true);
  return pool;
}

constexpr std::int64_t kSemaphoreBytes = kSemaphores * sizeof(unsigned int);

}  // namespace

// --- Capture ---

Capture::Capture(std::shared_ptr<StreamState> stream)
    : id_(next_id()),
      capturing_(std::make_shared<std::atomic<bool>>(true)),
      pool_(capture_pool(stream->device(), capturing_)),
      streams_{std::move(stream)} {
  StreamState& first = *streams_.front();
  runtime::set_device(first.device());
  StoragePtr semaphores = pool_->malloc(kSemaphoreBytes, &first);
  runtime::zero_async(semaphores->data(), kSemaphoreBytes, first.handle());
  kept_.push_back(semaphores);  // a launch on another stream comes after they are zeroed
  scratch_[&first].semaphores = std::move(semaphores);
  first.enter_capture(this);
  try {
    runtime::begin_capture(first.handle());
  } catch (...) {
    first.leave_capture();
    throw;
  }
  allocations_.emplace(*pool_);
}

Capture::~Capture() {
  if (!*capturing_) return;
  try {
    runtime::destroy_graph(runtime::end_capture(stream()->handle()), nullptr);
  } catch (...) {
    // What was recorded is broken, and of no interest.
  }
  leave();
}

Capture* Capture::current() { return slot().get(); }

void* Capture::end() {
  void* graph;
  try {
    graph = runtime::end_capture(stream()->handle());
  } catch (...) {
    leave();
    throw;
  }
  leave();
  return graph;
}

void Capture::give_calls(void* graph) {
  for (auto& call : calls_) {
    HostCall* given = call.release();
    runtime::give_to_graph(graph, given,
                           [](void* object) { delete static_cast<HostCall*>(object); });
  }
  calls_.clear();
}

void Capture::leave() noexcept {
  for (const auto& stream : streams_) stream->leave_capture();
  allocations_.reset();
  *capturing_ = false;
}

void Capture::join(const std::shared_ptr<StreamState>& stream, void* event) {
  runtime::set_device(stream->device());
  if (stream->capture() == this) {
    runtime::wait_event(stream->handle(), event);
    return;
  }
  if (stream->device() != this->stream()->device()) {
    throw DeviceError(fmt::format("wait: a stream of {} cannot join a capture on {}",
                                  stream->device().str(), this->stream()->device().str()));
  }
  stream->enter_capture(this);
  streams_.push_back(stream);
  runtime::wait_event(stream->handle(), event);
}

Capture::Scratch& Capture::scratch_of(StreamState* stream) {
  Scratch& scratch = scratch_[stream];
  if (!scratch.semaphores) {  // a stream that has joined: its graph zeroes them in each launch
    scratch.semaphores = pool_->malloc(kSemaphoreBytes, stream);
    runtime::zero_async(scratch.semaphores->data(), kSemaphoreBytes, stream->handle());
  }
  return scratch;
}

LaunchContext Capture::context(StreamState* stream, std::size_t workspace_bytes) {
  Device device = stream->device();
  runtime::set_device(device);
  Scratch& scratch = scratch_of(stream);
  auto wanted = static_cast<std::int64_t>(workspace_bytes);
  if (wanted > 0 && (!scratch.workspace || scratch.workspace->nbytes() < wanted)) {
    // The smaller one goes back to the graph's pool: whoever gets it comes later on this stream.
    scratch.workspace = pool_->malloc(wanted, stream);
  }
  return {device,
          stream,
          stream->handle(),
          wanted > 0 ? scratch.workspace->data() : nullptr,
          workspace_bytes,
          reinterpret_cast<unsigned int*>(scratch.semaphores->data()),
          device_state(device).error_word_on_device};
}

void Capture::keep(Operation& operation) {
  class Keeper final : public OperandVisitor {
   public:
    explicit Keeper(Capture& capture) : capture_(capture) {}
    void read(Operand& operand) override { see(operand); }
    void write(Operand& operand) override { see(operand); }

   private:
    void see(const Operand& operand) {
      Storage* storage = operand.storage;
      if (capture_.pool_->owns(storage) || !capture_.known_.insert(storage).second) return;
      capture_.kept_.emplace_back(storage);
    }
    Capture& capture_;
  };
  Keeper keeper(*this);
  operation.visit(keeper);
  operations_.push_back(operation.clone());
}

// --- Stream ---

void Stream::begin_capture() const {
  if (handle() == runtime::legacy_stream()) {
    throw ValueError(
        "begin_capture: the legacy stream cannot be captured; take a stream of one's "
        "own, non_blocking at best");
  }
  if (Capture::current()) {
    throw ValueError("begin_capture: this thread is capturing already; end_capture() comes first");
  }
  if (state_->capture()) {
    throw ValueError("begin_capture: another thread is capturing this stream");
  }
  if (Recorder* recorder = ThreadState::current().recorder) {
    recorder->cannot_record("begin_capture");
  }
  slot() = std::make_unique<Capture>(state_);
}

void Stream::abort_capture() const noexcept {
  if (Capture* capture = Capture::current(); capture && capture->stream() == state()) {
    slot().reset();
  }
}

bool Stream::is_capturing() const {
  runtime::set_device(device());
  return runtime::stream_capturing(handle());
}

// --- Graph ---

struct Graph::Impl {
  Device device;
  std::unique_ptr<Capture> belongings;
  void* graph = nullptr;
  void* executable = nullptr;
  ~Impl() { runtime::destroy_graph(graph, executable); }
};

Graph Stream::end_capture() const {
  Capture* capture = Capture::current();
  if (!capture || capture->stream() != state()) {
    throw ValueError("end_capture: this thread has not begun a capture of this stream");
  }
  Graph graph;
  graph.impl_ = std::make_shared<Graph::Impl>();
  graph.impl_->device = device();
  graph.impl_->belongings = std::move(slot());
  graph.impl_->graph = graph.impl_->belongings->end();
  graph.impl_->belongings->give_calls(graph.impl_->graph);
  graph.impl_->executable = runtime::instantiate_graph(graph.impl_->graph);
  return graph;
}

const Graph::Impl& Graph::impl() const {
  if (!impl_) throw ValueError("this Graph is empty; Stream::end_capture makes one");
  return *impl_;
}

void Graph::launch(const Stream& stream) const {
  const Impl& graph = impl();
  if (stream.device() != graph.device) {
    throw DeviceError(fmt::format("launch: the graph was recorded on {}, the stream is of {}",
                                  graph.device.str(), stream.device().str()));
  }
  runtime::set_device(graph.device);
  for (const StoragePtr& storage : graph.belongings->kept()) storage->use_on(stream.state());
  timeline::Span span(timeline::Kind::operation, "Graph.launch", graph.device);
  runtime::launch_graph(graph.executable, stream.handle());
}

void Graph::launch() const { launch(current_stream(impl().device)); }

void Graph::upload(const Stream& stream) const {
  const Impl& graph = impl();
  runtime::set_device(graph.device);
  runtime::upload_graph(graph.executable, stream.handle());
}

std::size_t Graph::num_nodes() const { return runtime::graph_nodes(impl().graph); }
std::int64_t Graph::memory_bytes() const { return impl().belongings->pool().total_bytes(); }
std::string Graph::debug_dot() const { return runtime::graph_dot(impl().graph); }
void* Graph::handle() const { return impl().executable; }

}  // namespace rensa::cuda
