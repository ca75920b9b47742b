// One rank after another, in random order, does what it can, until none can.

#include "Executor.h"

using namespace accel::pipeline;

Executor::Place Executor::placeOf(const Transfer &transfer, bool isSent) const {
  bool gradient = transfer.gradient;
  if (isSent) {
    int64_t chunk = getSender(transfer, edges);
    SlotKind kind = gradient ? SlotKind::SentGradient : SlotKind::SentValue;
    return {chunk, gradient ? kOutGradient : kOut,
            transfer.microBatch % slots.at(chunk, kind)};
  }
  int64_t chunk = getReceiver(transfer, edges);
  SlotKind kind =
      gradient ? SlotKind::ReceivedGradient : SlotKind::ReceivedValue;
  return {int64_t(transfer.edge), gradient ? kInGradient : kIn,
          transfer.microBatch % slots.at(chunk, kind)};
}

void Executor::fill(int64_t chunk, int what, SlotKind kind, int64_t micro) {
  if (!held.insert({{chunk, what, micro % slots.at(chunk, kind)}, micro})
           .second)
    wrong = "a slot is overwritten";
}

void Executor::empty(int64_t chunk, int what, SlotKind kind, int64_t micro) {
  auto slot = held.find({chunk, what, micro % slots.at(chunk, kind)});
  if (slot == held.end() || slot->second != micro)
    wrong = "a task reads what is not its own";
  else
    held.erase(slot);
}

bool Executor::hasArrived(const Task &task) {
  bool gradient = task.kind != TaskKind::Forward;
  for (size_t number = 0; number < edges.size(); ++number) {
    const Edge &edge = edges[number];
    if ((gradient ? edge.source : edge.target) != task.chunk)
      continue;
    int64_t other = gradient ? edge.target : edge.source;
    if (crosses(edge)) {
      if (!received.count({number, gradient, task.microBatch}))
        return false;
    } else if (!gradient) {
      if (!done.count({TaskKind::Forward, other, task.microBatch}))
        return false;
    } else if (!done.count({TaskKind::Backward, other, task.microBatch}) &&
               !done.count({TaskKind::BackwardInput, other, task.microBatch})) {
      return false;
    }
  }
  return true;
}

bool Executor::isSlotToSendFree(const Task &task) {
  bool gradient = task.kind != TaskKind::Forward;
  int64_t sent = 0;
  Place place;
  for (size_t number = 0; number < edges.size(); ++number)
    if (crosses(edges[number]) &&
        (gradient ? edges[number].target : edges[number].source) ==
            task.chunk) {
      place = placeOf({number, gradient, task.microBatch}, true);
      ++sent;
    }
  if (sent == 0)
    return true;
  if (held.count(place))
    return false;
  held[place] = task.microBatch;
  sendsLeft[place] = sent;
  return true;
}

void Executor::passOn(const Task &task) {
  bool gradient = task.kind != TaskKind::Forward;
  int what = gradient ? kPassedGradient : kPassed;
  SlotKind kind = gradient ? SlotKind::PassedGradient : SlotKind::PassedValue;
  for (size_t number = 0; number < edges.size(); ++number) {
    if (crosses(edges[number]))
      continue;
    Transfer passed{number, gradient, task.microBatch};
    int64_t from = getSender(passed, edges), to = getReceiver(passed, edges);
    Place place{int64_t(number), what, task.microBatch % slots.at(from, kind)};
    if (to == task.chunk) {
      auto slot = held.find(place);
      if (slot == held.end() || slot->second != task.microBatch)
        wrong = "what was passed on is overwritten";
      else
        held.erase(slot);
    }
    if (from == task.chunk && !held.insert({place, task.microBatch}).second)
      wrong = "what was passed on is not read";
  }
}

bool Executor::runTask(size_t rank) {
  if (ranks[rank].task == schedule.ranks[rank].size())
    return false;
  const Task &task = schedule.ranks[rank][ranks[rank].task];
  int64_t chunk = task.chunk, micro = task.microBatch;
  if (task.kind != TaskKind::BackwardWeight &&
      (!hasArrived(task) || !isSlotToSendFree(task)))
    return false;
  if (rankOf(chunk) != int64_t(rank))
    wrong = "a task is on a rank that has not its chunk";
  if (task.kind != TaskKind::BackwardWeight)
    passOn(task);
  bool whole = task.kind == TaskKind::Backward;
  if (task.kind == TaskKind::Forward) {
    fill(chunk, kActivation, SlotKind::Activation, micro);
    fill(chunk, kWeight, SlotKind::WeightActivation, micro);
  }
  if (whole || task.kind == TaskKind::BackwardInput)
    empty(chunk, kActivation, SlotKind::Activation, micro);
  if (task.kind == TaskKind::BackwardInput)
    fill(chunk, kGradient, SlotKind::WeightGradient, micro);
  if (whole || task.kind == TaskKind::BackwardWeight)
    empty(chunk, kWeight, SlotKind::WeightActivation, micro);
  if (task.kind == TaskKind::BackwardWeight)
    empty(chunk, kGradient, SlotKind::WeightGradient, micro);
  for (size_t number = 0; number < edges.size(); ++number) {
    bool gradient = task.kind != TaskKind::Forward;
    Transfer transfer{number, gradient, micro};
    if (task.kind == TaskKind::BackwardWeight || !crosses(edges[number]) ||
        getReceiver(transfer, edges) != chunk)
      continue;
    auto slot = held.find(placeOf(transfer, false));
    if (slot == held.end() || slot->second != micro)
      wrong = "what has arrived is overwritten";
    else
      held.erase(slot);
  }
  if (!done.insert({task.kind, chunk, micro}).second)
    wrong = "a task runs twice";
  ++ranks[rank].task;
  return true;
}

bool Executor::runGroup(size_t rank) {
  Rank &state = ranks[rank];
  if (state.group == posting.ranks[rank].size())
    return false;
  const Group &group = posting.ranks[rank][state.group];
  if (!state.isPosted) {
    std::set<Place> wanted;
    for (const Transfer &transfer : group) {
      bool isSent = sends(rank, transfer);
      Place place = placeOf(transfer, isSent);
      auto slot = held.find(place);
      bool isMade = slot != held.end() && slot->second == transfer.microBatch;
      if (isSent ? !isMade : slot != held.end() || !wanted.insert(place).second)
        return false;
    }
    for (const Transfer &transfer : group) {
      bool isSent = sends(rank, transfer);
      (isSent ? sending : receiving).insert(messageOf(transfer));
      if (!isSent)
        held[placeOf(transfer, false)] = transfer.microBatch;
    }
    state.isPosted = true;
    return true;
  }
  for (const Transfer &transfer : group)
    if (!sending.count(messageOf(transfer)) ||
        !receiving.count(messageOf(transfer)))
      return false;
  for (const Transfer &transfer : group) {
    if (!sends(rank, transfer)) {
      received.insert(messageOf(transfer));
      continue;
    }
    Place place = placeOf(transfer, true);
    if (--sendsLeft[place] == 0)
      held.erase(place);
  }
  state.isPosted = false;
  ++state.group;
  return true;
}

std::string Executor::run(std::mt19937 &random) {
  std::vector<size_t> order;
  for (size_t number = 0; number < 2 * ranks.size(); ++number)
    order.push_back(number);
  for (bool moves = true; moves && wrong.empty();) {
    moves = false;
    for (size_t number = order.size(); number > 1; --number)
      std::swap(order[number - 1], order[random() % number]);
    for (size_t number : order)
      if (wrong.empty() &&
          (number % 2 ? runTask(number / 2) : runGroup(number / 2)))
        moves = true;
  }
  if (!wrong.empty())
    return wrong;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].task < schedule.ranks[rank].size() ||
        ranks[rank].group < posting.ranks[rank].size())
      return "it hangs";
  for (int64_t chunk = 0; chunk < schedule.placement.countChunks(); ++chunk)
    for (int64_t micro = 0; micro < schedule.microBatches; ++micro) {
      bool whole = done.count({TaskKind::Backward, chunk, micro});
      bool input = done.count({TaskKind::BackwardInput, chunk, micro});
      bool weight = done.count({TaskKind::BackwardWeight, chunk, micro});
      if (!done.count({TaskKind::Forward, chunk, micro}) || whole == input ||
          input != weight)
        return "a task is missing, or too many";
    }
  return "";
}
