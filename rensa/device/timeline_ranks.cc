#include "rensa/device/timeline_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "rensa/core/error.h"
#include "rensa/core/files.h"

namespace rensa::timeline {

namespace {

using nlohmann::json;

// What the numbers of a rank's processes and of its threads are moved by.
constexpr std::int64_t kProcesses = 1000, kThreads = 1000;

struct Trace {
  json events;
  std::int64_t began_ns;
};

Trace load(const std::string& path) {
  json all = json::parse(rensa::detail::read_whole_file(path), nullptr, false);
  if (all.is_object() && all.contains("began_ns") && all["began_ns"].is_number_integer() &&
      all.contains("traceEvents") && all["traceEvents"].is_array()) {
    return {std::move(all["traceEvents"]), all["began_ns"].get<std::int64_t>()};
  }
  throw SerializationError(
      fmt::format("timeline: {} is no trace that says when it began: merge what RENSA_TIMELINE or "
                  "timeline::record has written",
                  path));
}

/// The event as one of that rank's.
void number(json& event, std::size_t rank, double later_us) {
  auto add = [&](const char* name, std::int64_t value) {
    if (auto found = event.find(name); found != event.end() && found->is_number_integer()) {
      *found = found->get<std::int64_t>() + value;
    }
  };
  auto place = static_cast<std::int64_t>(rank);
  bool is_hosts = event.value("pid", json()) == 0;
  add("pid", place * kProcesses);
  if (is_hosts) add("tid", place * kThreads);
  if (auto ts = event.find("ts"); ts != event.end() && ts->is_number()) {
    *ts = ts->get<double>() + later_us;
  }
  if (event.value("name", json()) != "process_name") return;
  if (auto args = event.find("args"); args != event.end() && args->is_object()) {
    std::string name = args->value("name", json()).is_string() ? (*args)["name"] : "";
    (*args)["name"] = fmt::format("rank {}: {}", rank, name);
  }
}

}  // namespace

std::string path_of_rank(const std::string& path, int rank) {
  std::filesystem::path whole(path), name(whole.stem());
  name += fmt::format(".rank{}", rank);
  name += whole.extension();
  return whole.replace_filename(name).string();
}

void merge(const std::vector<std::string>& traces, const std::string& path) {
  std::vector<Trace> all;
  auto first = std::numeric_limits<std::int64_t>::max();
  for (const std::string& trace : traces) {
    all.push_back(load(trace));
    first = std::min(first, all.back().began_ns);
  }
  FileWriter out(path);
  out.write(fmt::format("{{\"displayTimeUnit\": \"ms\", \"began_ns\": {}, \"traceEvents\": [",
                        all.empty() ? 0 : first));
  const char* separator = "\n";
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    double later_us = static_cast<double>(all[rank].began_ns - first) / 1e3;
    for (json& event : all[rank].events) {
      if (!event.is_object()) continue;
      number(event, rank, later_us);
      out.write(separator);
      out.write(event.dump(-1, ' ', false, json::error_handler_t::replace));
      separator = ",\n";
    }
  }
  out.write("\n]}\n");
  out.finish();
}

}  // namespace rensa::timeline
