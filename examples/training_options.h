// The command line that the programs which train share, and what follows from it for any model.
#pragma once

#include <rensa/rensa.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What every program that trains may be told. A program sets its own defaults, and adds to it what
/// it alone has.
struct TrainingOptions {
  std::vector<rensa::Device> devices;  // as many as the program works on; all of them are there
  std::int64_t epoch = 20;
  std::int64_t iterations = 0;  // 0: as many as the epochs have
  std::int64_t batchsize = 100;
  std::string dtype = "float32";  // or bf16, mixed_bf16, mixed16
  double gradient_clipping = 0;   // 0: none
  bool capture = false;
  bool resume = false;
  std::string out = "result";
  std::optional<std::uint64_t> seed;

  rensa::Device device() const { return devices.at(0); }
  /// The devices by the names that a ParallelUpdater wants.
  std::vector<std::pair<std::string, rensa::Device>> replicas() const;
  /// When the run is over.
  rensa::training::Trigger stop() const;
  /// optimizer.setup(model), with the clipping, and what the dtype asks of an optimizer.
  void setup(const rensa::Optimizer& optimizer, rensa::Link& model) const;
  /// What there is to see on the way: a bar on a terminal, elsewhere a line with the `entries` each
  /// 10 seconds; and with --resume a snapshot after each epoch, from the latest of which the run
  /// goes on. To be called behind the program's own extensions.
  void extend(const rensa::training::Trainer& trainer,
              const std::vector<std::string>& entries = {"main/loss"}) const;
  /// Prints how many iterations were replays, for --capture.
  void print_replays(const rensa::CaptureStats& stats) const;
  /// "device: cpu; batch size: 100; ..."
  std::string str() const;
};

/// What a program is, and which of the common arguments it cannot honour.
struct TrainingProgram {
  const char* description;
  // GPUs that it cannot do without, unless told to; 0: one device of any kind. kAnyNumber
  // (arguments.h): as many as it is given.
  int num_gpus = 0;
  bool capture = true, resume = true, iterations = true, epoch = true;
};

class TrainingArguments {
 public:
  /// `options` holds the defaults now, and the arguments when run() calls the program.
  TrainingArguments(const TrainingProgram& program, TrainingOptions* options);
  ~TrainingArguments();

  // What the program adds; what is there before is the default. Numbers are positive, or 0 where
  // that is the default.
  TrainingArguments& number(const std::string& name, std::int64_t* value, const std::string& help);
  TrainingArguments& real(const std::string& name, double* value, const std::string& help);
  TrainingArguments& text(const std::string& name, std::string* value, const std::string& help);
  TrainingArguments& choice(const std::string& name, std::string* value,
                            const std::vector<std::string>& choices, const std::string& help);

  /// Reads the command line and calls `train` with the seed set, in the scope of the dtype. Returns
  /// the exit status: 2 where a device that is needed is not there, 1 for any other failure, 130
  /// after Ctrl-C and 143 after SIGTERM, as shells have it.
  int run(int argc, char** argv, const std::function<void()>& train);

 private:
  void add_devices(int num_gpus);  // the arguments that say on which

  struct State;
  std::unique_ptr<State> state_;
};
