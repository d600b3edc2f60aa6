// What the programs written by hand share.
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the program where a call of CUDA's libraries gives anything but success, which is 0.
#define CHECK(call)                                                                        \
  do {                                                                                     \
    if (auto status = (call); static_cast<int>(status) != 0) {                             \
      std::fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, int(status)); \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (false)
