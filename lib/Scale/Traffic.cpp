// Lists the messages of each kind of exchange, rank by rank, and adds up what
// they put on the links of each level.

#include "Traffic.h"

#include <cmath>

using namespace mlir;
using namespace accel::plan;

namespace accel::scale {

/// Bytes of the chunks that messages are cut into (runtime/Comm): so many of
/// what moves, between the two bounds.
static double chunkBytes(double bytes) {
  return std::min(256.0 * 1024, std::max(128.0 * 1024, bytes / 8));
}

/// What leaves and enters each unit of each level.
struct TrafficModel::Flow {
  explicit Flow(const Links &links, int64_t ranks) : links(links) {
    for (size_t level = 0; level < links.levels.size(); ++level) {
      int64_t unit = level ? links.levels[level - 1].ranks : 1;
      out.emplace_back(ranks / unit, 0.0);
      in.emplace_back(ranks / unit, 0.0);
    }
  }

  /// A rank reads what another of its machine has.
  void read(int64_t rank, double bytes) { in[0][rank] += bytes; }
  /// From a machine to another: through the links of all levels up to the first
  /// whose unit has both.
  void send(int64_t from, int64_t to, double bytes) {
    for (size_t level = 1; level < links.levels.size(); ++level) {
      int64_t unit = links.levels[level - 1].ranks;
      if (from / unit == to / unit)
        return;
      out[level][from / unit] += bytes;
      in[level][to / unit] += bytes;
    }
  }
  void waitFor(SmallVector<size_t> chain) {
    if (chain.size() > hops.size() ||
        (chain.size() == hops.size() && chain > hops))
      hops = std::move(chain);
  }

  const Links &links;
  std::vector<std::vector<double>> out, in;
  SmallVector<size_t> hops;
};

TrafficModel::TrafficModel(dist::MeshOp mesh, const Links &links)
    : mesh(mesh), links(links), ranks(mesh.getRankCount()) {}

size_t TrafficModel::levelOf(int64_t from, int64_t to) const {
  size_t level = 0;
  while (from / links.levels[level].ranks != to / links.levels[level].ranks)
    ++level;
  return level;
}

const std::vector<SmallVector<int64_t>> &
TrafficModel::groupsAlong(ArrayRef<StringRef> axes) {
  auto [place, isNew] = groups.try_emplace(llvm::join(axes, ","));
  if (!isNew)
    return place->second;
  auto set = dist::AxesAttr::get(mesh.getContext(), axes);
  int64_t size = mesh.getGroupSize(set);
  std::map<SmallVector<int64_t>, size_t> byRest;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    SmallVector<int64_t> rest;
    for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
      if (!set.contains(axis.getName()))
        rest.push_back(mesh.getCoordinate(rank, axis.getName()));
    auto [group, isFirst] = byRest.try_emplace(rest, place->second.size());
    if (isFirst)
      place->second.emplace_back(size);
    place->second[group->second][mesh.getIndexInGroup(rank, set)] = rank;
  }
  return place->second;
}

/// One copy to each machine where somebody reads it; there they read it of each
/// other.
void TrafficModel::deliver(int64_t from, ArrayRef<int64_t> readers,
                           double bytes, Flow &flow) const {
  llvm::SmallDenseSet<int64_t> reached{machineOf(from)};
  for (int64_t reader : readers) {
    if (reader != from)
      flow.read(reader, bytes);
    if (reached.insert(machineOf(reader)).second)
      flow.send(from, reader, bytes);
  }
}

/// A sum, in the order of the group: from machine to machine. For `owner`, a
/// place in the group, or (-1) for all.
void TrafficModel::reduce(ArrayRef<int64_t> group, int64_t owner, double bytes,
                          double partial, Flow &flow) const {
  SmallVector<SmallVector<int64_t>> segments;
  for (int64_t rank : group) {
    if (segments.empty() ||
        machineOf(segments.back().back()) != machineOf(rank))
      segments.emplace_back();
    segments.back().push_back(rank);
  }
  SmallVector<int64_t> readers(group);
  if (owner >= 0)
    readers = {group[owner]};
  // Who adds terms changes from chunk to chunk: each has its share of them.
  for (int64_t rank : group)
    flow.read(rank, owner < 0 ? bytes : bytes / double(group.size()));
  if (segments.size() == 1) {
    for (int64_t rank : readers)
      flow.read(rank, owner < 0 ? bytes : 0);
    return;
  }
  // Two ranks exchange their terms, and both add.
  if (owner < 0 && group.size() == 2) {
    flow.send(group[0], group[1], bytes);
    flow.send(group[1], group[0], bytes);
    flow.waitFor({levelOf(group[0], group[1])});
    return;
  }
  // From either end where the last of two is one rank (RemoteCollective.cpp).
  double turned = 0;
  if (segments.size() == 2 && segments[1].size() == 1) {
    double chunks = std::max(1.0, std::ceil(bytes / chunkBytes(bytes)));
    turned = owner < 0 ? std::floor(chunks / 2) / chunks
                       : machineOf(group[owner]) == machineOf(group[0]);
  }
  auto addChain = [&](double part) {
    SmallVector<size_t> chain;
    for (size_t step = 0; step + 1 < segments.size(); ++step) {
      bool isTerm = step == 0 && segments[0].size() == 1;
      int64_t from = segments[step].front(), to = segments[step + 1].front();
      flow.send(from, to, part * (isTerm ? bytes : partial));
      chain.push_back(levelOf(from, to));
    }
    int64_t last = segments.back().front();
    deliver(last, readers, part * bytes, flow);
    size_t furthest = 0;
    for (int64_t reader : readers)
      furthest = std::max(furthest, levelOf(last, reader));
    if (furthest)
      chain.push_back(furthest);
    if (part > 0)
      flow.waitFor(std::move(chain));
  };
  addChain(1 - turned);
  std::reverse(segments.begin(), segments.end());
  addChain(turned);
}

void TrafficModel::exchange(CollectiveOp op, ArrayRef<int64_t> group,
                            double bytes, double partial, Flow &flow) const {
  size_t size = group.size();
  switch (op.getCollective()) {
  case Collective::all_reduce:
    return reduce(group, -1, bytes, partial, flow);
  case Collective::reduce_scatter:
    for (size_t owner = 0; owner < size; ++owner)
      reduce(group, owner, bytes / size, partial / size, flow);
    return;
  case Collective::all_gather:
    for (int64_t from : group)
      deliver(from, group, bytes, flow);
    break;
  case Collective::broadcast:
    deliver(group[(*op.getPermutation())[0]], group, bytes, flow);
    break;
  case Collective::permute:
    for (auto [to, from] : llvm::enumerate(*op.getPermutation()))
      deliver(group[from], group[to], bytes, flow);
    break;
  case Collective::all_to_all:
  case Collective::fetch_rows: // as many rows of each rank
    for (int64_t from : group)
      for (int64_t to : group)
        deliver(from, to, bytes / size, flow);
    break;
  }
  size_t furthest = 0;
  for (int64_t from : group)
    furthest = std::max(furthest, levelOf(from, group[0]));
  if (furthest)
    flow.waitFor({furthest});
}

Traffic TrafficModel::find(CommandOpInterface command) {
  Flow flow(links, ranks);
  Traffic traffic;
  auto sizeOf = [](ViewAttr view) {
    return double(view.getNumElements() * view.getElementBytes());
  };
  if (auto send = dyn_cast<SendOp>(command.getOperation())) {
    traffic.bytes = sizeOf(send.getView());
    for (const SmallVector<int64_t> &group : groupsAlong(send.getAxis()))
      for (size_t place = 0; place < group.size(); ++place)
        if (size_t to = place + send.getDelta(); to < group.size()) {
          deliver(group[place], group[to], traffic.bytes, flow);
          if (size_t level = levelOf(group[place], group[to]))
            flow.waitFor({level});
        }
  } else if (auto op = dyn_cast<CollectiveOp>(command.getOperation())) {
    double partial = 0;
    for (auto view : op.getInputs().getAsRange<ViewAttr>()) {
      int64_t wire = view.getElementBytes();
      if (op.getWire())
        wire = llvm::divideCeil(op.getWire()->getIntOrFloatBitWidth(), 8);
      double elements = double(view.getNumElements());
      traffic.bytes += elements * double(wire);
      // What is summed so far has the accuracy of the sum.
      partial += elements * double(std::max<int64_t>(wire, 4));
    }
    // Rows come back as many as they went.
    if (op.getCollective() == Collective::fetch_rows)
      traffic.bytes =
          std::min(traffic.bytes, sizeOf(cast<ViewAttr>(op.getOutputs()[0])));
    SmallVector<StringRef> axes;
    for (auto axis : op.getAxes().getAsRange<StringAttr>())
      axes.push_back(axis);
    for (const SmallVector<int64_t> &group : groupsAlong(axes))
      if (group.size() > 1)
        exchange(op, group, traffic.bytes, partial, flow);
  } else {
    return traffic;
  }
  for (size_t level = 0; level < links.levels.size(); ++level) {
    double busiest = 0, all = 0;
    for (auto *way : {&flow.out[level], &flow.in[level]})
      for (double bytes : *way)
        busiest = std::max(busiest, bytes);
    for (double bytes : flow.in[level])
      all += bytes;
    traffic.busiest.push_back(busiest);
    traffic.all.push_back(all);
  }
  traffic.hops = flow.hops;
  return traffic;
}

double TrafficModel::busySeconds(const Traffic &traffic, size_t level) const {
  return traffic.busiest[level] / links.levels[level].bytesPerSecond;
}

double TrafficModel::seconds(const Traffic &traffic) const {
  if (traffic.busiest.empty())
    return 0;
  // All levels are at work on one chunk after another.
  double longest = 0;
  for (size_t level = 0; level < links.levels.size(); ++level)
    longest = std::max(longest, busySeconds(traffic, level));
  // Ranks of a machine meet before and after.
  double seconds = longest + 2 * links.levels[0].seconds;
  // The first chunk goes all the way before the last one can.
  double chunk = std::min(traffic.bytes, chunkBytes(traffic.bytes)),
         slowest = 0, fill = 0;
  for (size_t level : traffic.hops) {
    const cost::Level &link = links.levels[level];
    fill += chunk / link.bytesPerSecond;
    slowest = std::max(slowest, chunk / link.bytesPerSecond);
    seconds += link.seconds;
  }
  return seconds + fill - slowest;
}

} // namespace accel::scale
