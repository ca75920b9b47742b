// Which rank is on which machine, and what the processes of a run do together
// before the run begins: they compare what they have, end together where one
// cannot go on, and map memory that those of one machine share. All of it waits
// for the others; afterwards the network belongs to a NetworkService.

#ifndef ACCEL_RUNTIME_NETWORK_MACHINES_H
#define ACCEL_RUNTIME_NETWORK_MACHINES_H

#include "Network/Network.h"

#include <vector>

namespace accel::rt {

class Machines {
public:
  /// Tells all processes where each of them is. Errors: the network's.
  static Status join(std::unique_ptr<Network> network, const ProcessPlace &here,
                     std::unique_ptr<Machines> &machines);

  int64_t rank() const { return network->rank(); }
  int64_t numRanks() const { return network->size(); }
  /// Machines are numbered in the order of their lowest ranks.
  int64_t numMachines() const { return static_cast<int64_t>(members.size()); }
  int64_t machineOf(int64_t rank) const {
    return numbers[static_cast<size_t>(rank)];
  }
  const std::string &hostOf(int64_t rank) const {
    return hosts[static_cast<size_t>(rank)];
  }
  /// The ranks of a machine, rising; the first of them leads it.
  const std::vector<int64_t> &ranksOf(int64_t machine) const {
    return members[static_cast<size_t>(machine)];
  }
  int64_t here() const { return machineOf(rank()); }
  /// Those of this machine that some process of its may use.
  int64_t coresHere() const { return cores; }
  bool leads() const { return ranksOf(here())[0] == rank(); }
  /// "4 ranks on 2 machines (a: 0, 1; b: 2, 3)".
  std::string describe() const;

  /// Everybody's text, by rank.
  Status exchange(const std::string &mine, std::vector<std::string> &all);
  /// Goes on where all are well. Errors: the error of the lowest rank that has
  /// one, which says who it is.
  Status agree(const Status &own);
  /// Maps `bytes` bytes of zeros that the processes of each machine share. They
  /// have no name: nothing of them can be left behind. All ask for as many.
  Status share(uint64_t bytes, void *&mapping);

  Network &net() { return *network; }

private:
  Status wait(Network::Request request, Network::Arrival *arrival = nullptr);
  Status sendText(int64_t to, const std::string &text);
  Status receiveText(int64_t from, std::string &text);

  std::unique_ptr<Network> network;
  std::vector<int64_t> numbers;
  std::vector<std::string> hosts;
  std::vector<std::vector<int64_t>> members;
  int64_t cores = 0;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_MACHINES_H
