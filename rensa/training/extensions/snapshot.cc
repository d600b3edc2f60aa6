// Snapshots of one trainer, link or optimizer.
#include "rensa/training/extensions/snapshot.h"

#include <cstdio>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/extensions/snapshot_files.h"

namespace rensa::extensions {

using training::Trainer;

Snapshot::Snapshot(SnapshotOptions options)
    : options_(std::move(options)), target_([](Trainer& t, Visitor& v) { t.members(v); }) {
  detail::check_options(options_);
}

Snapshot::Snapshot(const Link& target, SnapshotOptions options) : Snapshot(std::move(options)) {
  of_trainer_ = false;
  target_ = [anchor = target.anchor()](Trainer&, Visitor& v) {
    if (!anchor->link) throw ValueError("snapshot_object: its model has been destroyed");
    Members(*anchor->link).show(v);
  };
}

Snapshot::Snapshot(const Optimizer& target, SnapshotOptions options)
    : Snapshot(std::move(options)) {
  of_trainer_ = false;
  target_ = [target](Trainer&, Visitor& v) { target.members(v); };
}

void Snapshot::resume(Trainer& trainer) {
  if (!options_.autoload) return;
  detail::load_latest(trainer, options_.filename, [&](const std::string& path) -> std::string {
    if (of_trainer_) {
      auto file = serializers::NpzContent::parse(path, rensa::detail::read_whole_file(path));
      return detail::load_rank(path, std::move(file), 0, 1, trainer);
    }
    serializers::load_npz(path, [&](Visitor& v) { target_(trainer, v); });
    return "";
  });
}

std::shared_ptr<const std::string> Snapshot::take(Trainer& trainer) {
  serializers::NpzContent content([&](Visitor& v) { target_(trainer, v); });
  return detail::write(std::move(content), trainer, options_);
}

void Snapshot::operator()(Trainer& trainer) {
  if (!options_.condition || options_.condition()) take(trainer);
}

void Snapshot::on_error(Trainer& trainer, const std::exception&) {
  if (options_.snapshot_on_error) take(trainer);
}

void Snapshot::on_interrupt(Trainer& trainer) {
  if (!options_.snapshot_on_interrupt.value_or(of_trainer_)) return;
  std::shared_ptr<const std::string> written = take(trainer);
  options_.writer.finalize();
  if (written->empty() || !of_trainer_) return;
  std::fprintf(stderr, "snapshot: %s has the run up to here; with .autoload = true it goes on\n",
               written->c_str());
}

void Snapshot::finalize() { options_.writer.finalize(); }

}  // namespace rensa::extensions
