// Parameters and buffers between the ranks' memory and that which a calling
// program shares: each rank moves the pieces that it holds.

#ifndef ACCEL_RUNTIME_RUN_SHAREDWEIGHTS_H
#define ACCEL_RUNTIME_RUN_SHAREDWEIGHTS_H

#include "Run/CallServer.h"
#include "Run/Train.h"

namespace accel::rt {

/// One rank's side. Every call is one of all ranks.
class SharedWeights {
public:
  /// The arguments must outlive it.
  SharedWeights(const RankParts &parts, const CallServer &server);

  /// Writes the values as they are.
  Status get();
  /// Takes those that are there; or else no rank takes anything, and `refused`
  /// says why, on a rank that has found it.
  Status set(bool &isTaken, std::string &refused);

private:
  /// A value that no rank keeps as it is in files.
  struct Unheld {
    const StatePlan *state;
    const OpenTensor *value;
    const TensorRange *shared;
  };
  struct Piece {
    PieceMover mover;
    Address address;
    bool isWriter;
  };
  Status readWhole(const TensorRange &range, const StatePlan &state,
                   std::vector<char> &bytes) const;
  Status checkUnheld(const Unheld &unheld, std::string &refused) const;

  const RankParts &parts;
  std::vector<Piece> pieces;
  std::vector<Unheld> unheld; ///< This rank's share of them.
  std::vector<char> staging;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_SHAREDWEIGHTS_H
