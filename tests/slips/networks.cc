// Slips with networks, told as those of arrays.cc are.
#include "rensa/rensa.h"

using namespace rensa;

extern L::Linear layer;
extern Persistent mean;

// slip: write Variable w = l.W
void value_of_a_parameter() { auto w = layer.W; }

// slip: write Array m = l.mean
void value_of_a_persistent() { auto m = mean; }

// slip: a copy of the model would share what this pointer points to
struct SharesItsChild : Chain<SharesItsChild> {
  std::shared_ptr<L::Linear> child;
  void members(Visitor& v) override { v("child", child); }
};

// slip: a copy of the model would share what this pointer points to
struct PointsToItsChild : Chain<PointsToItsChild> {
  L::Linear* child = nullptr;
  void members(Visitor& v) override { v("child", child); }
};

// slip: make it a ChainList or a std::vector<AnyLink>
struct ListOfPointers : Chain<ListOfPointers> {
  std::vector<std::unique_ptr<L::Linear>> children;
  void members(Visitor& v) override { v("children", children); }
};
