// Tries named schedules and list schedules, and keeps the fastest that fits.

#include "Synthesise.h"
#include "PostTransfers.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace accel::pipeline {

/// Of so many list schedules, the fastest while transfers are left out,
/// transfers are posted: that takes longer than making them.
static constexpr size_t kPosted = 4;

/// What lies between the two parts of backwards, in schedules that have them.
static void addBytesBetween(Synthesis &synthesis, const Costs &costs) {
  const Placement &placement = synthesis.schedule.placement;
  for (auto [rank, tasks] : llvm::enumerate(synthesis.schedule.ranks))
    for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
      if (llvm::any_of(tasks, [chunk = chunk](const Task &task) {
            return task.kind == TaskKind::BackwardWeight && task.chunk == chunk;
          }))
        synthesis.simulation.activationBytes[rank] +=
            synthesis.slots.at(chunk, SlotKind::WeightGradient) *
            costs.chunks[chunk].betweenBytes;
}

Synthesis evaluate(std::string name, Schedule schedule,
                   const Problem &problem) {
  Synthesis result;
  result.name = std::move(name);
  result.schedule = std::move(schedule);
  // With a slot for each micro-batch nothing waits for a slot, so it ends.
  for (int64_t ofTransfers = 2;; ofTransfers *= 2) {
    result.slots = countSlots(result.schedule, problem.edges, ofTransfers);
    Expected<Posting> posting = postTransfers(result.schedule, problem.edges,
                                              result.slots, problem.costs);
    if (!posting) {
      assert(ofTransfers < problem.microBatches && "tasks wait for each other");
      consumeError(posting.takeError());
      continue;
    }
    result.posting = std::move(*posting);
    result.simulation =
        cantFail(simulate(result.schedule, problem.edges, result.slots,
                          &result.posting, problem.costs));
    addBytesBetween(result, problem.costs);
    return result;
  }
}

static SmallVector<int64_t> countSlotsOfRanks(const Synthesis &synthesis) {
  const Placement &placement = synthesis.schedule.placement;
  SmallVector<int64_t> slots(placement.ranks);
  for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
    slots[placement.rankOfChunk[chunk]] +=
        synthesis.slots.at(chunk, SlotKind::WeightActivation);
  return slots;
}

bool fits(const Synthesis &synthesis, const Problem &problem) {
  return llvm::all_of(
             countSlotsOfRanks(synthesis),
             [&](int64_t slots) { return slots <= problem.cap.slots; }) &&
         llvm::all_of(synthesis.simulation.activationBytes, [&](int64_t bytes) {
           return bytes <= problem.cap.bytes;
         });
}

std::vector<Synthesis> evaluateNamed(const Problem &problem) {
  std::vector<Synthesis> results;
  int64_t chunksPerRank = problem.costs.chunks.size() / problem.ranks;
  for (const NamedSchedule &named : getNamedSchedules()) {
    bool isAny = named.chunksPerRank == 0 && chunksPerRank > 1;
    if (named.chunksPerRank != chunksPerRank && !isAny)
      continue;
    std::string name = named.name.str();
    if (isAny)
      name += ":" + std::to_string(chunksPerRank);
    Synthesis result =
        evaluate(name,
                 cantFail(generate(named, {problem.ranks, chunksPerRank,
                                           problem.microBatches})),
                 problem);
    if (fits(result, problem))
      results.push_back(std::move(result));
  }
  return results;
}

static std::vector<Policy> listPolicies(int64_t chunksPerRank) {
  std::vector<Policy> policies;
  using First = Policy::First;
  for (First first : {First::Backward, First::Forward, First::Alternate})
    for (bool isSplit : {true, false})
      for (double patience : {0.0, 0.5})
        for (bool isDeepFirst : {true, false})
          // One chunk has nothing to choose from.
          if (isDeepFirst || chunksPerRank > 1)
            policies.push_back({first, isSplit, patience, isDeepFirst});
  return policies;
}

/// Of each rank the bytes of one slot of each chunk.
static std::vector<int64_t> countLeastBytes(const Placement &placement,
                                            const Costs &costs) {
  Slots least(placement.countChunks());
  for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
    least.at(chunk, SlotKind::Activation) =
        least.at(chunk, SlotKind::WeightActivation) = 1;
  return countActivationBytes(placement, least, costs);
}

/// Those on which each chunk can have a slot. Errors: see synthesise.
static Expected<SmallVector<Placement>> listPlacements(const Problem &problem) {
  int64_t chunks = problem.costs.chunks.size();
  if (problem.ranks < 1 || problem.microBatches < 1)
    return createStringError(
        "expected 1 or more ranks and micro-batches, got " +
        Twine(problem.ranks) + " and " + Twine(problem.microBatches));
  if (chunks == 0 || chunks % problem.ranks != 0)
    return createStringError("expected a multiple of " + Twine(problem.ranks) +
                             " chunks, as many on each rank, got " +
                             Twine(chunks));
  int64_t perRank = chunks / problem.ranks;
  if (perRank > problem.cap.slots)
    return createStringError("a rank of " + Twine(perRank) +
                             " chunks expects as many slots, the cap is " +
                             Twine(problem.cap.slots));
  SmallVector<Placement> placements = {
      Placement::interleaved(problem.ranks, perRank)};
  if (perRank == 2)
    placements.push_back(Placement::vee(problem.ranks));
  int64_t least = std::numeric_limits<int64_t>::max();
  llvm::erase_if(placements, [&](const Placement &placement) {
    int64_t most =
        *llvm::max_element(countLeastBytes(placement, problem.costs));
    least = std::min(least, most);
    return most > problem.cap.bytes;
  });
  if (placements.empty())
    return createStringError("the activations of one micro-batch need " +
                             Twine(least) + " bytes of a rank, the cap is " +
                             Twine(problem.cap.bytes));
  return placements;
}

static std::vector<ListSchedule>
makeListSchedules(const Problem &problem, ArrayRef<Placement> placements,
                  ArrayRef<Synthesis> named) {
  int64_t chunks = problem.costs.chunks.size();
  std::vector<ListSchedule> lists;
  for (const Placement &placement : placements) {
    std::vector<SmallVector<int64_t>> limits = {
        SmallVector<int64_t>(chunks, problem.microBatches)};
    for (const Synthesis &synthesis : named) {
      if (synthesis.schedule.placement.rankOfChunk != placement.rankOfChunk)
        continue;
      SmallVector<int64_t> slots;
      for (int64_t chunk = 0; chunk < chunks; ++chunk)
        slots.push_back(synthesis.slots.at(chunk, SlotKind::WeightActivation));
      if (!is_contained(limits, slots))
        limits.push_back(std::move(slots));
    }
    for (const SmallVector<int64_t> &limit : limits)
      for (const Policy &policy : listPolicies(chunks / problem.ranks))
        lists.push_back(makeListSchedule(placement, problem.microBatches,
                                         problem.edges, problem.costs,
                                         problem.cap, limit, policy));
  }
  llvm::stable_sort(lists,
                    [](const ListSchedule &one, const ListSchedule &two) {
                      return one.seconds < two.seconds;
                    });
  return lists;
}

Expected<std::vector<Synthesis>> trySchedules(const Problem &problem) {
  Expected<SmallVector<Placement>> placements = listPlacements(problem);
  if (!placements)
    return placements.takeError();
  std::vector<Synthesis> results = evaluateNamed(problem);
  std::vector<ListSchedule> lists =
      makeListSchedules(problem, *placements, results);
  for (ListSchedule &list :
       MutableArrayRef(lists).take_front(std::min(kPosted, lists.size()))) {
    Synthesis result = evaluate("auto", std::move(list.schedule), problem);
    assert(fits(result, problem) && "list schedules keep to the cap");
    results.push_back(std::move(result));
  }
  return results;
}

const Synthesis &findFastest(ArrayRef<Synthesis> tried) {
  return *llvm::min_element(
      tried, [](const Synthesis &one, const Synthesis &two) {
        return one.simulation.seconds < two.simulation.seconds;
      });
}

Expected<Synthesis> synthesise(const Problem &problem) {
  Expected<std::vector<Synthesis>> tried = trySchedules(problem);
  if (!tried)
    return tried.takeError();
  return findFastest(*tried);
}

} // namespace accel::pipeline
