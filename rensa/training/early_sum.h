// EarlySum: gradients of replicas that are summed while their backward passes still compute others.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "rensa/autograd/gradient_watch.h"
#include "rensa/device/stream.h"
#include "rensa/links/link.h"

namespace rensa::training {

/// Replaces gradients of replicas by their sums, in packs of parameters, each as soon as all
/// replicas have the gradients of it: on GPUs beside what their streams do, on the CPU in the
/// thread that came last. The last pack, behind which backward ends, is left to the caller, and so
/// is a pack that some replica's pass does not fill. Its steps follow each other: plan(); watch()
/// and a backward pass in the scope of it for every replica; close(), once; finish() for every
/// replica. Those for the replicas may run in threads of theirs.
class EarlySum {
 public:
  /// One replica on each of the devices, which share memory (cuda::share_memory); packs of at most
  /// so many bytes, or of one parameter.
  EarlySum(std::vector<Device> devices, std::int64_t pack_bytes);
  ~EarlySum();

  /// For replicas of `model`.
  void plan(const Link& model);
  /// Who is to be told of the gradients of a replica, all of which are clear; null where nothing is
  /// summed early.
  GradientWatch* watch(int member, const Link& model);
  /// A replica's gradient of params()[i], or its sum, if it is in a pack; else undefined, and the
  /// parameter has it. What a pass has added to that after it was taken, the parameter has.
  Array taken(int member, std::size_t i) const;
  /// After all passes, before close(): whether that is the sum.
  bool is_summed(std::size_t i) const;
  void close();
  /// The current stream of the replica's device goes on when all sums are there.
  void finish(int member);

 private:
  class Watch;
  struct Pack;
  struct Member;

  /// What packs are made by: a parameter's dtype and its number of elements.
  struct Sort {
    Dtype dtype;
    std::int64_t size;
    bool operator==(const Sort&) const = default;
  };
  void divide(const std::vector<Sort>& sorts);
  bool take(int member, const std::shared_ptr<VariableBody>& leaf, const Variable& gradient);
  void put_back(int member);
  void fill(Pack& pack, int member);
  void sum(Pack& pack);
  Member& own(int member) { return *members_[static_cast<std::size_t>(member)]; }

  std::vector<Device> devices_;
  std::int64_t pack_bytes_;
  std::vector<Sort> sorts_;      // of the parameters that the packs are of
  std::set<std::size_t> often_;  // places of parameters whose gradients came in parts
  std::vector<std::unique_ptr<Pack>> packs_;
  std::vector<int> pack_of_;  // by parameter; -1: in none
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<cuda::Stream> streams_;  // of the sums, on GPUs: one for each
  std::vector<cuda::Event> done_;
  int unfinished_ = 0;  // members that have not finished since a sum was launched
  std::mutex mutex_;    // over what the members' threads share: arrivals, sums, often_
};

}  // namespace rensa::training
