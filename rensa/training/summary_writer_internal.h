// Parts of SummaryWriter: a file of records, and the messages that are longer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/autograd/computational_graph.h"
#include "rensa/core/files.h"

namespace rensa::training {

/// A file of TFRecords: each has its length, the bytes, and a checksum of either.
class RecordFile {
 public:
  explicit RecordFile(std::string path) : file_(std::move(path)) {}
  const std::string& path() const { return file_.name(); }
  /// To be written by flush().
  void add(std::string_view record);
  /// Writes all records or none: those stay. Throws SerializationError.
  void flush();
  std::size_t pending() const { return pending_.size(); }

 private:
  FileAppender file_;
  std::string pending_;
};

/// The right ends of the buckets that lie between the least and the greatest double.
const std::vector<double>& histogram_limits();
/// A HistogramProto. Waits for the device.
std::string histogram_message(const Array& values);
/// A Summary.Image.
std::string image_message(const Array& image, const std::string& dataformats);
/// A GraphDef.
std::string graph_message(const computational_graph::ComputationalGraph& graph);

}  // namespace rensa::training
