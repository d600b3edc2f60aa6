// LogReport.
#include "rensa/training/extensions/log_report.h"

#include <algorithm>
#include <limits>
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
  if (options_.postprocess) options_.postprocess(log_.back().values);
  summary_ = DictSummary();
  if (!options_.filename.empty()) write(trainer.out());
}

namespace {

nlohmann::ordered_json json_of(const std::vector<LogEntry>& log) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const LogEntry& entry : log) {
    nlohmann::ordered_json json;
    for (const auto& [key, value] : entry.values) json[key] = value;
    json["epoch"] = entry.epoch;
    json["iteration"] = entry.iteration;
    json["elapsed_time"] = entry.elapsed_time;
    entries.push_back(std::move(json));
  }
  return entries;
}

// Keys may be any bytes; JSON holds UTF-8 alone.
std::string text_of(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

[[noreturn]] void refuse(const std::string& what) {
  throw SerializationError("LogReport: the log in the file cannot be read: " + what);
}

/// A number of JSON, which has null for one that is not finite.
double number_of(const std::string& key, const nlohmann::json& json) {
  if (json.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!json.is_number()) refuse("\"" + key + "\" is no number: " + json.dump());
  return json.get<double>();
}

/// A number of things, which JSON's own conversion would make of a fraction and of true, too.
std::int64_t count_of(const std::string& key, const nlohmann::json& json) {
  // What JSON has without a sign may be beyond int64, and comes out negative then.
  if (!json.is_number_integer() || json.get<std::int64_t>() < 0) {
    refuse("\"" + key + "\" is no count: " + json.dump());
  }
  return json.get<std::int64_t>();
}

LogEntry entry_of(const nlohmann::json& json) {
  if (!json.is_object()) refuse("an entry is no object: " + json.dump());
  LogEntry entry;
  for (const auto& [key, value] : json.items()) {
    if (key == "epoch") entry.epoch = count_of(key, value);
    else if (key == "iteration") entry.iteration = count_of(key, value);
    else if (key == "elapsed_time") entry.elapsed_time = number_of(key, value);
    else entry.values[key] = number_of(key, value);
  }
  return entry;
}

std::vector<LogEntry> parse_log(const std::string& text) {
  try {
    nlohmann::json entries = nlohmann::json::parse(text);
    if (!entries.is_array()) refuse("it is no list of entries");
    std::vector<LogEntry> log;
    for (const nlohmann::json& json : entries) log.push_back(entry_of(json));
    return log;
  } catch (const nlohmann::json::exception& error) {
    refuse(error.what());
  }
}

}  // namespace

void LogReport::members(Visitor& v) {
  v("_trigger", options_.trigger);
  v("_summary", summary_);
  v.computed(
      "_log", [this] { return text_of(json_of(log_), -1); },
      [this](const std::string& text) { return [this, log = parse_log(text)] { log_ = log; }; });
}

void LogReport::write(const std::string& folder) const {
  try {
    rensa::detail::write_whole_file(folder + "/" + options_.filename,
                                    text_of(json_of(log_), 4) + '\n');
  } catch (const SerializationError& error) {
    throw SerializationError(std::string("LogReport: ") + error.what());
  }
}

LogReport::LogReport(LogReportOptions options) : options_(std::move(options)) {}

}  // namespace rensa::extensions
