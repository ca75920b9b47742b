// What leaders of machines tell each other by the network, and try.

#include "Network/Routes.h"

#include "Network/Greeter.h"

#include <algorithm>
#include <sstream>

namespace accel::rt {
namespace {

/// How long an address may take to prove that it leads to a machine, and how
/// much longer than a less wanted one of the same machine.
constexpr std::chrono::milliseconds kProbe{1000}, kLonger{100};

std::vector<uint64_t> numbersOf(const std::string &text) {
  std::istringstream stream(text);
  std::vector<uint64_t> numbers;
  for (uint64_t number; stream >> number;)
    numbers.push_back(number);
  return numbers;
}

template <class Numbers> std::string textOf(const Numbers &numbers) {
  std::string text;
  for (auto number : numbers)
    text += std::to_string(number) + " ";
  return text;
}

/// Where each machine may be, by machine.
using Places = std::vector<std::vector<Endpoint>>;

/// Tries all addresses of all others at once. Returns by machine which of its
/// own leads to it, counted from 1; 0: none does.
std::vector<size_t> probe(Greeter &greeter, const Machines &machines,
                          const Places &places) {
  size_t count = places.size(), here = static_cast<size_t>(machines.here());
  std::vector<std::vector<size_t>> attempts(count);
  for (size_t other = 0; other < count; ++other)
    for (size_t i = 0; other != here && i < places[other].size(); ++i) {
      Hello hello;
      hello.kind = Hello::Probe;
      hello.from = machines.rank();
      hello.to = machines.ranksOf(static_cast<int64_t>(other))[0];
      hello.number = static_cast<uint32_t>(i);
      attempts[other].push_back(greeter.tryOut(hello, places[other][i]));
    }
  std::vector<size_t> found;
  bool areAllFound = false, isBest = false; // isBest: no earlier one may come
  auto look = [&](const Greeter::Results &results) {
    found.assign(count, 0);
    areAllFound = isBest = true;
    for (size_t other = 0; other < count; ++other) {
      for (size_t i = 0; i < attempts[other].size() && !found[other]; ++i) {
        const auto &attempt = results.attempts[attempts[other][i]];
        if (attempt.socket)
          found[other] = i + 1;
        isBest &= attempt.isOver;
      }
      areAllFound &= other == here || found[other];
    }
  };
  if (greeter.wait(kProbe, [&](const Greeter::Results &results) {
        look(results);
        return areAllFound || isBest;
      }))
    greeter.wait(kLonger, [&](const Greeter::Results &results) {
      look(results);
      return isBest;
    });
  return found;
}

/// What a machine's leader listens at, one port for each address.
std::vector<Socket> takePorts(std::vector<uint64_t> &places) {
  std::vector<Socket> doors;
  for (uint32_t address : addressesHere()) {
    Endpoint end;
    if (Socket door = takePort(address, end)) {
      doors.push_back(std::move(door));
      places.push_back(end.address);
      places.push_back(end.port);
    }
  }
  return doors;
}

} // namespace

Status findRoutes(Machines &machines, const Secret &secret, Routes &routes,
                  std::string &why) {
  size_t count = static_cast<size_t>(machines.numMachines()),
         here = static_cast<size_t>(machines.here());
  auto leaderOf = [&](size_t machine) {
    return machines.ranksOf(static_cast<int64_t>(machine))[0];
  };
  auto said = [&](const std::vector<std::string> &all, size_t machine) {
    return numbersOf(all[static_cast<size_t>(leaderOf(machine))]);
  };
  auto isOtherLeader = [&](int64_t rank) {
    for (size_t machine = 0; machine < count; ++machine)
      if (machine != here && leaderOf(machine) == rank)
        return true;
    return false;
  };
  Greeter::Options options;
  options.patience = kProbe;
  options.probes = true;
  Greeter greeter(secret, options, [&](const Hello &hello) {
    return hello.kind == Hello::Probe && hello.to == machines.rank() &&
           isOtherLeader(hello.from);
  });
  // A leader answers before it tells anybody where.
  std::vector<uint64_t> mine;
  if (machines.leads() && !greeter.start(takePorts(mine)).ok())
    mine.clear();
  std::vector<std::string> all;
  ACCEL_RT_RETURN_IF_ERROR(machines.exchange(textOf(mine), all));
  Places places(count);
  for (size_t machine = 0; machine < count; ++machine) {
    std::vector<uint64_t> numbers = said(all, machine);
    for (size_t i = 0; i + 1 < numbers.size(); i += 2)
      places[machine].push_back({static_cast<uint32_t>(numbers[i]),
                                 static_cast<uint16_t>(numbers[i + 1])});
    if (places[machine].empty())
      why = "machine " + inQuotes(machines.hostOf(leaderOf(machine))) +
            " has no address of IPv4 that may be used";
  }
  if (!why.empty())
    return Status();
  std::vector<size_t> found;
  if (machines.leads())
    found = probe(greeter, machines, places);
  ACCEL_RT_RETURN_IF_ERROR(machines.exchange(textOf(found), all));
  greeter.stop(); // all know now that all are done
  std::vector<std::vector<size_t>> used(count);
  std::vector<uint64_t> own;
  for (size_t from = 0; from < count; ++from) {
    std::vector<uint64_t> chosen = said(all, from);
    chosen.resize(count);
    for (size_t to = 0; to < count; ++to) {
      if (from == to)
        continue;
      if (!chosen[to] || chosen[to] > places[to].size()) {
        why = "machine " + inQuotes(machines.hostOf(leaderOf(from))) +
              " does not reach " + inQuotes(machines.hostOf(leaderOf(to))) +
              " by TCP on a free port";
        return Status();
      }
      used[to].push_back(chosen[to] - 1);
    }
    if (from == here)
      own = chosen;
  }
  routes.chosen.resize(count);
  for (size_t to = 0; to < count; ++to) {
    std::sort(used[to].begin(), used[to].end());
    used[to].erase(std::unique(used[to].begin(), used[to].end()),
                   used[to].end());
    routes.addresses.emplace_back();
    for (size_t place : used[to]) {
      if (to != here && place == own[to] - 1)
        routes.chosen[to] = routes.addresses.back().size();
      routes.addresses.back().push_back(places[to][place].address);
    }
  }
  return Status();
}

} // namespace accel::rt
