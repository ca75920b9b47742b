// The files of a call, and the rows that it leaves out.

#include "Run/OpenCall.h"

#include "Feed/SeparateRows.h"

namespace accel::rt {

Status openCall(const Executable &plan, const std::string &folder,
                const DataSource &source, bool executes,
                const std::function<void(const std::string &)> &warn,
                Call &call) {
  call.tensors = tensorsOf(plan, call.entry);
  call.hasData = !source.text.empty();
  if (call.hasData)
    ACCEL_RT_RETURN_IF_ERROR(call.data.open(call.tensors.inputs, source));
  if (executes)
    ACCEL_RT_RETURN_IF_ERROR(
        call.inputs.open(plan, call.tensors.inputs, folder,
                         call.hasData ? &call.data : nullptr));
  if (call.entry != "eval" || !call.hasData)
    return Status();
  std::string why;
  if (executes && call.data.numLeft() && !call.isCutShort()) {
    if (plan.separateRows)
      ACCEL_RT_RETURN_IF_ERROR(whyNotSeparate(*plan.separateRows,
                                              call.tensors.inputs, call.inputs,
                                              call.data, why));
    else
      why = "the loss is not known to be a mean over rows that do not depend "
            "on each other";
  }
  call.countsRest = executes && why.empty();
  if (call.numBatches() < 1 && !call.numRest())
    return Status::error("expected at least one batch of samples to evaluate "
                         "on in " +
                         inQuotes(source.text) + ", found less" +
                         (why.empty() ? "" : ": " + why));
  if (!why.empty() && warn)
    warn("the evaluation leaves out the last " +
         std::to_string(call.data.numLeft()) + " of the " +
         std::to_string(call.data.numSamples()) + " rows of " +
         inQuotes(source.text) + ", which make no whole batch of " +
         std::to_string(call.data.batchSize()) + ": " + why);
  return Status();
}

/// Rows of a last batch that do not count leave the step alone where it takes a
/// mask of them; or where the loss is the compiler's own cross-entropy, the sum
/// over labels that count over their number, and where no row changes what
/// another comes to: their labels do not count. Of a loss that the model gives
/// the file does not say which labels it ignores, if any.
Status checkLastBatch(const Executable &plan, const DataSource &source,
                      bool executes, const Call &call) {
  if (source.last != SampleOrder::Keep || !executes)
    return Status();
  auto refused = [](const std::string &why) {
    return Status::error("cannot use --last-batch=keep: " + why +
                         "; give next or drop");
  };
  std::string why;
  if (plan.rowMask) {
    ACCEL_RT_RETURN_IF_ERROR(whyNotSeparate(
        plan.rowMask->rows, call.tensors.inputs, call.inputs, call.data, why));
    return why.empty() ? Status() : refused(why);
  }
  if (plan.unshiftedLabels.empty())
    return refused("rows of a step that stand for no sample are left out by a "
                   "mask, which takes a program that was compiled with "
                   "--row-mask, or by their labels, with --loss "
                   "cross_entropy:LOGITS,LABELS");
  if (!call.data.feeds(plan.unshiftedLabels))
    return refused("input " + inQuotes(plan.unshiftedLabels) +
                   " has the labels, and the data do not feed it");
  if (!plan.separateRows || plan.separateRows->terms.empty())
    return refused(plan.hasEntry("eval")
                       ? "the loss is not known to be one over rows that do "
                         "not depend on each other"
                       : "the entry eval says whether rows depend on each "
                         "other, which was not compiled: say --entries "
                         "step,eval");
  ACCEL_RT_RETURN_IF_ERROR(whyNotSeparate(
      *plan.separateRows, call.tensors.inputs, call.inputs, call.data, why));
  return why.empty() ? Status() : refused(why);
}

} // namespace accel::rt
