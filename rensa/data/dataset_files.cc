// Where the files of published data sets are looked for.
#include "rensa/data/dataset_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/user_cache.h"

namespace rensa {

namespace {

namespace fs = std::filesystem;

/// In the user's cache; empty when no variable says where that is.
fs::path cache_folder(const std::string& name) {
  std::string cache = user_cache_folder();
  return cache.empty() ? fs::path() : fs::path(cache) / name;
}

std::vector<fs::path> candidate_folders(const PublishedFiles& set) {
  std::vector<fs::path> folders;
  if (auto root = environment::text("RENSA_DATASET_ROOT")) {
    folders.push_back(fs::path(*root) / set.folder);
    if (!set.has_common_names) folders.emplace_back(*root);
  }
  if (fs::path cache = cache_folder(set.folder); !cache.empty()) folders.push_back(cache);
  return folders;
}

}  // namespace

fs::path PublishedFiles::find() const {
  fs::path cache = cache_folder(folder);
  for (const fs::path& candidate : candidate_folders(*this)) {
    auto is_there = [&](const File& file) {
      std::error_code ignored;
      fs::path path = candidate / file.name;
      return candidate == cache ? is_file(path.string(), file.identity) : fs::exists(path, ignored);
    };
    if (std::ranges::all_of(files, is_there)) return candidate;
  }
  return {};
}

fs::path PublishedFiles::find_or_download() const {
  if (fs::path found = find(); !found.empty()) return found;
  std::vector<std::string> names;
  for (const File& file : files) names.push_back(file.name);
  std::string looked = title + " is not in";
  for (const fs::path& candidate : candidate_folders(*this)) looked += " " + candidate.string();
  fs::path cache = cache_folder(folder);
  if (cache.empty()) {
    throw SerializationError(fmt::format("{}; put {} into the folder {} of RENSA_DATASET_ROOT",
                                         looked, fmt::join(names, ", "), folder));
  }
  try {
    detail::make_folders(cache.string());
    for (const File& file : files) {
      std::vector<std::string> urls;
      for (const std::string& mirror : mirrors) urls.push_back(mirror + file.name);
      download(urls, file.identity, (cache / file.name).string());
    }
  } catch (const std::exception& error) {
    throw SerializationError(
        fmt::format("{}, and it cannot be downloaded; put {} into one of them (or into the folder "
                    "{} of RENSA_DATASET_ROOT).\n{}",
                    looked, fmt::join(names, ", "), folder, error.what()));
  }
  return cache;
}

}  // namespace rensa
