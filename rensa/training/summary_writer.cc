// Event files: TFRecords of TensorFlow's message Event. The numbers of fields are those of its
// event.proto and summary.proto.
#include "rensa/training/summary_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <mutex>

#include "rensa/core/crc32c.h"
#include "rensa/core/error.h"
#include "rensa/core/utf8.h"
#include "rensa/serializers/protobuf.h"
#include "rensa/training/summary_writer_internal.h"

namespace rensa::training {

using serializers::ProtobufWriter;

// --- records ---

namespace {

static_assert(std::endian::native == std::endian::little, "numbers lie as in memory");

template <class T> void put(T number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// The checksum as records have it: one of what holds checksums itself would be weak.
std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = crc32c(bytes);
  return std::rotr(crc, 15) + 0xA282EAD8u;
}

}  // namespace

void RecordFile::add(std::string_view record) {
  std::string length;
  put(static_cast<std::uint64_t>(record.size()), &length);
  pending_ += length;
  put(masked_crc(length), &pending_);
  pending_ += record;
  put(masked_crc(record), &pending_);
}

void RecordFile::flush() {
  if (pending_.empty()) return;
  file_.append(pending_);
  pending_.clear();
}

// --- events ---

namespace {

constexpr std::size_t kBuffered = std::size_t{1} << 16;  // more is written at once

/// Fields of Event.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kGraphDef = 4, kSummary = 5,
              kSessionLog = 7;
/// Fields of Summary.Value.
constexpr int kTag = 1, kSimpleValue = 2, kImage = 4, kHisto = 5, kTensor = 8, kMetadata = 9;

ProtobufWriter new_event(std::int64_t step) {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  ProtobufWriter event;
  event.real64(kWallTime, std::chrono::duration<double>(now).count());
  event.integer(kStep, step);
  return event;
}

ProtobufWriter new_value(const std::string& tag) {
  ProtobufWriter value;
  value.bytes(kTag, valid_utf8(tag));
  return value;
}

ProtobufWriter event_of(const ProtobufWriter& value, std::int64_t step) {
  ProtobufWriter summary, event = new_event(step);
  summary.message(1, value);
  event.message(kSummary, summary);
  return event;
}

std::string new_path(const std::string& log_dir, const SummaryWriterOptions& options) {
  if (options.filename_suffix.find('/') != std::string::npos) {
    throw ValueError(
        fmt::format("SummaryWriter: a '/' in the filename_suffix \"{}\"", options.filename_suffix));
  }
  if (!(options.flush_secs >= 0)) {
    throw ValueError(
        fmt::format("SummaryWriter: flush_secs of {}; give 0 or more", options.flush_secs));
  }
  rensa::detail::make_folders(log_dir);
  char host[256] = "localhost";
  if (::gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  static std::atomic<int> count{0};
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}{}", log_dir,
                     std::chrono::duration_cast<std::chrono::seconds>(now).count(), host,
                     ::getpid(), count++, options.filename_suffix);
}

}  // namespace

struct SummaryWriter::State {
  State(const std::string& path, double seconds)
      : file(path), flush_secs(seconds), written(std::chrono::steady_clock::now()) {}
  ~State() {
    try {
      file.flush();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "SummaryWriter: %s\n", error.what());
    }
  }

  void add(const ProtobufWriter& event) {
    std::lock_guard lock(mutex);
    file.add(event.text());
    std::chrono::duration<double> since = std::chrono::steady_clock::now() - written;
    if (file.pending() > kBuffered || since.count() >= flush_secs) flush_locked();
  }
  void flush() {
    std::lock_guard lock(mutex);
    flush_locked();
  }
  void flush_locked() {
    file.flush();
    written = std::chrono::steady_clock::now();
  }

  RecordFile file;
  const double flush_secs;
  std::chrono::steady_clock::time_point written;
  std::mutex mutex;
};

SummaryWriter::SummaryWriter(const std::string& log_dir, const SummaryWriterOptions& options)
    : state_(std::make_shared<State>(new_path(log_dir, options), options.flush_secs)) {
  std::int64_t step = options.purge_step.value_or(0);
  ProtobufWriter version = new_event(step);
  version.bytes(kFileVersion, "brain.Event:2");
  state_->add(version);
  if (options.purge_step) {
    ProtobufWriter log, event = new_event(step);
    log.integer(1, 1);  // SessionLog.START
    event.message(kSessionLog, log);
    state_->add(event);
  }
  state_->flush();
}

const std::string& SummaryWriter::path() const { return state_->file.path(); }

void SummaryWriter::add_scalar(const std::string& tag, double number, std::int64_t step) const {
  ProtobufWriter value = new_value(tag);
  value.real(kSimpleValue, static_cast<float>(number));
  state_->add(event_of(value, step));
}

void SummaryWriter::add_scalar(const std::string& tag, const Array& value,
                               std::int64_t step) const {
  add_scalar(tag, value.item<double>(), step);
}

void SummaryWriter::add_histogram(const std::string& tag, const Array& values,
                                  std::int64_t step) const {
  ProtobufWriter value = new_value(tag);
  value.bytes(kHisto, histogram_message(values));
  state_->add(event_of(value, step));
}

void SummaryWriter::add_image(const std::string& tag, const Array& image, std::int64_t step,
                              const std::string& dataformats) const {
  ProtobufWriter value = new_value(tag);
  value.bytes(kImage, image_message(image, dataformats));
  state_->add(event_of(value, step));
}

void SummaryWriter::add_text(const std::string& tag, const std::string& text,
                             std::int64_t step) const {
  ProtobufWriter plugin, metadata, extent, shape, tensor, value = new_value(tag);
  plugin.bytes(1, "text");
  metadata.message(1, plugin);
  metadata.integer(4, 2);  // DATA_CLASS_TENSOR
  extent.integer(1, 1);
  shape.message(2, extent);
  tensor.integer(1, 7);  // DT_STRING
  tensor.message(2, shape);
  tensor.bytes(8, valid_utf8(text));
  value.message(kTensor, tensor);
  value.message(kMetadata, metadata);
  state_->add(event_of(value, step));
}

void SummaryWriter::add_graph(const computational_graph::ComputationalGraph& graph) const {
  ProtobufWriter event = new_event(0);
  event.bytes(kGraphDef, graph_message(graph));
  state_->add(event);
}

void SummaryWriter::flush() const { state_->flush(); }

}  // namespace rensa::training
