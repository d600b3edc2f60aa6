// Slips with networks, told as those of arrays.cc are.
#include "rensa/rensa.h"

using namespace rensa;

extern L::Linear layer;
extern Persistent mean;

// slip: write Variable w = l.W
void value_of_a_parameter() { auto w = layer.W; }

// slip: write Array m = l.mean
void value_of_a_persistent() { auto m = mean; }
