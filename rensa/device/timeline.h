// Timelines: what ran when, on the host's threads and on each stream of each GPU, with the names of
// the library's operations; as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open,
// and as a picture.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rensa/core/device.h"

namespace rensa::timeline {

/// What a record is of.
enum class Kind {
  operation,  // of the library: on the CPU its run, for a GPU the time that queuing it takes
  kernel,
  copy_to_device,
  copy_to_host,
  copy_on_device,  // also between devices
  memset,
  wait,   // of the host for a device
  range,  // of the program's own: Range
};

/// One thing that took time.
struct Record {
  Kind kind = Kind::operation;  // what it is of
  std::string name;             // what the picture calls it
  /// Since the timeline began. From Hopper on a kernel of ours begins while the one before ends,
  /// and then waits for it.
  std::int64_t begin_ns = 0, end_ns = 0;
  Device device;  // where: the CPU for what the host does
  /// A GPU's stream as the driver numbers them, or a host thread, from 1; 0: waits of the host.
  std::int64_t row = 0;
  std::string operation;   // the library's operation that queued it
  std::string detail;      // a kernel's full name
  std::int64_t bytes = 0;  // copied or set
};

struct Options {
  bool gpus = true;  // record what GPUs do (CUPTI); false: only the host
};

/// A timeline in progress; one at a time in a process. When it ends, the trace is written.
class [[nodiscard]] Timeline {
 public:
  /// Starts. `path` may be "": nothing is written then. Throws ValueError while another one runs.
  [[nodiscard]] explicit Timeline(std::string path, Options options = {});
  /// stop(), under ForbidSync too; an error is only printed.
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Ends the timeline, writes the trace, returns what it holds. Waits for the GPUs that have
  /// worked. Throws SerializationError where the file cannot be written. A second call only
  /// returns.
  const std::vector<Record>& stop();
  /// Why the GPUs are not in it ("CUPTI was not found in ..."); empty when they are, or there are
  /// none.
  const std::string& note() const { return note_; }

 private:
  void end(bool wait);

  std::string path_, note_;
  bool running_ = false;
  std::vector<Record> records_;
};

/// `auto trace = timeline::record("trace.json");` The environment variable
/// RENSA_TIMELINE=trace.json records from the first operation to the end of the program.
inline Timeline record(std::string path, Options options = {}) {
  return Timeline(std::move(path), options);
}
/// Whether a timeline is in progress.
bool is_recording();

/// A part of the program, named in the timeline of its thread for a scope. Costs a load when
/// nothing is recorded.
class [[nodiscard]] Range {
 public:
  [[nodiscard]] explicit Range(std::string name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  std::string name_;
  std::int64_t begin_ns_ = -1;
};

/// The trace as a file of Chrome's format. Throws SerializationError where it cannot be written.
void write(const std::vector<Record>& records, const std::string& path);
/// The complete events of such a file, this library's or another's. Throws SerializationError.
std::vector<Record> read(const std::string& path);

struct DrawOptions {
  int width = 1200;                // pixels
  double from_ms = 0, to_ms = -1;  // what part to show; -1: to the end
  std::string title{};             // in the picture's head
};
/// Draws a picture (SVG): a row for each thread and each stream, bars coloured by kind, names where
/// they fit, an axis in ms, a legend. Throws SerializationError where the file cannot be written.
void draw(const std::vector<Record>& records, const std::string& picture,
          const DrawOptions& options = {});
/// As draw(read(trace), picture).
void draw(const std::string& trace, const std::string& picture, const DrawOptions& options = {});

}  // namespace rensa::timeline
