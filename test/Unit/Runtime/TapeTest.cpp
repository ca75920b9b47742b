// Tapes of what ranks do: what is kept of waits, of calls that have no room,
// and of commands that never ended.

#include "Execute/Tape.h"
#include "Base/WaitSpan.h"
#include "Files.h"
#include "Run/Trace.h"
#include "TinyExecutable.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace accel::rt;
using namespace accel::rt::test;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

/// A tape of zeros, of which little is touched.
struct ZeroTape {
  ZeroTape() : tape(static_cast<Tape *>(std::calloc(1, sizeof(Tape)))) {}
  ~ZeroTape() { std::free(tape); }
  Tape *tape;
};

Work workOf(int64_t number) {
  Work work;
  work.number = number;
  return work;
}

} // namespace

TEST(TapeTest, WaitsStandBehindTheirCommand) {
  ZeroTape zero;
  Tape &tape = *zero.tape;
  TapeRecorder recorder(tape, 1);
  recorder.call(1, 10);
  recorder.begins(0, workOf(7), 3);
  for (uint32_t i = 0; i < Tape::kWaits + 3; ++i)
    WaitSpan();
  recorder.ends(0);
  WaitSpan(); // of no command
  recorder.begins(0, workOf(8), -1);
  recorder.begins(0, workOf(9), -1); // a device that does not tell ends
  ASSERT_EQ(tape.used, 1 + Tape::kWaits + 2);
  for (uint32_t i = 0; i < tape.used; ++i) {
    const TapeSpan &span = tape.spans[i];
    bool isWait = i >= 1 && i <= Tape::kWaits;
    EXPECT_EQ(span.kind, isWait ? TapeSpan::Wait : TapeSpan::Command) << i;
    EXPECT_EQ(span.command, i <= Tape::kWaits ? 7 : i == tape.used - 1 ? 9 : 8);
    EXPECT_GT(span.begin, 0);
    if (isWait) {
      EXPECT_GE(span.begin, tape.spans[i - 1].begin);
      EXPECT_LE(span.end, tape.spans[0].end);
      EXPECT_EQ(span.microBatch, 3);
    }
  }
  EXPECT_EQ(tape.spans[tape.used - 1].end, 0);
  EXPECT_LE(tape.spans[tape.used - 2].end, tape.spans[tape.used - 1].begin);
  recorder.ends(0);
}

TEST(TapeTest, CallsAreThereWholeOrNotAtAll) {
  ZeroTape zero;
  Tape &tape = *zero.tape;
  TapeRecorder recorder(tape, 1);
  for (uint64_t spans : {uint64_t(2), uint64_t(Tape::kSpans), uint64_t(1)}) {
    recorder.call(0, spans);
    recorder.begins(0, workOf(0), -1);
    WaitSpan();
    recorder.ends(0);
  }
  EXPECT_EQ(tape.callsMade, 3u);
  EXPECT_EQ(tape.callsKept, 1u) << "a call behind one that is left out";
  EXPECT_EQ(tape.used, 2u);
}

TEST(TapeTest, WhatNeverEndedIsTold) {
  TemporaryFolder folder;
  Executable plan = tinyExecutable(2);
  plan.programs[0].bodies[0].commands[0].node = "a \"quoted\"\\\n node";
  plan.programs[0].bodies[0].commands[0].insertedBy = "a-pass";
  Trace trace;
  ASSERT_TRUE(trace.create(folder / "t.json", 2).ok());
  for (int64_t rank : {0, 1}) {
    TapeRecorder recorder(trace.tape(rank), 1);
    recorder.call(0, 2);
    recorder.begins(0, workOf(0), -1);
    if (rank == 0)
      recorder.ends(0);
  }
  EXPECT_EQ(waitListener, nullptr) << "of a recorder that is gone";
  std::string warning;
  auto warn = [&](const std::string &text) { warning = text; };
  ASSERT_TRUE(trace.write(plan, 0, warn).ok());
  EXPECT_EQ(warning, "");
  std::string text = slurp(folder / "t.json");
  size_t second = text.find("rank 1 · dp 1");
  ASSERT_NE(second, std::string::npos);
  EXPECT_THAT(text.substr(0, second), Not(HasSubstr("unfinished")));
  EXPECT_THAT(text.substr(second), HasSubstr("\"unfinished\":true"));
  EXPECT_THAT(text, HasSubstr("\"node\":\"a \\\"quoted\\\"\\\\\\u000a node\""));
  EXPECT_THAT(text, HasSubstr("\"inserted_by\":\"a-pass\""));
}
