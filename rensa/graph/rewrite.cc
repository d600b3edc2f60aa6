// The rewrites of a recorded list: the patterns, joined chains, and the update in parts.
#include "rensa/graph/rewrite.h"

#include <algorithm>

#include "rensa/device/operations.h"
#include "rensa/functions/operations/update_parameters/update_parameters.h"
#include "rensa/graph/patterns.h"
#include "rensa/graph/storage_uses.h"

namespace rensa {

namespace {

using Operations = std::vector<std::unique_ptr<Operation>>;

/// `update`, the operation at `i`, in parts by the order in which the gradients come.
Operations parts_of(const UpdateParameters& update, std::size_t i, const StorageUses& uses) {
  constexpr int kMostParts = 4;
  constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;  // what is worth a launch
  std::vector<std::pair<std::size_t, UpdateTarget>> targets;
  std::int64_t bytes = 0;
  for (const UpdateTarget& target : update.targets) {
    std::size_t writer = uses.writer_before(target.gradient.storage, i);
    targets.emplace_back(writer < i ? writer : 0, target);
    bytes += target.parameter.view.nbytes();
  }
  std::stable_sort(targets.begin(), targets.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::int64_t share = std::max(bytes / kMostParts, kLeastBytes), part_bytes = 0;
  Operations parts;
  UpdateParameters part(update);
  part.targets.clear();
  for (auto& [ready, target] : targets) {
    if (part_bytes >= share) {
      parts.push_back(part.clone());
      part.targets.clear();
      part_bytes = 0;
    }
    part_bytes += target.parameter.view.nbytes();
    part.targets.push_back(std::move(target));
  }
  parts.push_back(part.clone());
  return parts;
}

/// One update of all parameters waits for the last gradient. In parts most of it is done beside the
/// rest of backward.
void split_updates(Recording& recording) {
  auto is_update = [](const std::unique_ptr<Operation>& operation) {
    return dynamic_cast<UpdateParameters*>(operation.get()) != nullptr;
  };
  if (std::ranges::none_of(recording.operations, is_update)) return;
  StorageUses uses(recording);
  Operations result;
  for (std::size_t i = 0; i < recording.operations.size(); ++i) {
    std::unique_ptr<Operation>& operation = recording.operations[i];
    if (auto* update = dynamic_cast<UpdateParameters*>(operation.get())) {
      for (auto& part : parts_of(*update, i, uses)) result.push_back(std::move(part));
    } else {
      result.push_back(std::move(operation));
    }
  }
  recording.operations = std::move(result);
}

void apply_patterns(Recording& recording) {
  RecordedList list(recording);
  for (const Pattern& pattern : patterns()) {
    for (std::size_t i = list.size(); i-- > 0;) {
      if (!list.is_taken_out(i)) pattern.apply(list, i);
    }
  }
  std::erase(recording.operations, nullptr);
}

}  // namespace

JoinedChains rewrite(Recording& recording) {
  apply_patterns(recording);
  // A CPU's recordings are for tests, and a compiler's vector functions may round otherwise.
  JoinedChains joined;
  if (recording.device().is_cuda()) joined = join_chains(recording);
  split_updates(recording);
  return joined;
}

}  // namespace rensa
