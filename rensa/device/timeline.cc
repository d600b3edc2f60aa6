// Making timelines.
#include "rensa/device/timeline.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "rensa/communication/launch_environment.h"
#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/devices.h"
#include "rensa/device/timeline_ranks.h"
#include "rensa/device/timeline_span.h"

namespace rensa::timeline {

constinit std::atomic<State> state{State::asking};

namespace {

/// The timeline in progress. Threads add to it while it is on.
struct Session {
  std::mutex mutex;
  std::int64_t start_ns = 0;  // by the clock that records have
  std::int64_t began_ns = 0;  // the same moment, since 1970
  std::vector<Record> records;
  std::unordered_map<std::uint64_t, std::string> names;  // of operations queued on GPUs
  std::array<bool, kMaxGpus> used{};
  std::atomic<ActivitySource*> gpus{nullptr};  // while they are listened to

  static Session& instance() {
    static auto* session = new Session;  // a program may end in the middle of one
    return *session;
  }
};

std::mutex& state_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::int64_t thread_row() {
  static std::atomic<std::int64_t> last{0};
  thread_local const std::int64_t mine = ++last;
  return mine;
}

Timeline*& to_the_end() {
  static Timeline* timeline = nullptr;
  return timeline;
}

/// "trace.rank1.json" for one of several processes, each of which writes a file of its own.
std::string path_of_process(const std::string& path) {
  auto launched = communication::launch_environment();
  if (!launched || launched->size == 1) return path;
  return path_of_rank(path, launched->rank);
}

void finish_at_exit() { delete std::exchange(to_the_end(), nullptr); }

void begin(Session& session, std::string& note, Options options) {
  session.records.clear();
  session.names.clear();
  session.used.fill(false);
  session.start_ns = now_ns();
  session.began_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  session.gpus = options.gpus && num_gpus() > 0 ? start_activity_source(note) : nullptr;
}

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool look() {
  if (state.load(std::memory_order_acquire) != State::asking) return is_recording();
  std::optional<std::string> path;
  {
    std::lock_guard<std::mutex> hold(state_mutex());
    if (state.load(std::memory_order_relaxed) != State::asking) return is_recording();
    path = environment::text("RENSA_TIMELINE");
    state.store(State::off, std::memory_order_release);
  }
  if (!path) return false;
  try {
    to_the_end() = new Timeline(path_of_process(*path));
    // Registered after the CUDA runtime's own: the GPUs' part is fetched before that is gone.
    std::atexit(finish_at_exit);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "RENSA_TIMELINE: %s\n", error.what());
  }
  return is_recording();
}

bool is_recording() { return state.load(std::memory_order_acquire) == State::on; }

std::uint64_t begin_operation(Device device) {
  static std::atomic<std::uint64_t> last{0};
  std::uint64_t id = ++last;
  if (device.is_cuda()) {
    if (ActivitySource* gpus = Session::instance().gpus.load()) gpus->push(id);
  }
  return id;
}

void end_operation(std::uint64_t id, Kind kind, const char* name, Device device,
                   std::int64_t begin_ns) {
  std::int64_t end_ns = now_ns();
  Session& session = Session::instance();
  ActivitySource* gpus = device.is_cuda() ? session.gpus.load() : nullptr;
  if (gpus) gpus->pop();
  std::lock_guard<std::mutex> hold(session.mutex);
  if (!is_recording()) return;
  if (device.is_cuda()) {
    session.used[static_cast<std::size_t>(device.index)] = true;
    if (gpus) session.names.emplace(id, name);
  }
  Record record;
  record.kind = kind;
  record.name = name;
  record.begin_ns = std::max<std::int64_t>(begin_ns - session.start_ns, 0);
  record.end_ns = end_ns - session.start_ns;
  record.row = thread_row();
  session.records.push_back(std::move(record));
}

Timeline::Timeline(std::string path, Options options) : path_(std::move(path)) {
  std::lock_guard<std::mutex> hold(state_mutex());
  if (is_recording()) {
    throw ValueError("timeline: one is in progress already; only one runs at a time");
  }
  if (!path_.empty()) write({}, path_);  // a path that cannot be written is known now
  Session& session = Session::instance();
  {
    std::lock_guard<std::mutex> records(session.mutex);
    begin(session, note_, options);
  }
  running_ = true;
  state.store(State::on, std::memory_order_release);
}

const std::vector<Record>& Timeline::stop() {
  if (running_) end(true);
  return records_;
}

void Timeline::end(bool wait) {
  std::lock_guard<std::mutex> hold(state_mutex());
  Session& session = Session::instance();
  for (int i = 0; i < kMaxGpus; ++i) {
    if (!wait || !session.used[static_cast<std::size_t>(i)]) continue;
    cuda::count_sync("timeline: Timeline.stop");
    cuda::runtime::synchronize_device(gpu(i));
  }
  running_ = false;
  ActivitySource* gpus;
  std::unordered_map<std::uint64_t, std::string> names;
  {
    std::lock_guard<std::mutex> records(session.mutex);
    state.store(State::off, std::memory_order_release);
    records_ = std::move(session.records);
    names = std::move(session.names);
    gpus = session.gpus.exchange(nullptr);
  }
  if (gpus) {
    for (ActivitySource::Activity& activity : gpus->finish()) {
      Record& record = activity.record;
      record.begin_ns -= session.start_ns;
      record.end_ns -= session.start_ns;
      if (record.begin_ns < 0) continue;  // queued before it began
      if (auto found = names.find(activity.operation_id); found != names.end()) {
        record.operation = found->second;
      }
      records_.push_back(std::move(record));
    }
  }
  if (!path_.empty()) write(records_, path_, session.began_ns);
}

Timeline::~Timeline() {
  // In the middle of a capture nothing can be waited for: what GPUs have not done yet is left out.
  for (bool wait : {true, false}) {
    if (!running_) return;
    try {
      cuda::AllowSync allowed;
      end(wait);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "timeline: %s\n", error.what());
    }
  }
}

Range::Range(std::string name) : name_(std::move(name)) {
  if (state.load(std::memory_order_relaxed) != State::off && look()) begin_ns_ = now_ns();
}

Range::~Range() {
  if (begin_ns_ >= 0) end_operation(0, Kind::range, name_.c_str(), cpu(), begin_ns_);
}

}  // namespace rensa::timeline
