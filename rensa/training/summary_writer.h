// SummaryWriter: event files, which TensorBoard shows as curves, histograms, pictures, texts and
// graphs. PyTorch's name and calls.
//
//   training::SummaryWriter writer("runs/first");  // tensorboard --logdir runs
//   writer.add_scalar("loss", 0.5, step);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "rensa/array/array.h"
#include "rensa/autograd/computational_graph.h"

namespace rensa::training {

struct SummaryWriterOptions {
  rensa::detail::NamedOptions named = {};
  std::string filename_suffix = {};  // behind the file's name
  /// What was added is written by the next addition after that many seconds, at the latest.
  double flush_secs = 120;
  /// For a run that goes on in its folder: what earlier files have of this step and later ones is
  /// not shown.
  std::optional<std::int64_t> purge_step = {};
};

/// Writes one event file. A handle: copies share the file, and several threads may add. The tag
/// says under which name something is shown, "train/loss" in a group "train"; the step is its place
/// on the x axis. What is not UTF-8 in tags and texts becomes U+FFFD. Additions throw
/// SerializationError where they come to write and the file cannot be written; what they added is
/// kept and written by the next one that can.
class SummaryWriter {
 public:
  /// Makes the folder, and in it events.out.tfevents.<seconds>.<host>.<process>.<number><suffix>.
  /// Throws SerializationError, ValueError for a suffix with a '/' and a flush_secs below 0.
  explicit SummaryWriter(const std::string& log_dir, const SummaryWriterOptions& options = {});
  /// Of the file.
  const std::string& path() const;

  /// TensorBoard's numbers are float32.
  void add_scalar(const std::string& tag, double value, std::int64_t step = 0) const;
  /// An array of one element. Waits for the device. Throws ShapeError, DtypeError for a complex
  /// one.
  void add_scalar(const std::string& tag, const Array& value, std::int64_t step = 0) const;

  /// How the elements are distributed, in the buckets that PyTorch and TensorFlow have: 1e-12,
  /// 1.1e-12, 1.21e-12, ... and the same below 0. NaN and infinities are left out. Waits for the
  /// device. Throws DtypeError for complex elements.
  void add_histogram(const std::string& tag, const Array& values, std::int64_t step = 0) const;

  /// A picture of 1 (gray), 2 (gray, alpha), 3 (RGB) or 4 channels: uint8, or floats from 0 to 1
  /// (what lies outside is clipped, NaN is 0). `dataformats` says in which order its axes stand:
  /// "CHW", "HWC", or "HW" without channels. Waits for the device. Throws ShapeError, DtypeError,
  /// ValueError for other formats.
  void add_image(const std::string& tag, const Array& image, std::int64_t step = 0,
                 const std::string& dataformats = "CHW") const;

  /// TensorBoard shows it as Markdown.
  void add_text(const std::string& tag, const std::string& text, std::int64_t step = 0) const;

  /// What build_computational_graph({loss}) gives, functions as nodes and what they compute as
  /// edges; variables that no function has computed (parameters, inputs) are nodes too. A '/' in a
  /// name makes groups. A file shows one graph.
  void add_graph(const computational_graph::ComputationalGraph& graph) const;

  /// Writes what was added since the last time. The last copy does that too when it goes, and can
  /// then only say on stderr what went wrong. Throws SerializationError.
  void flush() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rensa::training
