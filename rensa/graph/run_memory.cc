// Which memory of a run nobody holds any more, and what stands for it.
#include "rensa/graph/run_memory.h"

#include <algorithm>
#include <utility>

namespace rensa {

namespace {

constexpr std::size_t kAtOnce = 256;             // storages that one operation has looked at
constexpr std::uintptr_t kNameAlignment = 4096;  // more than any allocator's

}  // namespace

MemoryName::MemoryName(const Storage& memory, std::uintptr_t address) {
  data_ = reinterpret_cast<char*>(address);  // NOLINT(performance-no-int-to-ptr)
  nbytes_ = memory.nbytes();
  device_ = memory.device();
}

void RunMemory::add(Storage* storage) {
  piece_of_.emplace(storage, pieces_.size());
  pieces_.push_back({storage, {}});
}

void RunMemory::note_use(Storage* storage, std::size_t place) {
  auto piece = piece_of_.find(storage);
  if (piece != piece_of_.end()) pieces_[piece->second].users.push_back(place);
}

StoragePtr RunMemory::name_for(const Storage& storage) {
  StoragePtr name(new MemoryName(storage, next_address_));
  auto bytes = static_cast<std::uintptr_t>(storage.nbytes());
  next_address_ += (bytes / kNameAlignment + 1) * kNameAlignment;  // never the same for two
  return name;
}

std::vector<RunMemory::Piece> RunMemory::take_unheld(std::size_t most) {
  std::vector<Piece> taken;
  for (; most > 0 && next_ < pieces_.size(); --most) {
    if (pieces_[next_].storage->use_count() > 1) {
      ++next_;
      continue;
    }
    std::swap(pieces_[next_], pieces_.back());
    piece_of_[pieces_[next_].storage] = next_;
    piece_of_.erase(pieces_.back().storage);
    taken.push_back(std::move(pieces_.back()));
    pieces_.pop_back();
  }
  if (next_ >= pieces_.size()) next_ = 0;
  return taken;
}

std::vector<Storage*> RunMemory::give_back(Operations& operations, Handles& handles, bool all) {
  std::vector<Storage*> given_back;
  if (all) next_ = 0;
  std::vector<Piece> unheld = take_unheld(all ? pieces_.size() : kAtOnce);
  if (unheld.empty()) return given_back;
  MoveOperands::Moves names;
  std::vector<std::size_t> users;
  for (const Piece& piece : unheld) {
    names.emplace(piece.storage, name_for(*piece.storage));
    users.insert(users.end(), piece.users.begin(), piece.users.end());
  }
  std::ranges::sort(users);
  users.erase(std::unique(users.begin(), users.end()), users.end());
  MoveOperands move(names);
  for (std::size_t place : users) operations[place]->visit(move);
  for (auto& [storage, name] : names) {
    given_back.push_back(storage);
    handles.erase(storage);
    handles.emplace(name.get(), std::move(name));
  }
  return given_back;
}

void RunMemory::let_go(Handles& handles) {
  for (const Piece& piece : pieces_) handles.erase(piece.storage);
  pieces_.clear();
  piece_of_.clear();
  next_ = 0;
}

MoveOperands::Moves give_memory(const std::unordered_set<Storage*>& storages,
                                RunMemory::Operations& operations, RunMemory::Handles& handles) {
  MoveOperands::Moves memory;
  for (Storage* name : storages) {
    if (!MemoryName::is_one(*name)) continue;
    StoragePtr given = allocate(name->nbytes(), name->device());
    handles.emplace(given.get(), given);
    memory.emplace(name, std::move(given));
  }
  if (memory.empty()) return memory;
  MoveOperands move(memory);
  for (const auto& operation : operations) operation->visit(move);
  return memory;
}

}  // namespace rensa
