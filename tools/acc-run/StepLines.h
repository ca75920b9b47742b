// The lines of text of training steps, for people: on a terminal the line
// rewrites itself for each step; elsewhere, under mpirun always, one comes once
// a second and for the first and the last step, so that a log stays readable.

#ifndef ACCEL_TOOLS_ACC_RUN_STEPLINES_H
#define ACCEL_TOOLS_ACC_RUN_STEPLINES_H

#include "StepFormat.h"

#include <chrono>
#include <cstdio>

namespace accel::rt {

/// Whether somebody sees lines that are rewritten there: a terminal that can
/// move its cursor (TERM is not dumb), and not the one that mpirun and its like
/// give a rank, wherever what is said there goes.
bool isOnTerminal(int descriptor);

class StepLines {
public:
  /// Lines go to `stream`; where `every` is given, of the steps whose number it
  /// divides.
  StepLines(FILE *stream, int64_t every);
  /// Takes a step; `seconds` are those that it took, `secondsLeft` as in
  /// ToldStep.
  void add(const StepResult &step, double secondsLeft);
  /// Prints the last step if that has not happened, as when the run ended
  /// before its last one, and ends a line that would be rewritten.
  void finish();

private:
  void print();

  FILE *stream;
  int64_t every;
  bool terminal, pending = false, first = true;
  std::chrono::steady_clock::time_point printed;
  /// Steps since the last line, the seconds they took, and the last of them.
  int64_t steps = 0;
  double seconds = 0;
  ToldStep newest;
};

} // namespace accel::rt

#endif // ACCEL_TOOLS_ACC_RUN_STEPLINES_H
