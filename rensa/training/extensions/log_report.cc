// LogReport.
#include "rensa/training/extensions/log_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rensa/core/error.h"
#include "rensa/core/files.h"

namespace rensa::extensions {

bool LogEntry::find(const std::string& key, double* value) const {
  if (auto found = values.find(key); found != values.end()) *value = found->second;
  else if (key == "epoch") *value = static_cast<double>(epoch);
  else if (key == "iteration") *value = static_cast<double>(iteration);
  else if (key == "elapsed_time") *value = elapsed_time;
  else return false;
  return true;
}

void MissingKeys::tell(const char* extension, const std::vector<std::string>& wanted,
                       const LogEntry& entry) {
  for (const std::string& key : wanted) {
    double ignored = 0;
    if (entry.find(key, &ignored) || !told_.insert(key).second) continue;
    std::string there = "epoch, iteration, elapsed_time";
    for (const auto& [name, value] : entry.values) there += ", " + name;
    std::fprintf(stderr, "%s: nobody has reported \"%s\" so far; there are: %s\n", extension,
                 key.c_str(), there.c_str());
  }
}

void LogReport::operator()(training::Trainer& trainer) {
  if (options_.keys.empty()) {
    summary_.add(trainer.observation());
  } else {
    Observation wanted;
    for (const auto& [key, value] : trainer.observation()) {
      if (std::count(options_.keys.begin(), options_.keys.end(), key)) wanted[key] = value;
    }
    summary_.add(wanted);
  }
  if (!options_.trigger(trainer)) return;
  log_.push_back({summary_.compute_mean(), trainer.updater().epoch(), trainer.updater().iteration(),
                  trainer.elapsed_time()});
  missing_.tell("LogReport", options_.keys, log_.back());
  summary_ = DictSummary();
  if (!options_.filename.empty()) write(trainer.out());
}

void LogReport::write(const std::string& folder) const {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const LogEntry& entry : log_) {
    nlohmann::ordered_json json;
    for (const auto& [key, value] : entry.values) json[key] = value;
    json["epoch"] = entry.epoch;
    json["iteration"] = entry.iteration;
    json["elapsed_time"] = entry.elapsed_time;
    entries.push_back(std::move(json));
  }
  // Keys may be any bytes; JSON holds UTF-8 alone.
  constexpr auto replace = nlohmann::ordered_json::error_handler_t::replace;
  try {
    rensa::detail::write_whole_file(folder + "/" + options_.filename,
                                    entries.dump(4, ' ', false, replace) + '\n');
  } catch (const SerializationError& error) {
    throw SerializationError(std::string("LogReport: ") + error.what());
  }
}

}  // namespace rensa::extensions
