// What a call of an entry reads.

#ifndef ACCEL_RUNTIME_RUN_OPENCALL_H
#define ACCEL_RUNTIME_RUN_OPENCALL_H

#include "Run/Rank.h"

namespace accel::rt {

/// Opens what `call`, whose entry is known, is called on: files of a folder
/// (none if its name is empty), or tokens and files. `warn`, which may be
/// empty, hears of rows that an evaluation leaves out. Errors: those of
/// Inputs::open and DataFeed::open, and too few samples for a batch.
Status openCall(const Executable &plan, const std::string &folder,
                const DataSource &source, bool executes,
                const std::function<void(const std::string &)> &warn,
                Call &call);

/// Whether rows that fill up the last batch of an epoch can be left out of the
/// loss of `call`, which was opened. Errors: why not.
Status checkLastBatch(const Executable &plan, const DataSource &source,
                      bool executes, const Call &call);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_OPENCALL_H
