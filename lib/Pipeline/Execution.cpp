// Builds the graph of a step and sorts it.

#include "Execution.h"
#include "llvm/ADT/STLExtras.h"

using namespace accel::pipeline;

/// Forwards, what makes input gradients, and what makes weight gradients alone.
static size_t getColumn(TaskKind kind) {
  return kind == TaskKind::Forward ? 0 : makesInputGradient(kind) ? 1 : 2;
}

Execution::Execution(const Schedule &schedule, llvm::ArrayRef<Edge> edges,
                     const Slots &slots, const Posting *posting)
    : schedule(schedule), edges(edges), slots(slots), posting(posting),
      transfers(listTransfers(schedule, edges)) {
  numberTasks();
  numberGroups();
  addTasks();
  addTransfers();
  addSentSlots();
  addReceivedSlots();
  sort();
}

size_t &Execution::findTask(TaskKind kind, int64_t chunk, int64_t microBatch) {
  return taskNodes[(getColumn(kind) * schedule.placement.countChunks() +
                    chunk) *
                       schedule.microBatches +
                   microBatch];
}

size_t Execution::getProducer(const Transfer &transfer) {
  return findTask(transfer.gradient ? TaskKind::BackwardInput
                                    : TaskKind::Forward,
                  getSender(transfer, edges), transfer.microBatch);
}

size_t Execution::getConsumer(const Transfer &transfer) {
  return findTask(transfer.gradient ? TaskKind::BackwardInput
                                    : TaskKind::Forward,
                  getReceiver(transfer, edges), transfer.microBatch);
}

void Execution::numberTasks() {
  taskNodes.assign(3 * schedule.placement.countChunks() * schedule.microBatches,
                   kNone);
  for (const auto &rank : schedule.ranks) {
    firstOfRank.push_back(tasks.size());
    for (const Task &task : rank) {
      findTask(task.kind, task.chunk, task.microBatch) = tasks.size();
      tasks.push_back(task);
    }
  }
  firstOfRank.push_back(tasks.size());
}

void Execution::numberGroups() {
  firstOfEdge.assign(edges.size(), kNone);
  for (auto [number, transfer] : llvm::enumerate(transfers))
    if (firstOfEdge[transfer.edge] == kNone)
      firstOfEdge[transfer.edge] = number;
  for (size_t number = 0; number < transfers.size(); ++number)
    sendNodes.push_back(getTransferNode(number));
  receiveNodes = sendNodes;
  size_t nodes = tasks.size() + transfers.size();
  if (posting) {
    for (auto [rank, list] : llvm::enumerate(posting->ranks))
      for (auto [position, group] : llvm::enumerate(list)) {
        for (const Transfer &transfer : group) {
          size_t number = getTransfer(transfer.edge, transfer.gradient,
                                      transfer.microBatch);
          int64_t sender = getSender(transfer, edges);
          bool sends = schedule.placement.rankOfChunk[sender] == int64_t(rank);
          (sends ? sendNodes : receiveNodes)[number] = nodes;
        }
        groups.push_back({rank, position});
        if (position > 0)
          addWait(nodes - 1, nodes);
        nodes += 2;
      }
  }
  firstWaiter.assign(nodes + 1, 0);
}

void Execution::addTasks() {
  for (size_t rank = 0; rank + 1 < firstOfRank.size(); ++rank)
    for (size_t node = firstOfRank[rank]; node + 1 < firstOfRank[rank + 1];
         ++node)
      addWait(node, node + 1);
  for (int64_t chunk = 0; chunk < schedule.placement.countChunks(); ++chunk)
    for (int64_t micro = 0; micro < schedule.microBatches; ++micro) {
      size_t backward = findTask(TaskKind::Backward, chunk, micro);
      addWait(findTask(TaskKind::Forward, chunk, micro), backward);
      size_t weight = findTask(TaskKind::BackwardWeight, chunk, micro);
      if (weight != kNone)
        addWait(backward, weight);
    }
  for (size_t edge = 0; edge < edges.size(); ++edge)
    for (int64_t micro = 0;
         firstOfEdge[edge] == kNone && micro < schedule.microBatches; ++micro)
      for (bool gradient : {false, true})
        addWait(getProducer({edge, gradient, micro}),
                getConsumer({edge, gradient, micro}));
}

void Execution::addTransfers() {
  for (auto [number, transfer] : llvm::enumerate(transfers)) {
    size_t node = getTransferNode(number);
    size_t send = sendNodes[number], receive = receiveNodes[number];
    addWait(getProducer(transfer), send, /*isForValue=*/true);
    if (!posting) {
      addWait(node, getConsumer(transfer));
      continue;
    }
    addWait(send, node);
    addWait(receive, node);
    addWait(node, send + 1);
    addWait(node, receive + 1);
    addWait(receive + 1, getConsumer(transfer));
  }
}

void Execution::addSentSlots() {
  // The edges whose values leave each chunk, and whose gradients do.
  std::vector<llvm::SmallVector<size_t>> values(slots.countChunks()),
      gradients(slots.countChunks());
  for (size_t edge = 0; edge < edges.size(); ++edge)
    if (firstOfEdge[edge] != kNone) {
      values[edges[edge].source].push_back(edge);
      gradients[edges[edge].target].push_back(edge);
    }
  std::vector<int64_t> held(2 * slots.countChunks() * schedule.microBatches,
                            -1);
  for (size_t node = 0; node < tasks.size(); ++node) {
    const Task &task = tasks[node];
    bool gradient = makesInputGradient(task.kind);
    if (!gradient && task.kind != TaskKind::Forward)
      continue;
    int64_t count = slots.at(task.chunk, gradient ? SlotKind::SentGradient
                                                  : SlotKind::SentValue);
    int64_t &holder = held[(2 * task.chunk + gradient) * schedule.microBatches +
                           task.microBatch % count];
    for (size_t edge : (gradient ? gradients : values)[task.chunk])
      if (holder >= 0)
        addWait(sendNodes[getTransfer(edge, gradient, holder)] +
                    (posting ? 1 : 0),
                node);
    holder = task.microBatch;
  }
}

void Execution::addReceivedSlots() {
  // What arrives first holds a slot first: without a posting what is made
  // first.
  std::vector<size_t> arrivals;
  if (posting) {
    for (auto [rank, list] : llvm::enumerate(posting->ranks))
      for (const Group &group : list)
        for (const Transfer &transfer : group) {
          int64_t receiver = getReceiver(transfer, edges);
          if (schedule.placement.rankOfChunk[receiver] == int64_t(rank))
            arrivals.push_back(getTransfer(transfer.edge, transfer.gradient,
                                           transfer.microBatch));
        }
  } else {
    for (size_t number = 0; number < transfers.size(); ++number)
      arrivals.push_back(number);
    llvm::stable_sort(arrivals, [&](size_t one, size_t two) {
      return getProducer(transfers[one]) < getProducer(transfers[two]);
    });
  }
  std::vector<int64_t> held(2 * edges.size() * schedule.microBatches, -1);
  for (size_t number : arrivals) {
    const Transfer &transfer = transfers[number];
    int64_t count = slots.at(getReceiver(transfer, edges),
                             transfer.gradient ? SlotKind::ReceivedGradient
                                               : SlotKind::ReceivedValue);
    int64_t &holder =
        held[(2 * transfer.edge + transfer.gradient) * schedule.microBatches +
             transfer.microBatch % count];
    if (holder >= 0)
      addWait(getConsumer({transfer.edge, transfer.gradient, holder}),
              receiveNodes[number]);
    holder = transfer.microBatch;
  }
}

void Execution::sort() {
  std::vector<size_t> missing(countNodes());
  for (const auto &[before, waiter] : waits) {
    ++firstWaiter[before + 1];
    ++missing[waiter.node];
  }
  for (size_t node = 0; node < countNodes(); ++node)
    firstWaiter[node + 1] += firstWaiter[node];
  waiters.resize(waits.size());
  std::vector<size_t> next(firstWaiter.begin(), firstWaiter.end() - 1);
  for (const auto &[before, waiter] : waits)
    waiters[next[before]++] = waiter;
  for (size_t node = 0; node < countNodes(); ++node)
    if (missing[node] == 0)
      order.push_back(node);
  for (size_t position = 0; position < order.size(); ++position)
    for (const Waiter &waiter : getWaiters(order[position]))
      if (--missing[waiter.node] == 0)
        order.push_back(waiter.node);
}

std::string Execution::describe(size_t node) const {
  if (node < tasks.size()) {
    size_t rank =
        llvm::upper_bound(firstOfRank, node) - firstOfRank.begin() - 1;
    return "rank " + std::to_string(rank) + ", position " +
           std::to_string(node - firstOfRank[rank]) + ": " +
           toString(tasks[node]);
  }
  if (const Transfer *transfer = findTransfer(node))
    return toString(*transfer, edges);
  size_t number = node - tasks.size() - transfers.size();
  size_t rank = groups[number / 2].first, position = groups[number / 2].second;
  std::string text = (number % 2 == 0 ? "rank " : "the end of rank ") +
                     std::to_string(rank) + ", group " +
                     std::to_string(position) + ": ";
  llvm::interleave(
      posting->ranks[rank][position],
      [&](const Transfer &transfer) {
        int64_t sender = getSender(transfer, edges);
        bool sends = schedule.placement.rankOfChunk[sender] == int64_t(rank);
        text += (sends ? "send " : "receive ") + toString(transfer, edges);
      },
      [&] { text += ", "; });
  return text;
}

std::string Execution::describeCircle() const {
  std::vector<bool> ended(countNodes());
  for (size_t node : order)
    ended[node] = true;
  std::vector<size_t> awaits(countNodes(), kNone);
  for (const auto &[before, waiter] : waits)
    if (!ended[before])
      awaits[waiter.node] = before;
  size_t node = llvm::find(ended, false) - ended.begin();
  // As many steps as there are nodes lead into the circle.
  for (size_t step = 0; step < countNodes(); ++step)
    node = awaits[node];
  // What a transfer waits for says which one it is.
  std::vector<size_t> circle;
  size_t first = node;
  do {
    if (!posting || !findTransfer(node))
      circle.push_back(node);
    node = awaits[node];
  } while (node != first);
  std::string text;
  for (size_t place = 0; place < std::min<size_t>(circle.size(), 8); ++place)
    text += "(" + describe(circle[place]) + ") waits for ";
  return text + (circle.size() > 8 ? "others that wait for " : "") + "(" +
         describe(circle.front()) + ")";
}
