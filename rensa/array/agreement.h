// What the ranks of a group say alike, and what one of them says for all.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "rensa/array/communicator.h"

namespace rensa {

/// Throws ValueError on all ranks where they do not give the same text. The error names the
/// operation, two ranks, the first of their lines that differ, and the `way_out`. Called by all
/// ranks.
void check_agreement(const Communicator& communicator, std::string_view operation,
                     const std::string& own, std::string_view way_out);

namespace detail {

/// What `make`, which is called on `root` alone, gives there: bytes, on all ranks. Where it throws,
/// so do all: root that, the others an Exception of its text.
template <class Exception, class Make>
std::string bytes_of_root(const Communicator& communicator, int root, Make make) {
  std::string message;
  std::exception_ptr error;
  if (communicator.rank() == root) {
    try {
      message = std::string("+") + make();
    } catch (const std::exception& e) {
      error = std::current_exception();
      message = std::string("-") + e.what();
    }
  }
  message = communicator.bcast_bytes(message, root);
  if (error) std::rethrow_exception(error);
  bool is_error = message.front() == '-';
  message.erase(0, 1);
  if (is_error) throw Exception(message);
  return message;
}

}  // namespace detail
}  // namespace rensa
