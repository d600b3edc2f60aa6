// EarlySum: dividing parameters into packs, filling them and summing what is full.
#include "rensa/training/early_sum.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/autograd/graph.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/rank_sum/rank_sum.h"

namespace rensa::training {

using rensa::detail::MemoryOrder;

struct EarlySum::Pack {
  Dtype dtype;
  std::int64_t size = 0;  // elements
  std::vector<std::size_t> places;
  // By member:
  std::vector<std::size_t> missing;
  std::vector<Array> memory;
  std::vector<cuda::Event> filled;
  int arrived = 0;  // members that have filled it
  bool summed = false;
};

class EarlySum::Watch final : public GradientWatch {
 public:
  Watch(EarlySum& sum, int member) : sum_(sum), member_(member) {}
  bool take(const std::shared_ptr<VariableBody>& leaf, const Variable& gradient) override {
    return sum_.take(member_, leaf, gradient);
  }
  void end() override { sum_.put_back(member_); }

 private:
  EarlySum& sum_;
  int member_;
};

struct EarlySum::Member {
  Member(EarlySum& sum, int member) : watch(sum, member) {}
  Watch watch;
  std::vector<ParameterRef> parameters;
  std::unordered_map<const VariableBody*, std::size_t> places;
  std::vector<Array> taken;
};

EarlySum::EarlySum(std::vector<Device> devices, std::int64_t pack_bytes)
    : devices_(std::move(devices)), pack_bytes_(pack_bytes) {
  for (int i = 0; i < static_cast<int>(devices_.size()); ++i) {
    members_.push_back(std::make_unique<Member>(*this, i));
  }
}
EarlySum::~EarlySum() = default;

void EarlySum::plan(const Link& model) {
  std::vector<Sort> sorts;
  for (const ParameterRef& p : model.params()) {
    if (!p.is_initialized()) sorts.push_back({float32, 0});  // no pack has it
    else sorts.push_back({p.array().dtype(), p.array().size()});
  }
  for (std::size_t i : often_) {
    if (i < sorts.size()) sorts[i].size = 0;
  }
  if (sorts != sorts_) divide(sorts);
  for (const auto& pack : packs_) {
    pack->missing.assign(devices_.size(), pack->places.size());
    pack->arrived = 0;
    pack->summed = false;
    // Of a step that failed not all have waited for the sums.
    if (unfinished_ > 0) pack->memory.assign(devices_.size(), {});
  }
  unfinished_ = 0;
  for (const auto& member : members_) member->taken.assign(sorts.size(), {});
}

/// Backward makes the last parameters' gradients first.
void EarlySum::divide(const std::vector<Sort>& sorts) {
  sorts_ = sorts;
  packs_.clear();
  pack_of_.assign(sorts.size(), -1);
  std::map<Dtype, std::unique_ptr<Pack>> open;
  for (std::size_t i = sorts.size(); i-- > 0;) {
    const auto [dtype, size] = sorts[i];
    if (size == 0 || dtype_kind(dtype) != 'f') continue;
    std::unique_ptr<Pack>& pack = open[dtype];
    if (pack && (pack->size + size) * itemsize(dtype) > pack_bytes_) {
      packs_.push_back(std::exchange(pack, nullptr));
    }
    if (!pack) pack = std::make_unique<Pack>(), pack->dtype = dtype;
    pack->size += size;
    pack->places.push_back(i);
  }
  for (std::size_t k = 0; k < packs_.size(); ++k) {
    for (std::size_t i : packs_[k]->places) pack_of_[i] = static_cast<int>(k);
    packs_[k]->memory.resize(devices_.size());
    for (std::size_t m = 0; m < devices_.size(); ++m) packs_[k]->filled.emplace_back(false);
  }
  if (packs_.empty() || devices_[0].is_cpu() || !streams_.empty()) return;
  for (Device device : devices_) {
    // First, where they find room: an update waits for the last of them.
    streams_.emplace_back(device, cuda::non_blocking, cuda::Stream::priority_range(device).first);
    done_.emplace_back(false);
  }
}

GradientWatch* EarlySum::watch(int member, const Link& model) {
  if (packs_.empty()) return nullptr;
  Member& mine = own(member);
  mine.parameters = model.params();
  mine.places.clear();
  for (std::size_t i = 0; i < mine.parameters.size(); ++i) {
    mine.places.emplace(mine.parameters[i].body().get(), i);
  }
  return &mine.watch;
}

bool EarlySum::take(int member, const std::shared_ptr<VariableBody>& leaf,
                    const Variable& gradient) {
  Member& mine = own(member);
  auto found = mine.places.find(leaf.get());
  if (found == mine.places.end() || pack_of_[found->second] < 0 || gradient.creator()) return false;
  std::size_t i = found->second;
  Pack& pack = *packs_[static_cast<std::size_t>(pack_of_[i])];
  if (mine.taken[i].defined()) {
    std::lock_guard hold(mutex_);
    often_.insert(i);
    return false;
  }
  if (gradient.array().dtype() != pack.dtype) return false;
  mine.taken[i] = autograd::added_to_grad(leaf, gradient).array();
  autograd::store_grad(leaf, {});
  if (--pack.missing[static_cast<std::size_t>(member)] == 0) fill(pack, member);
  return true;
}

/// Of packs that the pass has not filled.
void EarlySum::put_back(int member) {
  Member& mine = own(member);
  for (const auto& pack : packs_) {
    if (pack->missing[static_cast<std::size_t>(member)] == 0) continue;
    for (std::size_t i : pack->places) {
      Array taken = std::exchange(mine.taken[i], {});
      if (!taken.defined()) continue;
      const auto& body = mine.parameters[i].body();
      autograd::store_grad(body, autograd::added_to_grad(body, constant(std::move(taken))));
    }
  }
}

/// Lays a member's gradients of the pack end to end, and sums them with those of the others if it
/// is the last one to do so.
void EarlySum::fill(Pack& pack, int member) {
  auto m = static_cast<std::size_t>(member);
  Array& memory = pack.memory[m];
  // Somebody may have kept gradients of an earlier step.
  if (!memory.defined() || memory.storage()->use_count() > 1) {
    memory = xp::empty({pack.size}, pack.dtype, devices_[m]);
  }
  std::vector<rensa::detail::CopyPair> parts;
  std::int64_t at = 0;
  for (std::size_t i : pack.places) {
    Array& taken = own(member).taken[i];
    MemoryOrder order(own(member).parameters[i].array(), 'K');
    Array from = order.permuted(taken);
    Array place = memory[Slice(at, at + taken.size())].reshape(from.shape());
    at += taken.size();
    parts.push_back({std::move(from), place});
    taken = order.restored(place);
  }
  rensa::detail::copy_parts("ParallelUpdater", parts);
  if (!streams_.empty()) pack.filled[m].record(devices_[m]);
  std::lock_guard hold(mutex_);
  if (++pack.arrived == static_cast<int>(devices_.size())) sum(pack);
}

void EarlySum::sum(Pack& pack) {
  std::vector<std::vector<Operand>> arrays;
  for (const Array& memory : pack.memory) arrays.push_back({memory.operand()});
  for (operations::RankSum& sum : operations::rank_sums(arrays)) {
    std::optional<cuda::StreamScope> beside;
    if (!streams_.empty()) {
      const cuda::Stream& stream = streams_[static_cast<std::size_t>(sum.rank)];
      for (const cuda::Event& filled : pack.filled) stream.wait(filled);
      beside.emplace(stream);
    }
    launch(sum);
  }
  pack.summed = true;
  unfinished_ = static_cast<int>(devices_.size());
}

Array EarlySum::taken(int member, std::size_t i) const {
  const std::vector<Array>& all = members_[static_cast<std::size_t>(member)]->taken;
  return i < all.size() ? all[i] : Array();
}

bool EarlySum::is_summed(std::size_t i) const {
  return i < pack_of_.size() && pack_of_[i] >= 0 &&
         packs_[static_cast<std::size_t>(pack_of_[i])]->summed;
}

void EarlySum::close() {
  for (std::size_t i = 0; i < streams_.size(); ++i) done_[i].record(streams_[i]);
  for (const auto& pack : packs_) pack->summed = false;
}

void EarlySum::finish(int member) {
  auto m = static_cast<std::size_t>(member);
  own(member).taken.clear();
  own(member).parameters.clear();
  for (const cuda::Event& done : done_) cuda::current_stream(devices_[m]).wait(done);
  std::lock_guard hold(mutex_);
  unfinished_ = std::max(unfinished_ - 1, 0);
}

}  // namespace rensa::training
