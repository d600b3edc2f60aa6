// Files of a run that goes on: a good one, of which the input damages entries; sums and names stay
// right. For each: the entry, a place in it (two bytes), how many bytes go there, how many come,
// and those. A run that took the file does two iterations.
#include <vector>

#include "fuzz/files.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/zip.h"
#include "rensa/core/files.h"
#include "rensa/links/classifier.h"
#include "rensa/links/linear.h"
#include "rensa/optimizers/adam.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"

namespace {

using namespace rensa;

struct Run {
  L::Classifier<L::Linear> model{L::Linear(2, 3)};
  optimizers::Adam optimizer;
  std::unique_ptr<training::Trainer> trainer;

  Run() {
    optimizer.setup(model);
    Array x = xp::arange(10, float32, cpu()).reshape({5, 2}), t = xp::array({0, 1, 2, 0, 1}, cpu());
    iterators::SerialIterator iterator(datasets::TupleDataset(x, t), 2);
    trainer = std::make_unique<training::Trainer>(training::StandardUpdater(iterator, optimizer),
                                                  training::Trigger(4, "iteration"));
    trainer->extend(extensions::LogReport({.filename = ""}));
    trainer->extend(extensions::ExponentialShift("alpha", 0.5));
  }
};

struct Entry {
  std::string name, content;
};

/// Of a run that has made two iterations.
std::vector<Entry> good_entries() {
  xp::random::seed(0);
  testing::TemporaryFolder folder;
  Run run;
  run.trainer->updater().update();
  run.trainer->updater().update();
  serializers::save_npz(folder / "run.npz", *run.trainer);
  FileReader file(folder / "run.npz");
  ZipReader zip(file);
  std::vector<Entry> entries;
  for (const std::string& name : zip.names()) entries.push_back({name, zip.read(name)});
  return entries;
}

std::string archive_of(const std::vector<Entry>& entries) {
  std::ostringstream stream;
  FileWriter file(stream);
  ZipWriter zip(file);
  for (const Entry& entry : entries) zip.add(entry.name, {entry.content}, false);
  zip.finish();
  file.finish();
  return stream.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Entry> good = good_entries();
  std::vector<Entry> entries = good;
  for (fuzz::Input input(data, size); !input.empty();) {
    std::string& content = entries[input.byte() % entries.size()].content;
    std::size_t at = std::min(input.number(), content.size());
    std::size_t gone = input.byte(), come = input.byte();
    content.replace(at, gone, input.bytes(come));
  }
  Run run;
  MemoryFile file("fuzz", archive_of(entries));
  try {
    serializers::load_npz(file.path(), *run.trainer, {.strict = false});
  } catch (const SerializationError&) {
    return 0;
  } catch (const ShapeError&) {
    return 0;
  }
  run.trainer->updater().update();
  run.trainer->updater().update();
  return 0;
}
