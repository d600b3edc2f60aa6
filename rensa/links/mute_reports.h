// MuteReports: work whose reports nobody wants.
#pragma once

namespace rensa {

/// In its scope nothing that the thread reports goes anywhere, nor do replays of what is recorded
/// there report it.
class [[nodiscard]] MuteReports {
 public:
  /// Does nothing where `mute` is false.
  [[nodiscard]] explicit MuteReports(bool mute = true);
  ~MuteReports();
  MuteReports(const MuteReports&) = delete;
  MuteReports& operator=(const MuteReports&) = delete;

 private:
  bool previous_;
};

}  // namespace rensa
