// A file of which one part is another.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rensa/array/zip.h"
#include "rensa/core/files.h"

namespace rensa::testing {

/// `path` with one entry's bytes replaced.
inline void replace_entry(const std::string& path, const std::string& name,
                          const std::string& bytes) {
  std::vector<std::pair<std::string, std::string>> entries;
  {
    FileReader file(path);
    ZipReader archive(file);
    for (const std::string& entry : archive.names()) {
      entries.emplace_back(entry, entry == name ? bytes : archive.read(entry));
    }
  }
  FileWriter file(path);
  ZipWriter zip(file);
  for (const auto& [entry, data] : entries) zip.add(entry, {data}, true);
  zip.finish();
  file.finish();
}

}  // namespace rensa::testing
