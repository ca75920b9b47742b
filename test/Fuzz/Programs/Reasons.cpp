// The table of legitimate refusals. A refusal that has no row is a finding.

#include "Check.h"

#include "llvm/Support/Regex.h"

using namespace accel;
using namespace accel::fuzz;

static constexpr Reason kReasons[] = {
    {"batch does not divide",
     "^dist-annotate: .*dimension [0-9]+ of size [0-9]+ cannot be split",
     "ranks and micro-batches have as many samples each", false},
    {"samples meet in micro-batches", "needs the samples of all micro-batches",
     "a micro-batch is computed by itself", true},
    {"gradients rounded in micro-batches",
     "its [a-z]+ over all micro-batches is needed before the backward can "
     "begin, and depends on @fp8/",
     "parts whose gradients are rounded are as many as ranks", false},
    {"loss of all micro-batches", "is not additive over the batch",
     "a loss that is no sum over samples is none over micro-batches", true},
    {"loss of all micro-batches, of several chunks",
     "needs its [a-z]+ over all micro-batches before the backward can begin, "
     "of "
     "what another chunk makes",
     "a loss that is no sum over samples is none over micro-batches", true},
    {"sums of sums of all micro-batches",
     "needs a sum over all micro-batches of what itself needs such a sum",
     "a loss that is no sum over samples is none over micro-batches", true},
    {"the update reads one micro-batch",
     "is of a single micro-batch, and the update, which runs once for all, "
     "reads it",
     "a loss that is no sum over samples is none over micro-batches", true},
    {"parts of a batch that is not first",
     "cannot give [0-9]+ parts of a batch scales of their own",
     "parts of a batch are parts of the first dimension", false},
    {"one number of a channel",
     "expected more than one number of each channel to take statistics of",
     "one number has no variance", false},
    {"too few places to cut",
     "expected at least [0-9]+ places to cut the model",
     "no chunk of a pipeline is empty", false},
    {"too few micro-batches in flight",
     "micro-batches in flight: expected at least as many",
     "a schedule runs as many at once", false},
    {"nothing to measure",
     "expected a step that rounds to float16 or to 8 bits for --metrics",
     "what is measured is there", false},
    {"nothing to train", "expected a parameter to train, found none",
     "a step updates something", false},
    {"loss of no parameter",
     "expected a loss that depends on a trained parameter",
     "a step has a gradient", false},
};

llvm::ArrayRef<Reason> fuzz::getReasons() { return kReasons; }

const Reason *fuzz::findReason(llvm::StringRef pass, llvm::StringRef said,
                               const Program &program) {
  std::string sentence = (pass + ": " + said).str();
  for (const Reason &reason : kReasons)
    if (llvm::Regex(reason.pattern).match(sentence) &&
        !(reason.ofMixedRows && program.keepsRows))
      return &reason;
  return nullptr;
}
