// The generators behind the names: the order of one rank's tasks, from the
// papers that describe them.

#ifndef ACCEL_LIB_PIPELINE_GENERATORS_H
#define ACCEL_LIB_PIPELINE_GENERATORS_H

#include "NamedSchedules.h"

namespace accel::pipeline {

/// All forwards, then all backwards (Huang et al. 2019, arXiv:1811.06965).
std::vector<Task> orderGPipe(Shape shape, int64_t rank);

/// PipeDream-Flush (Narayanan et al. 2021, arXiv:2006.09503): rank r of p runs
/// p - 1 - r forwards ahead, then one forward, one backward in turn.
std::vector<Task> order1F1B(Shape shape, int64_t rank);

/// 1F1B with 2 (p - 1 - r) forwards ahead, so that a transfer may take as long
/// as a task before anybody waits for it (Zhuang et al. 2022,
/// arXiv:2211.05322).
std::vector<Task> orderEager1F1B(Shape shape, int64_t rank);

/// Megatron's interleaved 1F1B (Narayanan et al. 2021, arXiv:2104.04473):
/// groups of micro-batches go through all chunks of a rank one after another.
/// Where p divides M they are p of them, as published; otherwise groups are as
/// even as they can be, so that any M will do.
std::vector<Task> orderInterleaved(Shape shape, int64_t rank);

/// ZB-H1 (Qi et al. 2023, arXiv:2401.10241, section 2.1): 1F1B with split
/// backwards. Rank r defers its weight gradients by r micro-batches, so that
/// all ranks have as many micro-batches in flight, and no more than 1F1B.
std::vector<Task> orderZBH1(Shape shape, int64_t rank);

/// ZB-H2 (section 2.2 there): 2 (p - 1 - r) + 1 forwards ahead; towards the end
/// weight gradients make room for input gradients, so that no rank waits.
std::vector<Task> orderZBH2(Shape shape, int64_t rank);

/// ZB-V (section 6 there), of two chunks per rank. For M < 2p - 1 the schedule
/// of 2p - 1 without the micro-batches that there are not.
std::vector<Task> orderZBV(Shape shape, int64_t rank);

/// DualPipeV (https://github.com/deepseek-ai/DualPipe, after Qi et al. 2025,
/// "DualPipe could be better without the Dual"), of two chunks per rank. A
/// forward and a backward that it would run at once follow each other. For
/// M < 2p the schedule of 2p without the micro-batches that there are not.
std::vector<Task> orderDualPipeV(Shape shape, int64_t rank);

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_GENERATORS_H
