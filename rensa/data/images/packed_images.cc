// Files of packed pictures, written and mapped.
#include "rensa/data/images/packed_images.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/thread_state.h"
#include "rensa/data/images/image_labels.h"
#include "rensa/data/images/packed_index.h"

namespace rensa::datasets {

namespace {

std::string file_name(const std::string& prefix, std::size_t number) {
  return fmt::format("{}-{:05}.images", prefix, number);
}

/// Writes one file after the other.
class Packer {
 public:
  Packer(std::string prefix, const PackImagesOptions& options)
      : prefix_(std::move(prefix)), options_(options) {}

  void add(std::string_view picture, std::int64_t label) {
    if (file_ && at_ + picture.size() > static_cast<std::uint64_t>(options_.max_file_bytes)) {
      close(false);
    }
    if (!file_) begin();
    index_.entries.push_back({at_, picture.size(), label, packed_sum(picture)});
    write(picture);
  }

  std::vector<std::string> finish() {
    close(true);
    return std::move(paths_);
  }

 private:
  void begin() {
    index_ = {};
    index_.classes = options_.classes;
    index_.number = static_cast<std::uint32_t>(paths_.size());
    paths_.push_back(file_name(prefix_, paths_.size()));
    file_.emplace(paths_.back());
    at_ = 0;
    write(packed_header());
  }
  void write(std::string_view bytes) {
    file_->write(bytes);
    at_ += bytes.size();
  }
  void close(bool is_last) {
    index_.is_last = is_last;
    file_->write(packed_end(index_, at_));
    file_->finish();
    file_.reset();
  }

  std::string prefix_;
  const PackImagesOptions& options_;
  std::optional<FileWriter> file_;
  std::uint64_t at_ = 0;
  PackedIndex index_;
  std::vector<std::string> paths_;
};

/// A mapped file and its index.
struct PackedFile {
  explicit PackedFile(const std::string& path)
      : path(path),
        mapping(std::make_unique<FileMapping>(path, FileMapping::Mode::read)),
        index(read_packed_index(bytes(), path)) {}
  std::string_view bytes() const { return {mapping->data(), mapping->size()}; }
  std::string path;
  std::unique_ptr<FileMapping> mapping;
  PackedIndex index;
};

/// All files of a set.
std::vector<PackedFile> open_files(const std::string& prefix) {
  std::vector<PackedFile> files;
  do {
    const PackedFile& file = files.emplace_back(file_name(prefix, files.size()));
    if (file.index.number != files.size() - 1 || file.index.classes != files[0].index.classes) {
      throw SerializationError(
          fmt::format("{}: it is of another set than {}", file.path, file_name(prefix, 0)));
    }
  } while (!files.back().index.is_last);
  return files;
}

/// The pictures of all files, one behind the other.
class PackedBody final : public DatasetBody {
 public:
  PackedBody(std::vector<PackedFile> files, ImageDatasetOptions options)
      : files_(std::move(files)), options_(std::move(options)), dtype_(get_dtype(options_.dtype)) {
    std::vector<std::int64_t> labels;
    for (std::size_t f = 0; f < files_.size(); ++f) {
      for (const PackedIndex::Entry& entry : files_[f].index.entries) {
        places_.emplace_back(static_cast<std::uint32_t>(f),
                             static_cast<std::uint32_t>(&entry - files_[f].index.entries.data()));
        labels.push_back(entry.label);
      }
    }
    labels_ = image_labels("PackedImageDataset", labels, options_.label_dtype);
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(places_.size()); }
  Columns example(std::int64_t i, std::uint64_t) const override {
    auto [f, number] = places_[static_cast<std::size_t>(i)];
    const PackedFile& file = files_[f];
    const PackedIndex::Entry& entry = file.index.entries[number];
    std::string_view bytes = packed_picture(file.bytes(), entry, file.path);
    std::string name = fmt::format("{}: picture {} at byte {}", file.path, number, entry.offset);
    Array image = images::decode_image(bytes, name, options_.read);
    return {image.dtype() == dtype_ ? image : image.astype(dtype_), labels_[i]};
  }

 private:
  std::vector<PackedFile> files_;
  ImageDatasetOptions options_;
  Dtype dtype_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places_;  // file, and picture in it
  Array labels_;
};

}  // namespace

std::vector<std::string> pack_images(const std::vector<LabeledPath>& pairs,
                                     const std::string& prefix, const PackImagesOptions& options) {
  if (pairs.empty() || options.max_file_bytes < 1) {
    throw ValueError(fmt::format("pack_images: {} pictures into files of up to {} bytes",
                                 pairs.size(), options.max_file_bytes));
  }
  auto classes = static_cast<std::int64_t>(options.classes.size());
  for (const auto& [path, label] : pairs) {
    if (classes == 0 || (label >= 0 && label < classes)) continue;
    throw ValueError(
        fmt::format("pack_images: the label {} of {}, of {} classes", label, path, classes));
  }
  Packer packer(prefix, options);
  for (const auto& [path, label] : pairs) {
    std::string from = (std::filesystem::path(options.root) / path).string();
    std::string bytes = rensa::detail::read_whole_file(from);
    images::decode_image(bytes, from, {.min_size = 1});  // throws where it cannot be read
    packer.add(bytes, label);
  }
  return packer.finish();
}

PackedImageDataset::PackedImageDataset(const std::string& prefix, ImageDatasetOptions options)
    : PackedImageDataset(open(prefix, std::move(options))) {}

PackedImageDataset::Opened PackedImageDataset::open(const std::string& prefix,
                                                    ImageDatasetOptions options) {
  std::vector<PackedFile> files = open_files(prefix);
  std::vector<std::string> classes = files[0].index.classes;
  return {std::make_shared<PackedBody>(std::move(files), std::move(options)), std::move(classes)};
}

}  // namespace rensa::datasets
