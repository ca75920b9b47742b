// plan.deal_rows: which rows of all ranks have groups of this one.

#include "Device/CPU/CpuDevice.h"

#include <algorithm>

namespace accel::rt::cpu {
namespace {

class DealRowsTask : public HostTask {
public:
  explicit DealRowsTask(const DealRowsCommand &deal)
      : all(deal.groups.shape[0]), room(deal.rows.shape[0]),
        perRank(deal.numGroups / deal.ranks), numGroups(deal.numGroups),
        dealt(static_cast<size_t>(deal.ranks)) {}

  /// Views: groups, rank, rows, own, places.
  Status run(const Address *views, int64_t) override {
    auto find = [&](int view) {
      return static_cast<int64_t *>(at(views[view]));
    };
    const int64_t *groups = find(0);
    int64_t rank = *find(1), *rows = find(2), *own = find(3), *places = find(4);
    int64_t ranks = static_cast<int64_t>(dealt.size()), each = all / ranks;
    std::fill(dealt.begin(), dealt.end(), 0);
    for (int64_t row = 0; row < all; ++row) {
      int64_t group = groups[row], place = -1;
      if (group < -1 || group >= numGroups)
        return Status::error(
            "expected groups in [0, " + std::to_string(numGroups) +
            "), or -1 for none, found " + std::to_string(group));
      if (group >= 0) {
        int64_t owner = group / perRank,
                next = dealt[static_cast<size_t>(owner)]++;
        place = owner * room + next;
        if (owner == rank && next < room) {
          rows[next] = row;
          own[next] = group - rank * perRank;
        }
      }
      if (row / each == rank)
        places[row % each] = place;
    }
    for (int64_t owner = 0; owner < ranks; ++owner)
      if (int64_t count = dealt[static_cast<size_t>(owner)]; count > room)
        return Status::error("found " + std::to_string(count) +
                             " rows for the experts of rank " +
                             std::to_string(owner) +
                             " of its group, where the plan has room for " +
                             std::to_string(room));
    for (int64_t place = dealt[static_cast<size_t>(rank)]; place < room;
         ++place)
      rows[place] = own[place] = -1;
    return Status();
  }

private:
  int64_t all, room, perRank, numGroups;
  std::vector<int64_t> dealt; ///< rows of each rank
};

} // namespace

Status prepareDealRows(const DealRowsCommand &deal,
                       std::unique_ptr<Task> &task) {
  auto isPlain = [](const View &view) {
    return view.shape.size() == 1 && view.dtype == DType::I64 &&
           (view.shape[0] == 1 || view.strides[0] == 1);
  };
  if (!isPlain(deal.groups) || !isPlain(deal.rows) || !isPlain(deal.own) ||
      !isPlain(deal.places) || deal.rank.dtype != DType::I64)
    return Status::error("expected numbers of i64, side by side");
  if (deal.ranks < 1 || deal.numGroups < 1 || deal.numGroups % deal.ranks ||
      deal.groups.shape[0] != deal.places.shape[0] * deal.ranks ||
      deal.own.shape != deal.rows.shape)
    return Status::error("expected rows and groups that the ranks divide");
  task = std::make_unique<DealRowsTask>(deal);
  return Status();
}

} // namespace accel::rt::cpu
