// The table of the target: what one rank and its links do in a second. Whatever
// chooses by cost asks here, so that a cut, a schedule and a reshard agree on
// what a byte is worth; no result depends on a figure.

#ifndef ACCEL_LIB_COST_MACHINE_H
#define ACCEL_LIB_COST_MACHINE_H

#include <algorithm>

namespace accel::cost {

/// What one rank does: floating-point operations and bytes of memory a second,
/// and what a command takes whatever it does.
struct Rank {
  double flopsPerSecond = 0, bytesPerSecond = 0, secondsPerCommand = 0;

  /// Of a task or an op: its arithmetic or what it moves, whichever takes
  /// longer (Williams, Waterman and Patterson, Roofline, 2009).
  constexpr double getSeconds(double flops, double bytes) const {
    return secondsPerCommand +
           std::max(flops / flopsPerSecond, bytes / bytesPerSecond);
  }
};

/// What a transfer takes whatever its size (α), and how many bytes follow each
/// other in a second (1/β).
struct Link {
  double seconds = 0, bytesPerSecond = 0;

  constexpr double getSeconds(double bytes) const {
    return seconds + bytes / bytesPerSecond;
  }
};

/// A target by its figures; links by what goes over them.
struct Machine {
  Rank rank;
  Link copy;       ///< within a rank: dearer than nothing
  Link storage;    ///< to a file on a disk of the machine, or from it
  Link message;    ///< from one rank to another
  Link collective; ///< each of a group's steps, for which its ranks meet
};

/// Round figures, of which only ratios matter: they put choices in order. What
/// is compiled for where nobody says more (a mesh's `links`, a file of
/// `--links`): cores and memory of one machine with ranks that share it.
inline constexpr Machine kMachine = {{6.4e11, 4e10, 0},
                                     {1e-7, 1e11},
                                     {1e-4, 2.5e9},
                                     {1.5625e-6, 1e10},
                                     {5e-6, 1e10}};

/// The same in one measure, floating-point operations of a rank: what a byte
/// that goes to memory or comes from there is worth, one that goes to another
/// rank, and a message.
inline constexpr double kFlopsPerByteMoved = kMachine.rank.flopsPerSecond /
                                             kMachine.rank.bytesPerSecond,
                        kFlopsPerByteSent = kMachine.rank.flopsPerSecond /
                                            kMachine.message.bytesPerSecond,
                        kFlopsPerMessage = kMachine.rank.flopsPerSecond *
                                           kMachine.message.seconds;

/// Of an amount of work in that measure.
constexpr double getSeconds(double work) {
  return work / kMachine.rank.flopsPerSecond;
}

} // namespace accel::cost

#endif // ACCEL_LIB_COST_MACHINE_H
