// `checkpoint.json`: what a checkpoint holds, from where training goes on, and
// the hashes by which its files are checked. Its last field is the hash of the
// text before it.

#ifndef ACCEL_RUNTIME_STATE_MANIFEST_H
#define ACCEL_RUNTIME_STATE_MANIFEST_H

#include "Data/SampleOrder.h"
#include "State/BestEvaluation.h"
#include "State/CheckpointFolder.h"
#include "accel-rt/Version.h"

namespace accel::rt {

/// More steps than any run makes: what is added to them does not overflow.
inline constexpr int64_t kMaxSteps = int64_t(1) << 40;

struct Manifest {
  int64_t version = kCheckpointVersion; ///< That it was read in.
  int64_t step = 0; ///< Finished steps, skipped ones among them.
  int64_t seed = 0; ///< Compiled into the program.
  /// How many samples were read follows from the step and the first one.
  std::optional<DataCursor> data;
  /// Of a run that keeps the best checkpoint, or ends where evaluations are no
  /// better.
  std::optional<BestEvaluation> evaluations;
  /// For people: the layout of the run that wrote it.
  std::vector<Axis> mesh;
  int64_t microBatches = 1;
  /// Of the header of each of kCheckpointFiles.
  uint64_t headerHashes[kNumCheckpointFiles] = {};
  struct State {
    std::string name, role;
    std::vector<std::string> aliases;
    int file = kModel;
    uint64_t hash = 0; ///< Of its bytes in the file.
  };
  std::vector<State> states;
};

/// The manifest's text with room for what differs from one checkpoint of a run
/// to the next, so that writing it allocates nothing.
class ManifestText {
public:
  /// Lays out everything but the step, the evaluations and the states' hashes.
  void prepare(const Manifest &manifest);
  void setStep(int64_t step);
  /// Requires a manifest that was prepared with evaluations.
  void setEvaluations(const BestEvaluation &best);
  void setHash(size_t state, uint64_t hash);
  /// Fills in the hash of the text.
  void seal();
  const std::string &text() const { return content; }

private:
  std::string content;
  int64_t batch = 0, firstStep = 0; ///< Of the data.
  size_t stepAt = 0, readAt = 0, bestAt = 0, sealAt = 0;
  std::vector<size_t> hashesAt;
};

/// Reads the manifest of the checkpoint at `folder`. Errors: no checkpoint,
/// damaged, of a later version.
Status readManifest(const std::string &folder, Manifest &manifest);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STATE_MANIFEST_H
