#include "rensa/backend/cuda/plan_texts.h"

#include <atomic>
#include <mutex>

namespace rensa::cuda {

namespace {

// Its end is the process's: threads may still be running then.
struct Kept {
  std::mutex mutex;
  PlanTexts texts;
  std::atomic<std::uint64_t> loaded{0};
};

Kept& kept() {
  static Kept& all = *new Kept;
  return all;
}

}  // namespace

void keep_plan_text(int device_class, const std::string& key, const std::string& choice) {
  std::lock_guard hold(kept().mutex);
  kept().texts[{device_class, key}] = choice;
}

std::optional<std::string> find_plan_text(int device_class, const std::string& key) {
  std::lock_guard hold(kept().mutex);
  auto found = kept().texts.find({device_class, key});
  if (found == kept().texts.end()) return std::nullopt;
  return found->second;
}

PlanTexts plan_texts() {
  std::lock_guard hold(kept().mutex);
  return kept().texts;
}

void load_plan_texts(const PlanTexts& texts) {
  std::lock_guard hold(kept().mutex);
  for (const auto& [key, choice] : texts) kept().texts[key] = choice;
  kept().loaded.fetch_add(1, std::memory_order_release);
}

std::uint64_t plan_texts_loaded() { return kept().loaded.load(std::memory_order_acquire); }

}  // namespace rensa::cuda
