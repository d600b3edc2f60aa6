// Outline: what one run of a step did, without the memory that it did it in. Two runs of one
// outline did the same work, on the same memory as far as it was there before them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rensa/device/operation.h"

namespace rensa {

class Outline {
 public:
  /// Memory that stands for the step's inputs and States: each run may have other one.
  void add_stand_in(const Storage* storage);
  /// The next operation, after launch() has counted its writes.
  void add(Operation& operation);

  /// The host did something that replays do again, with `number`, or asked for a number that they
  /// ask for anew; by the type of the function that does it.
  void add_action(const std::type_info& function, double number = 0) {
    actions_.push_back({steps_.size(), std::type_index(function), number});
  }

  /// In words, what `later` did otherwise; empty where it did the same.
  std::string difference(const Outline& later) const;

  /// Whether the storage was made by the run: an operation wrote it before anything else did.
  bool made(const Storage* storage) const;
  /// Storages that were there before the run, those that stand for something left out.
  const std::vector<Storage*>& found() const { return found_; }
  /// Storages that the run made and has not given back.
  const std::unordered_set<Storage*>& made() const { return made_; }
  /// `storage`, which the run made, is no more; other memory may come to stand at its address.
  void forget(Storage* storage);

 private:
  /// Memory by its part in a run. Equal ones are the same, or have come into being alike.
  struct Place {
    enum class Kind : unsigned char { made, stand_in, found, foreign } kind;
    std::uintptr_t which;  // the number of those made or standing in so far; an address
    bool operator==(const Place&) const = default;
  };
  struct Use {
    bool write;
    Place place;
    std::ptrdiff_t offset;  // of the first element; in foreign memory 0
    Dtype dtype;
    Shape shape, strides;
    bool operator==(const Use&) const = default;
  };
  struct Step {
    const char* name;
    std::vector<Use> uses;
    std::vector<std::int64_t> numbers;  // by their bits
  };

  struct Action {
    std::size_t steps;  // that came before
    std::type_index function;
    double number;
    bool operator==(const Action& other) const {
      return steps == other.steps && function == other.function &&
             std::bit_cast<std::uint64_t>(number) == std::bit_cast<std::uint64_t>(other.number);
    }
  };

  /// Of a storage that is seen for the first time; launch() has counted `writes` of them now.
  Place new_place(Storage* storage, int writes);

  std::vector<Step> steps_;
  std::vector<Action> actions_;
  std::unordered_map<const Storage*, Place> places_;
  std::unordered_set<Storage*> made_;
  std::vector<Storage*> found_;
  std::uintptr_t num_made_ = 0, stand_ins_ = 0;  // so far
};

}  // namespace rensa
