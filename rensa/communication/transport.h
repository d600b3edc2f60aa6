// Transport: how the ranks of a group reach one another. What a Communicator does is made of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rensa::communication {

using Clock = std::chrono::steady_clock;

/// What ranks have to agree on in one exchange: which call this is, and of what. Every message
/// bears it, and whoever receives it compares it with what he does himself.
class Label {
 public:
  Label() = default;
  /// `operation` and `subject` are cut after 31 and 63 bytes.
  Label(std::string_view operation, std::string_view subject);
  std::string str() const;  // "allreduce of float32 (3, 4), sum"
  bool operator==(const Label&) const = default;

 private:
  char operation_[32] = {};
  char subject_[64] = {};
};

/// Memory on its way to another rank.
struct Outgoing {
  int peer;  // a rank, not one's own
  const void* data;
  std::int64_t nbytes;
};

/// Memory that another rank's message goes to.
struct Incoming {
  int peer;  // a rank, not one's own
  void* data;
  std::int64_t nbytes;
};

/// One rank's end of a group. Used by one thread at a time. A group whose rank has failed,
/// ended, or kept the others waiting for longer than RENSA_COMMUNICATION_TIMEOUT seconds (600)
/// fails for all: they throw CommunicationError, which names the rank, its host and the
/// operation, and so does every call after it.
class Transport {
 public:
  virtual ~Transport() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// "rank 2 (host b, process 4711)", where that is known: what errors say.
  virtual std::string describe(int rank) const = 0;
  /// The machine it is on: ranks with the same one share GPUs.
  virtual std::string host(int rank) const = 0;

  /// Sends and receives all of these at once; returns when what was sent may be changed and what
  /// was to come is there. What one rank sends another arrives in the order in which it is named,
  /// and what he receives has the size and the label that it was sent with, else
  /// CommunicationError.
  virtual void exchange(const Label& label, std::span<const Outgoing> sent,
                        std::span<const Incoming> received) = 0;
  /// The groups of those with the same color: called by all ranks at once. Ranks follow the keys,
  /// and where they are equal the ranks here. Null for a negative color.
  virtual std::shared_ptr<Transport> split(int color, int key) = 0;

  /// A message, as its sender and its receiver know it.
  struct Announced {
    Label label;
    std::int64_t nbytes;
    bool operator==(const Announced&) const = default;
  };
  // What errors say: of a message of `sender` that is not what this rank awaits, and of ranks
  // (described) that were waited for too long.
  std::string disagreement(const Announced& awaited, const Announced& came, int sender) const;
  static std::string silence(const Label& label, std::chrono::seconds timeout,
                             const std::string& ranks);

 protected:
  Transport(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
};

/// Of as many bytes as ranks have, one behind the other, fills in those of the others: each gives
/// its own. Called by all ranks; without bytes it waits until all have come.
void tell_all(Transport& group, const Label& label, void* all, std::int64_t nbytes_each);
/// The same of a value for each rank.
template <class T> void tell_all(Transport& group, const Label& label, std::vector<T>& all) {
  static_assert(std::is_trivially_copyable_v<T>);
  tell_all(group, label, all.data(), sizeof(T));
}

/// Whom a rank shares its new group with.
struct SplitGroup {
  std::vector<int> ranks;  // ranks of the old group, in the order of the ranks of the new one
  int rank = 0;            // this rank's in the new group
};
/// Tells all ranks of `group` each other's color and key; called by all of them.
SplitGroup agree_on_split(Transport& group, int color, int key);

}  // namespace rensa::communication
