// Settles what files and flags say: `--set` beats everybody, others have to
// agree.

#include "lib/Config/ClaimFile.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace accel::config;

std::string Origin::str() const {
  switch (kind) {
  case Kind::Default:
    return detail.empty() ? "default" : "default: " + detail;
  case Kind::Derived:
    return "derived: " + detail;
  case Kind::File:
    return detail.empty() ? place.str() : place.str() + " " + detail;
  case Kind::Flag:
    return place.str();
  case Kind::Set:
    return "--set";
  }
  llvm_unreachable("unknown kind of origin");
}

bool accel::config::sameValue(StringRef a, StringRef b) {
  double first, second;
  if (!a.getAsDouble(first) && !b.getAsDouble(second))
    return first == second;
  return a == b;
}

void Ledger::claim(StringRef name, std::string value, Origin origin) {
  assert(findSetting(name) && "a name that nothing prints");
  entries[name.str()].claims.push_back(
      {name.str(), std::move(value), std::move(origin)});
}

void Ledger::claim(StringRef name, const Setting &setting, std::string value) {
  Origin origin;
  origin.kind = setting.place.isFile() ? Origin::Kind::File : Origin::Kind::Set;
  origin.place = setting.place;
  origin.detail = setting.path;
  claim(name, std::move(value), std::move(origin));
}

void Ledger::suggest(StringRef name, std::string value, Origin::Kind kind,
                     std::string detail) {
  Entry &entry = entries[name.str()];
  if (!entry.suggestion)
    entry.suggestion = {name.str(), std::move(value),
                        Origin{kind, Place{}, std::move(detail)}};
}

bool Ledger::isClaimed(StringRef name) const {
  auto found = entries.find(name.str());
  return found != entries.end() && !found->second.claims.empty();
}

const std::string *Ledger::findSet(StringRef name) const {
  auto found = entries.find(name.str());
  if (found != entries.end())
    for (const Resolved &one : found->second.claims)
      if (one.origin.kind == Origin::Kind::Set)
        return &one.value;
  return nullptr;
}

/// `what` as a message names it.
static std::string nameOrigin(const Origin &origin) {
  return origin.kind == Origin::Kind::File
             ? "at " + origin.place.str() + " ('" + origin.detail + "')"
             : "by " + origin.place.str();
}

Expected<const Resolved *> Ledger::settle(StringRef name) {
  Entry &entry = entries[name.str()];
  if (entry.settled)
    return &*entry.settled;
  if (entry.refused)
    return nullptr;
  if (entry.claims.empty()) {
    entry.settled = entry.suggestion;
    return entry.settled ? &*entry.settled : nullptr;
  }
  auto set = find_if(entry.claims, [](const Resolved &one) {
    return one.origin.kind == Origin::Kind::Set;
  });
  bool bySet = set != entry.claims.end();
  const Resolved *winner = bySet ? &*set : &entry.claims.front();
  for (const Resolved &other : entry.claims) {
    if (sameValue(other.value, winner->value) ||
        other.origin.kind == Origin::Kind::Set)
      continue;
    if (bySet) {
      overrides.push_back(
          {name.str(), winner->value, other.value, other.origin.place});
      continue;
    }
    entry.refused = true;
    // A message begins with a file, where one of the two is one.
    const Resolved *here = &other, *there = winner;
    if (here->origin.kind != Origin::Kind::File)
      std::swap(here, there);
    return failAt(here->origin.place, "'" + name + "' is " + here->value +
                                          " by '" + here->origin.detail +
                                          "', but " + there->value + " " +
                                          nameOrigin(there->origin) +
                                          ": --set " + name + "=VALUE decides");
  }
  entry.settled = *winner;
  return &*entry.settled;
}

void accel::config::claimRows(const File &file, Ledger &ledger,
                              function_ref<bool(const Setting &)> isRead) {
  for (const Setting &setting : file.settings)
    if (!setting.key->setting.empty() && setting.value != "null" &&
        setting.value != "auto" && isRead(setting))
      ledger.claim(setting.key->setting, setting);
}
