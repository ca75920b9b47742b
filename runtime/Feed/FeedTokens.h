// The task that fills an input [batch, length] of integers from a file of
// tokens: with the tokens, with the next ones, or with ones for a mask.

#ifndef ACCEL_RUNTIME_FEED_FEEDTOKENS_H
#define ACCEL_RUNTIME_FEED_FEEDTOKENS_H

#include "Data/TokenCorpus.h"
#include "accel-rt/Device.h"

namespace accel::rt {

enum class TokenContent { Tokens, NextTokens, Ones };

/// Fills the piece of `read` at `coordinates` with the tokens of samples, which
/// are as long as the corpus was opened with, or with those behind them, -100
/// where there is none (TokenFile::numFollowed);
/// with `isIgnored` rows that do not count (SampleOrder::numRows) get -100.
/// Before each step, `finishedSteps` says how many were finished; all
/// references must outlive the task. Each run tells the system which samples
/// the same piece of the next step will have.
std::unique_ptr<HostTask>
feedTokens(const TokenCorpus &tokens, TokenContent content,
           const SampleOrder &order, bool isIgnored, const ReadCommand &read,
           const Coordinates &coordinates, Memory &memory,
           const int64_t &finishedSteps);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FEED_FEEDTOKENS_H
