// Snapshots that all ranks of a group take together.
#include "rensa/training/extensions/multi_node_snapshot.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <utility>
#include <vector>

#include "rensa/array/agreement.h"
#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/optimizers/joint_update.h"
#include "rensa/optimizers/optimizer.h"
#include "rensa/training/extensions/snapshot_files.h"

namespace rensa::extensions {

namespace {

using serializers::NpzContent;
using training::Trainer;

/// Reads the file, whose bytes all ranks have, into every rank's trainer. Where one cannot take it,
/// rank 0 throws what it has thrown itself, or SerializationError with the other's text.
std::string load(const Communicator& communicator, const std::string& path, std::string bytes,
                 const Trainer& trainer) {
  std::string note, own;
  std::exception_ptr error;
  try {
    note = detail::load_rank(path, NpzContent::parse(path, std::move(bytes)), communicator.rank(),
                             communicator.size(), trainer);
  } catch (const std::exception& e) {
    error = std::current_exception();
    own = e.what();
  }
  std::vector<std::string> all = communicator.gather_bytes(own, 0);
  if (communicator.rank() != 0) return note;
  if (error) std::rethrow_exception(error);
  for (int rank = 1; rank < communicator.size(); ++rank) {
    const std::string& other = all[static_cast<std::size_t>(rank)];
    if (!other.empty()) throw SerializationError(communicator.describe(rank) + ": " + other);
  }
  return note;
}

/// What rank 0 does: its files are offered to all, until one is taken.
void offer_latest(const Communicator& communicator, const std::string& form,
                  const Trainer& trainer) {
  // A path, or none at the end, then the bytes or what went wrong.
  auto tell = [&](const std::string& path, const std::string& text) {
    communicator.bcast_bytes(path, 0);
    communicator.bcast_bytes(text, 0);
  };
  try {
    detail::load_latest(trainer, form, [&](const std::string& path) {
      std::string bytes = rensa::detail::read_whole_file(path);
      tell(path, bytes);
      return load(communicator, path, std::move(bytes), trainer);
    });
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    tell("", error.what());
    throw;
  }
  tell("", "");
}

/// What the others do.
void take_latest(const Communicator& communicator, const Trainer& trainer) {
  for (;;) {
    std::string path = communicator.bcast_bytes("", 0), text = communicator.bcast_bytes("", 0);
    if (!path.empty()) {
      load(communicator, path, std::move(text), trainer);
    } else if (!text.empty()) {
      throw SerializationError(text);
    } else {
      return;
    }
  }
}

/// Whether this rank keeps the states of all parameters.
bool has_all_states(const Trainer& trainer) {
  for (const auto& [name, optimizer] : trainer.updater().get_all_optimizers()) {
    const auto& joint = optimizer.state()->joint;
    if (!joint) continue;
    for (const ParameterRef& p : optimizer.target().params()) {
      if (p.has_update_rule() && !joint->owns(p.update_rule())) return false;
    }
  }
  return true;
}

}  // namespace

MultiNodeSnapshot::MultiNodeSnapshot(Communicator communicator, SnapshotOptions options)
    : communicator_(std::move(communicator)), options_(std::move(options)) {
  detail::check_options(options_);
}

void MultiNodeSnapshot::resume(Trainer& trainer) {
  check_agreement(
      communicator_, "multi_node_snapshot",
      fmt::format("autoload = {}, snapshot_on_interrupt = {}", options_.autoload, ends_together()),
      "all ranks have to give the same");
  if (!options_.autoload) return;
  if (is_first()) offer_latest(communicator_, options_.filename, trainer);
  else take_latest(communicator_, trainer);
}

int MultiNodeSnapshot::agreed_signal(int own) {
  if (!ends_together()) return own;
  return communicator_.allreduce(xp::array(own, cpu()), ReduceOp::max, "a signal").item<int>();
}

std::shared_ptr<const std::string> MultiNodeSnapshot::take(Trainer& trainer, bool now) {
  NpzContent content = detail::content_of_all(communicator_, trainer);
  auto written = std::make_shared<const std::string>();
  rensa::detail::bytes_of_root<SerializationError>(communicator_, 0, [&] {
    written = detail::write(std::move(content), trainer, options_);
    if (now) options_.writer.finalize();
    return std::string();
  });
  return written;
}

void MultiNodeSnapshot::operator()(Trainer& trainer) {
  bool wanted = !is_first() || !options_.condition || options_.condition();
  wanted = communicator_.bcast(xp::array(wanted, cpu()), 0).item<bool>();
  if (wanted) take(trainer, false);
}

void MultiNodeSnapshot::on_error(Trainer& trainer, const std::exception&) {
  if (!options_.snapshot_on_error || !is_first()) return;
  std::string path = trainer.out() + "/" + detail::name_of(options_.filename, trainer);
  std::error_code error;
  if (std::filesystem::exists(path, error)) return;  // of all ranks
  if (!has_all_states(trainer)) {
    std::fprintf(stderr,
                 "snapshot: no %s of the run that failed: other ranks keep a share of the "
                 "optimizer's states\n",
                 path.c_str());
    return;
  }
  detail::write(NpzContent(trainer), trainer, options_);
}

void MultiNodeSnapshot::on_interrupt(Trainer& trainer) {
  if (!ends_together()) return;
  std::shared_ptr<const std::string> written = take(trainer, true);
  if (written->empty()) return;
  std::fprintf(stderr, "snapshot: %s has the run up to here; with .autoload = true it goes on\n",
               written->c_str());
}

void MultiNodeSnapshot::finalize() { options_.writer.finalize(); }

}  // namespace rensa::extensions
