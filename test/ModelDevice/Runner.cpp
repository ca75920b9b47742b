// A list of what is ready, and a thread for each command of the host at work.

#include "Runner.h"

#include "ModelMemory.h"

namespace accel::rt::model {

Runner::Runner(const std::vector<Node> &nodes, size_t streams, Order &order,
               StreamWatcher &watcher, FindInfo findInfo)
    : nodes(nodes), order(order), watcher(watcher),
      findInfo(std::move(findInfo)), after(nodes.size()), open(nodes.size()),
      threads(streams) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    open[i] = nodes[i].behind.size();
    for (size_t before : nodes[i].behind)
      after[before].push_back(i);
    if (open[i] == 0)
      ready.push_back({i, nodes[i].step.stream});
  }
}

Runner::~Runner() {
  for (std::thread &thread : threads)
    if (thread.joinable())
      thread.join();
}

Failure Runner::run() {
  while (failure.status.ok() && (!ready.empty() || numRunning > 0)) {
    collect(/*waits=*/ready.empty());
    if (ready.empty() || !failure.status.ok())
      continue;
    if (watcher.isOver()) {
      failure.status = Status::error(kAbortedMessage);
      break;
    }
    size_t at = order.pick(ready);
    size_t number = ready[at].number;
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
    start(number);
  }
  // Who waits for another rank hears from the watcher that it is over.
  if (numRunning > 0 && failure.status.message() != kAbortedMessage)
    watcher.fails();
  while (numRunning > 0)
    collect(/*waits=*/true);
  return failure;
}

void Runner::start(size_t number) {
  const Node &node = nodes[number];
  Work &work = *node.step.work;
  size_t stream = node.step.stream;
  watcher.begins(stream, work, node.event.microBatch);
  // Commands of the host may wait for those of other streams' ranks.
  if (work.kind != Work::Kind::Host) {
    carryOut(number);
    collect(/*waits=*/false);
    return;
  }
  if (threads[stream].joinable())
    threads[stream].join(); // it has ended: this one stood behind it
  ++numRunning;
  threads[stream] = std::thread([this, number] { carryOut(number); });
}

void Runner::carryOut(size_t number) {
  const Node &node = nodes[number];
  Work &work = *node.step.work;
  Status status;
  if (work.task) {
    std::vector<Address> views;
    for (const Place &place : work.places)
      views.push_back(place.at(node.microBatch));
    Running running{findInfo(work), views.data(), work.isPoison,
                    node.isCaptured};
    ModelMemory::setRunning(&running);
    status =
        static_cast<HostTask &>(*work.task).run(views.data(), node.microBatch);
    ModelMemory::setRunning(nullptr);
  }
  std::lock_guard<std::mutex> lock(mutex);
  ended.push_back({number, std::move(status)});
  changed.notify_one();
}

void Runner::collect(bool waits) {
  std::vector<std::pair<size_t, Status>> now;
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (waits)
      changed.wait(lock, [&] { return !ended.empty(); });
    now.swap(ended);
  }
  for (auto &[number, status] : now)
    end(number, std::move(status));
}

void Runner::end(size_t number, Status status) {
  const Node &node = nodes[number];
  const Work &work = *node.step.work;
  numRunning -= work.kind == Work::Kind::Host;
  if (!status.ok()) {
    // That another rank ended is no command's failure.
    bool isOurs = status.message() != kAbortedMessage;
    Failure own{std::move(status), isOurs ? &work : nullptr};
    if (own.comesBefore(failure))
      failure = std::move(own);
    return;
  }
  watcher.ends(node.step.stream);
  for (size_t next : after[number])
    if (--open[next] == 0)
      ready.push_back({next, nodes[next].step.stream});
}

} // namespace accel::rt::model
