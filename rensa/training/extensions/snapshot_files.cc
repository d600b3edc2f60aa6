// Snapshots: the names of their files, those that are there, and what is written.
#include "rensa/training/extensions/snapshot_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/files.h"

namespace rensa::extensions::detail {

namespace {

namespace fs = std::filesystem;
using training::Trainer;

/// Calls `text` with each piece of a file name's form, and `number` with what stands in braces.
template <class Text, class Number>
void each_part(std::string_view form, Text text, Number number) {
  while (!form.empty()) {
    std::size_t open = form.find('{'), close = form.find('}', open == form.npos ? 0 : open);
    if (open == form.npos || close == form.npos) return text(form);
    if (open > 0) text(form.substr(0, open));
    number(form.substr(open + 1, close - open - 1));
    form.remove_prefix(close + 1);
  }
}

constexpr std::string_view kIteration = ".updater.iteration", kEpoch = ".updater.epoch";

void check_form(const std::string& form) {
  bool known = !form.empty() && form.find('/') == form.npos && form.find("}{") == form.npos;
  each_part(
      form, [](std::string_view) {},
      [&](std::string_view what) { known = known && (what == kIteration || what == kEpoch); });
  if (known) return;
  throw ValueError(fmt::format(
      "snapshot: the filename \"{}\"; it has no folders, and what stands for a number is "
      "{{{}}} or {{{}}}, with text between two",
      form, kIteration, kEpoch));
}

/// Whether `name` is of that form with any numbers.
bool is_of_form(std::string_view name, const std::string& form) {
  bool fits = true;
  each_part(
      form,
      [&](std::string_view text) {
        fits = fits && name.starts_with(text);
        if (fits) name.remove_prefix(text.size());
      },
      [&](std::string_view) {
        auto digits =
            std::ranges::find_if(name, [](unsigned char c) { return std::isdigit(c) == 0; });
        fits = fits && digits != name.begin();
        name.remove_prefix(static_cast<std::size_t>(digits - name.begin()));
      });
  return fits && name.empty();
}

/// The files of that form, the latest first.
std::vector<fs::path> snapshots_in(const std::string& folder, const std::string& form) {
  // Clocks of files tick too slowly to tell all apart: then the larger number is the later one.
  struct Found {
    fs::file_time_type time;
    std::size_t length;
    std::string name;
    bool is_after(const Found& other) const {
      if (time != other.time) return time > other.time;
      return length != other.length ? length > other.length : name > other.name;
    }
  };
  std::vector<Found> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    std::string name = at->path().filename().string();
    if (!is_of_form(name, form)) continue;
    auto time = fs::last_write_time(at->path(), gone);
    if (!gone) found.push_back({time, name.size(), name});
  }
  if (error) {
    throw SerializationError(
        fmt::format("snapshot: the folder \"{}\" cannot be read: {}", folder, error.message()));
  }
  std::ranges::sort(found, [](const Found& a, const Found& b) { return a.is_after(b); });
  std::vector<fs::path> paths;
  for (const Found& file : found) paths.push_back(fs::path(folder) / file.name);
  return paths;
}

void remove_old(const std::string& folder, const std::string& form, int retained) {
  if (retained < 0) return;
  std::vector<fs::path> paths = snapshots_in(folder, form);
  for (auto i = static_cast<std::size_t>(retained); i < paths.size(); ++i) {
    std::error_code error;  // somebody else may have removed it
    fs::remove(paths[i], error);
  }
}

}  // namespace

void check_options(const SnapshotOptions& options) {
  check_form(options.filename);
  if (options.n_retains == 0) throw ValueError("snapshot: n_retains is 0; give 1 or more, or -1");
}

std::string name_of(const std::string& form, const Trainer& trainer) {
  std::string name;
  each_part(
      form, [&](std::string_view text) { name += text; },
      [&](std::string_view what) {
        const training::Updater& updater = trainer.updater();
        name += std::to_string(what == kIteration ? updater.iteration() : updater.epoch());
      });
  return name;
}

std::shared_ptr<const std::string> write(serializers::NpzContent content, const Trainer& trainer,
                                         const SnapshotOptions& options) {
  std::string folder = trainer.out();
  auto written = std::make_shared<std::string>();
  // Nothing of the writer, which would then be held by its own thread.
  auto write = [content = std::move(content),
                path = folder + "/" + name_of(options.filename, trainer), folder, written,
                form = options.filename, retained = options.n_retains,
                compression = options.compression, keep_going = options.keep_going] {
    try {
      content.write(path, compression);
      *written = path;
      remove_old(folder, form, retained);
    } catch (const SerializationError& error) {
      if (!keep_going) throw SerializationError(std::string("snapshot: ") + error.what());
      std::fprintf(stderr, "snapshot: the run goes on without a file: %s\n", error.what());
    }
  };
  options.writer(std::move(write));
  return written;
}

void load_latest(const Trainer& trainer, const std::string& form,
                 const std::function<std::string(const std::string& path)>& load) {
  auto is_ours = [&](std::string_view name) { return is_of_form(name, form); };
  rensa::detail::remove_abandoned(trainer.out(), is_ours);
  std::string first_error;
  for (const fs::path& path : snapshots_in(trainer.out(), form)) {
    try {
      std::string note = load(path.string());
      std::fprintf(stderr, "snapshot: goes on from %s%s\n", path.c_str(), note.c_str());
      return;
    } catch (const SerializationError& error) {
      std::fprintf(stderr, "snapshot: %s is left out: %s\n", path.c_str(), error.what());
      if (first_error.empty()) first_error = error.what();
    }
  }
  if (!first_error.empty()) {
    throw SerializationError("snapshot: none of the files to go on from can be read; the latest: " +
                             first_error);
  }
}

}  // namespace rensa::extensions::detail
