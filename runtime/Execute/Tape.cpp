// Noting spans: a place is taken by counting, and is then its stream's alone.

#include "Execute/Tape.h"

namespace accel::rt {

TapeRecorder::TapeRecorder(Tape &tape, size_t count)
    : tape(tape), streams(count) {
  for (Stream &stream : streams)
    stream.owner = this;
}

void TapeRecorder::call(size_t entry, uint64_t spans) {
  // One that is left out is the last: the tape is a beginning, without gaps.
  keeps = tape.callsKept == tape.callsMade && tape.callsKept < Tape::kCalls &&
          tape.used + spans <= Tape::kSpans;
  ++tape.callsMade;
  if (keeps)
    tape.entries[tape.callsKept++] = static_cast<uint8_t>(entry);
}

TapeSpan &TapeRecorder::take(const TapeSpan &span) {
  TapeSpan &taken = tape.spans[tape.used.fetch_add(1)];
  taken = span;
  return taken;
}

void TapeRecorder::begins(size_t at, const Work &work, int64_t microBatch) {
  Stream &stream = streams[at];
  ends(at);
  if (!keeps)
    return;
  TapeSpan span{};
  span.command = static_cast<int32_t>(work.number);
  span.microBatch = static_cast<int32_t>(microBatch);
  span.call = tape.callsKept - 1;
  span.kind = work.isPoison ? TapeSpan::Poison : TapeSpan::Command;
  span.stream = static_cast<uint16_t>(at);
  span.begin = steadyNanoseconds();
  stream.open = &take(span);
  stream.waits = 0;
  waitListener = &stream;
}

void TapeRecorder::ends(size_t at) {
  Stream &stream = streams[at];
  if (!stream.open)
    return;
  stream.open->end = steadyNanoseconds();
  stream.open = nullptr;
  waitListener = nullptr;
}

void TapeRecorder::Stream::waited(int64_t begin, int64_t end) {
  if (waits < Tape::kWaits) {
    TapeSpan span = *open;
    span.begin = begin;
    span.end = end;
    span.kind = TapeSpan::Wait;
    wait = &owner->take(span);
    ++waits;
  }
  wait->end = end;
}

} // namespace accel::rt
