// The checks on training flags that need no model.

#include "Passes.h"
#include "UpdateRule.h"
#include "dialects/NN/Entry.h"
#include "lib/Autodiff/OptionError.h"
#include "llvm/Support/GlobPattern.h"

using namespace llvm;
using namespace accel::autodiff;
namespace nn = accel::nn;

/// `cross_entropy:LOGITS,LABELS`, or the name of an output.
static Error checkLoss(StringRef loss) {
  if (loss.empty())
    return fail("expected --loss with --train: the output that is the loss, or "
                "cross_entropy:LOGITS,LABELS");
  if (!loss.consume_front("cross_entropy:"))
    return Error::success();
  auto [logits, labels] = loss.split(',');
  if (logits.empty() || labels.empty() || labels.contains(','))
    return fail("expected --loss=cross_entropy:LOGITS,LABELS, found "
                "'cross_entropy:" +
                loss + "'");
  return Error::success();
}

static Error checkPatterns(StringRef flag, ArrayRef<std::string> patterns) {
  for (const std::string &pattern : patterns) {
    Expected<GlobPattern> glob = GlobPattern::create(pattern);
    if (pattern.empty() || !glob) {
      consumeError(glob.takeError());
      return fail("expected " + flag + "=PATTERN with a glob pattern, found '" +
                  pattern + "'");
    }
  }
  return Error::success();
}

/// What can be called: each once, the step among it.
static Error checkEntries(ArrayRef<std::string> entries,
                          ArrayRef<std::string> evalOutputs) {
  Error errors = Error::success();
  auto add = [&](const Twine &message) {
    errors = joinErrors(std::move(errors), fail(message));
  };
  for (auto [place, entry] : enumerate(entries))
    if (!nn::symbolizeEntryKind(entry))
      add("expected step, eval or forward in --entries, found '" + entry + "'");
    else if (is_contained(entries.take_front(place), entry))
      add("expected '" + entry + "' once in --entries, found it twice");
  auto has = [&](nn::EntryKind kind) {
    return entries.empty() ||
           is_contained(entries, nn::stringifyEntryKind(kind));
  };
  if (!has(nn::EntryKind::step))
    add("expected step among --entries, which --train is for; leave --train "
        "out to compile a forward alone");
  if (!evalOutputs.empty() && !has(nn::EntryKind::eval))
    add("expected eval among --entries, which gives --eval-outputs");
  return errors;
}

Error accel::autodiff::checkTrainOptions(const TrainOptions &options) {
  Error errors =
      joinErrors(checkPatterns("--trainable", options.step.trainable),
                 checkPatterns("--frozen", options.step.frozen));
  auto add = [&](Error error) {
    errors = joinErrors(std::move(errors), std::move(error));
  };
  if (!options.mixedPrecision.empty() && options.mixedPrecision != "bf16" &&
      options.mixedPrecision != "fp16" && options.mixedPrecision != "fp8")
    add(fail("expected --mixed-precision=bf16, fp16 or fp8, found '" +
             options.mixedPrecision + "'"));
  if (!options.enabled)
    return errors;
  add(checkLoss(options.step.loss));
  if (options.rowMask && StringRef(options.step.loss).contains(':'))
    add(fail("cannot use --row-mask with --loss=" + options.step.loss +
             ", whose labels of -100 leave rows out: acc-run "
             "--last-batch=keep needs no mask there"));
  add(checkEntries(options.inference.entries, options.inference.evalOutputs));
  Expected<UpdateRule> rule =
      parseUpdateRule(options.step.optimizer, options.step.settings);
  const auto &entries = options.inference.entries;
  if (!rule)
    add(rule.takeError());
  else if (rule->evaluatesAverages && entries.size() == 1)
    add(fail("expected eval or forward among --entries with "
             "'ema.evaluate=true', found step alone"));
  return errors;
}
