// What the trainers of several ranks hold, as one file.
#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/npy.h"
#include "rensa/core/sha256.h"
#include "rensa/optimizers/multi_node_optimizer.h"
#include "rensa/training/extensions/snapshot_files.h"

namespace rensa::extensions::detail {

namespace {

using serializers::NpzContent;
using Entries = std::map<std::string, std::string>;  // the .npy of each name

constexpr std::string_view kRanks = "ranks/", kSize = "ranks/size", kLacks = "_lacks/";

std::string prefix_of(int rank) { return fmt::format("{}{}/", kRanks, rank); }

std::string npy_of(std::int64_t number) { return format_npy(xp::array(number, cpu())); }

/// The same names, with digests in place of values.
NpzContent digests_of(const NpzContent& content) {
  NpzContent digests;
  for (const auto& [name, npy] : content.entries) {
    Sha256 digest;
    digest.update(npy.data(), npy.size());
    digests.entries.emplace_back(name, digest.hex_digest());
  }
  return digests;
}

/// What `own` has that rank 0 has not or not so, and the names that it lacks.
NpzContent difference(NpzContent own, const NpzContent& digests_of_rank_0) {
  NpzContent digests = digests_of(own), result;
  Entries others(digests_of_rank_0.entries.begin(), digests_of_rank_0.entries.end());
  for (std::size_t i = 0; i < own.entries.size(); ++i) {
    auto& [name, npy] = own.entries[i];
    auto other = others.find(name);
    if (other == others.end() || other->second != digests.entries[i].second) {
      result.entries.emplace_back(name, std::move(npy));
    }
    if (other != others.end()) others.erase(other);
  }
  for (const auto& [name, digest] : others) {
    result.entries.emplace_back(std::string(kLacks) + name, npy_of_none());
  }
  return result;
}

/// Rank 0's values, with those that the rank has in place of them.
Entries entries_of(NpzContent file, int rank) {
  Entries entries;
  for (auto& [name, npy] : file.entries) {
    if (!name.starts_with(kRanks)) entries[name] = std::move(npy);
  }
  std::string prefix = prefix_of(rank);
  for (auto& [name, npy] : file.entries) {
    if (!name.starts_with(prefix)) continue;
    std::string below = name.substr(prefix.size());
    if (below.starts_with(kLacks)) entries.erase(below.substr(kLacks.size()));
    else entries[below] = std::move(npy);
  }
  return entries;
}

/// "seed" of "updater/iterator:main/seed"; nothing of what is no iterator's own.
std::string_view member_of_iterator(std::string_view name) {
  std::size_t begin = name.rfind("iterator:"), leaf = name.rfind('/');
  bool is_one = begin != name.npos && name.find('/', begin) == leaf;
  return is_one && leaf != name.npos ? name.substr(leaf + 1) : "";
}

/// Has every iterator at the beginning of the epoch that it is in, without rank 0's seed and, where
/// a file gave one, order: the parts of the data are other ones.
void begin_epoch_anew(Entries* entries) {
  for (auto& [name, npy] : *entries) {
    if (member_of_iterator(name) == "current_position") npy = npy_of(0);
  }
  std::erase_if(*entries, [](const auto& entry) {
    std::string_view member = member_of_iterator(entry.first);
    return member == "seed" || member == "order";
  });
}

int ranks_of(const std::string& path, const NpzContent& file) {
  for (const auto& [name, npy] : file.entries) {
    if (name == kSize) return parse_npy(npy, path + ": " + name).item<int>();
  }
  return 1;
}

}  // namespace

NpzContent content_of_all(const Communicator& communicator, const training::Trainer& trainer) {
  for (const auto& [name, optimizer] : trainer.updater().get_all_optimizers()) {
    gather_states(optimizer);
  }
  NpzContent content(trainer);
  if (communicator.size() == 1) return content;
  bool is_first = communicator.rank() == 0;
  std::string known = communicator.bcast_bytes(is_first ? digests_of(content).bytes() : "", 0);
  std::string sent;
  if (!is_first) {
    sent = difference(std::move(content), NpzContent::parse("rank 0's trainer", known)).bytes();
  }
  std::vector<std::string> all = communicator.gather_bytes(sent, 0);
  if (!is_first) return NpzContent();
  content.entries.emplace_back(kSize, npy_of(communicator.size()));
  for (int rank = 1; rank < communicator.size(); ++rank) {
    NpzContent other = NpzContent::parse(communicator.describe(rank) + "'s trainer",
                                         std::move(all[static_cast<std::size_t>(rank)]));
    for (auto& [name, npy] : other.entries) {
      content.entries.emplace_back(prefix_of(rank) + name, std::move(npy));
    }
  }
  return content;
}

std::string load_rank(const std::string& path, NpzContent file, int rank, int size,
                      const training::Trainer& trainer) {
  int ranks = ranks_of(path, file);
  bool as_many = ranks == size;
  Entries entries = entries_of(std::move(file), as_many ? rank : 0);
  serializers::LoadNpzOptions options;
  if (!as_many) begin_epoch_anew(&entries);
  if (!as_many && rank > 0) {
    entries.erase("random");
    // Extensions that rank 0 alone has.
    options.names.surplus = [](const std::string&) { return true; };
  }
  NpzContent of_rank;
  for (auto& [name, npy] : entries) of_rank.entries.emplace_back(name, std::move(npy));
  serializers::load_npz(path, of_rank, trainer, options);
  if (as_many) return "";
  return fmt::format(", of {} rank{} where there {} {} now: the epoch under way begins anew", ranks,
                     ranks == 1 ? "" : "s", size == 1 ? "is" : "are", size);
}

}  // namespace rensa::extensions::detail
