// What was chosen for work other than products, as lines of text: how save_plans() and load_plans()
// keep it without knowing the work.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace rensa::cuda {

/// By the class of GPUs (device_class.h) and by what says for which work of which library's version
/// a choice is meant. Neither text has line ends or " : ".
using PlanTexts = std::map<std::pair<int, std::string>, std::string>;

void keep_plan_text(int device_class, const std::string& key, const std::string& choice);
std::optional<std::string> find_plan_text(int device_class, const std::string& key);

/// All there are.
PlanTexts plan_texts();
/// Keeps those of a file, in the place of others for the same work.
void load_plan_texts(const PlanTexts& texts);
/// How often that was called: plans made before may be others than the file's.
std::uint64_t plan_texts_loaded();

}  // namespace rensa::cuda
