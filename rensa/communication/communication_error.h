// CommunicationError: what a group of ranks that work together throws.
#pragma once

#include "rensa/core/error.h"

namespace rensa {

/// Another rank of a group has failed, ended, is stopped or does something else than this one:
/// the group is of no use any more.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

}  // namespace rensa
