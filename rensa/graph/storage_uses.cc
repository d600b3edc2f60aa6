// An index of a recorded list by storage.
#include "rensa/graph/storage_uses.h"

#include <algorithm>
#include <functional>

namespace rensa {

StorageUses::StorageUses(const Recording& recording) {
  for (const auto& operation : recording.operations) accesses_.push_back(accesses(*operation));
  number_memory();
  marks_.resize(accesses_.size(), 0);
  for (std::size_t i = 0; i < accesses_.size(); ++i) enter(i);
}

void StorageUses::number_memory() {
  std::vector<const Storage*> storages;
  for (const std::vector<Access>& of_one : accesses_) {
    for (const Access& access : of_one) {
      if (number_of_.try_emplace(access.storage, 0).second) storages.push_back(access.storage);
    }
  }
  std::ranges::sort(storages, std::less<>(), [](const Storage* s) { return s->data(); });
  const char* end = nullptr;  // of the memory so far
  for (const Storage* storage : storages) {
    if (memories_.empty() || storage->data() >= end) memories_.emplace_back(&nodes_);
    number_of_[storage] = memories_.size() - 1;
    end = std::max<const char*>(end, storage->data() + storage->nbytes());
  }
}

void StorageUses::enter(std::size_t i) {
  for (const Access& access : accesses_[i]) {
    std::size_t number = number_of_.at(access.storage);
    Memory& memory = memories_[number];
    memory.users.insert(memory.users.end(), i);
    if (access.write) memory.writers.insert(memory.writers.end(), i);
    marks_[i] |= std::uint64_t{1} << (number % 64);
  }
}

void StorageUses::replace(std::size_t i, Operation* operation) {
  for (const Access& access : accesses_[i]) {
    Memory& memory = memories_[number_of_.at(access.storage)];
    memory.users.erase(i);
    memory.writers.erase(i);
  }
  accesses_[i] = operation ? accesses(*operation) : std::vector<Access>();
  marks_[i] = 0;
  enter(i);
}

bool StorageUses::is_handed_over(const Storage* storage) const {
  const Memory& memory = memory_of(storage);
  return memory.users.size() == 2 && memory.writers.size() == 1 &&
         *memory.writers.begin() == *memory.users.begin();
}

bool StorageUses::used_after(const Storage* storage, std::size_t i) const {
  const Places& places = users(storage);
  return !places.empty() && *places.rbegin() > i;
}

namespace {

bool has_between(const StorageUses::Places& places, std::size_t first, std::size_t last) {
  auto next = places.upper_bound(first);
  return next != places.end() && *next < last;
}
bool has_from(const StorageUses::Places& places, std::size_t first, std::size_t last) {
  return places.lower_bound(first) != places.lower_bound(last);
}

}  // namespace

bool StorageUses::used_between(const Storage* storage, std::size_t first, std::size_t last) const {
  return has_between(users(storage), first, last);
}

bool StorageUses::written_between(const Storage* storage, std::size_t first,
                                  std::size_t last) const {
  return has_between(writers(storage), first, last);
}

bool StorageUses::used_from(const Storage* storage, std::size_t first, std::size_t last) const {
  return has_from(users(storage), first, last);
}

bool StorageUses::written_from(const Storage* storage, std::size_t first, std::size_t last) const {
  return has_from(writers(storage), first, last);
}

std::size_t StorageUses::writer_before(const Storage* storage, std::size_t i) const {
  const Places& places = writers(storage);
  auto next = places.lower_bound(i);
  return next == places.begin() ? i : *std::prev(next);
}

bool StorageUses::conflict(std::size_t i, std::size_t j) const {
  if (!may_meet(i, j)) return false;
  for (const Access& x : accesses_[i]) {
    for (const Access& y : accesses_[j]) {
      if ((x.write || y.write) && x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

}  // namespace rensa
