// Pictures in files.
#include "rensa/data/images/image_datasets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/thread_state.h"
#include "rensa/data/images/image_labels.h"

namespace rensa::datasets {

namespace {

namespace fs = std::filesystem;

/// Pictures, and labels where they are defined.
class ImageBody final : public DatasetBody {
 public:
  ImageBody(std::vector<std::string> paths, Array labels, ImageDatasetOptions options)
      : paths_(std::move(paths)),
        labels_(std::move(labels)),
        options_(std::move(options)),
        dtype_(get_dtype(options_.dtype)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(paths_.size()); }
  Columns example(std::int64_t i, std::uint64_t) const override {
    fs::path path = fs::path(options_.root) / paths_[static_cast<std::size_t>(i)];
    Array image = images::read_image(path.string(), options_.read);
    if (image.dtype() != dtype_) image = image.astype(dtype_);
    if (!labels_.defined()) return {image};
    return {image, labels_[i]};
  }

 private:
  std::vector<std::string> paths_;
  Array labels_;
  ImageDatasetOptions options_;
  Dtype dtype_;
};

std::shared_ptr<const DatasetBody> labeled(const char* dataset, std::vector<LabeledPath> pairs,
                                           ImageDatasetOptions options) {
  std::vector<std::string> paths;
  std::vector<std::int64_t> labels;
  for (auto& [path, label] : pairs) {
    paths.push_back(std::move(path));
    labels.push_back(label);
  }
  Array column = image_labels(dataset, labels, options.label_dtype);
  return std::make_shared<ImageBody>(std::move(paths), column, std::move(options));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\v\f";
  std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

/// Calls each(number, line) for the lines of a file that are not blank.
void for_each_line(const std::string& file,
                   const std::function<void(std::int64_t, std::string_view)>& each) {
  std::string text = rensa::detail::read_whole_file(file);
  std::string_view left = text;
  for (std::int64_t number = 1; !left.empty(); ++number) {
    std::size_t end = left.find('\n');
    std::string_view line = trimmed(left.substr(0, end));
    if (!line.empty()) each(number, line);
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
  }
}

std::vector<std::string> read_paths(const std::string& file) {
  std::vector<std::string> paths;
  for_each_line(file, [&](std::int64_t, std::string_view line) { paths.emplace_back(line); });
  return paths;
}

std::vector<LabeledPath> read_pairs(const std::string& file) {
  std::vector<LabeledPath> pairs;
  for_each_line(file, [&](std::int64_t number, std::string_view line) {
    std::size_t space = line.find_last_of(" \t");
    std::string_view path, label = line;
    if (space != std::string_view::npos) {
      path = trimmed(line.substr(0, space));
      label = line.substr(space + 1);
    }
    std::int64_t value = 0;
    auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), value);
    if (path.empty() || error != std::errc() || end != label.data() + label.size()) {
      throw SerializationError(
          fmt::format("{}:{}: no path and label: \"{}\"", file, number, line.substr(0, 200)));
    }
    pairs.emplace_back(path, value);
  });
  return pairs;
}

bool is_picture(const fs::path& path) {
  std::string end = path.extension().string();
  std::ranges::transform(end, end.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return end == ".jpg" || end == ".jpeg" || end == ".png";
}

}  // namespace

ImageDataset::ImageDataset(std::vector<std::string> paths, ImageDatasetOptions options)
    : Dataset(std::make_shared<ImageBody>(std::move(paths), Array(), std::move(options))) {}

ImageDataset::ImageDataset(const std::string& list_file, ImageDatasetOptions options)
    : ImageDataset(read_paths(list_file), std::move(options)) {}

LabeledImageDataset::LabeledImageDataset(std::vector<LabeledPath> pairs,
                                         ImageDatasetOptions options)
    : Dataset(labeled("LabeledImageDataset", std::move(pairs), std::move(options))) {}

LabeledImageDataset::LabeledImageDataset(const std::string& list_file, ImageDatasetOptions options)
    : LabeledImageDataset(read_pairs(list_file), std::move(options)) {}

ImageFolder::List ImageFolder::list_of(const std::string& folder) {
  List list;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory()) list.classes.push_back(entry.path().filename().string());
    }
    std::ranges::sort(list.classes);
    for (std::size_t label = 0; label < list.classes.size(); ++label) {
      std::vector<std::string> paths;
      for (const auto& entry :
           fs::recursive_directory_iterator(fs::path(folder) / list.classes[label])) {
        if (is_picture(entry.path()) && entry.is_regular_file()) {
          paths.push_back(entry.path().string());
        }
      }
      if (paths.empty()) {
        throw SerializationError(fmt::format(
            "ImageFolder: {}/{} has no picture (.jpg, .jpeg, .png)", folder, list.classes[label]));
      }
      std::ranges::sort(paths);
      for (std::string& path : paths) {
        list.pairs.emplace_back(std::move(path), static_cast<std::int64_t>(label));
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw SerializationError(fmt::format("ImageFolder: {}", error.what()));
  }
  if (list.classes.empty()) {
    throw SerializationError(fmt::format("ImageFolder: {} has no subfolders, one a class", folder));
  }
  return list;
}

ImageFolder::ImageFolder(List list, ImageDatasetOptions options)
    : LabeledImageDataset(list.pairs, std::move(options)), list_(std::move(list)) {}

ImageFolder::ImageFolder(const std::string& folder, ImageDatasetOptions options)
    : ImageFolder(list_of(folder), [&] {
        options.root.clear();
        return std::move(options);
      }()) {}

}  // namespace rensa::datasets
