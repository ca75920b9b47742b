// Doubts by what was found. See DoubtGroups.h.
#include "DoubtGroups.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace accel::onnxio {

/// The message without the names that it quotes and the kinds, in brackets,
/// that stand behind them; a list of names is as one.
static std::string withoutNames(const Doubt &doubt) {
  SmallVector<StringRef> parts;
  StringRef(doubt.message).split(parts, '\'');
  std::string text;
  for (auto [i, part] : enumerate(parts)) {
    if (i % 2 == 1 || part == ", ")
      continue;
    if (i > 0 && part.starts_with(" ("))
      part = part.substr(part.find(')') + 1);
    text += (i > 0 ? "'" : "") + part.str();
  }
  return text + "\n" + std::to_string(doubt.kind) + doubt.remedy;
}

static std::string firstName(StringRef message) {
  return message.split('\'').second.split('\'').first.str();
}

static constexpr size_t kMost = 3;

static std::string quoteFirst(ArrayRef<std::string> names) {
  std::string text;
  for (const std::string &name : names.take_front(kMost))
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

std::string quoteFew(ArrayRef<std::string> names) {
  std::string text = quoteFirst(names);
  if (names.size() > kMost)
    text += " and " + std::to_string(names.size() - kMost) + " others";
  return text;
}

std::string DoubtGroup::message() const {
  if (others == 0)
    return first->message;
  return first->message + " (and " + std::to_string(others) + " more like it" +
         (names.empty() ? "" : ": " + quoteFirst(names)) +
         (names.size() > kMost ? ", …)" : ")");
}

std::vector<DoubtGroup> groupDoubts(ArrayRef<Doubt> doubts) {
  llvm::MapVector<std::string, DoubtGroup, llvm::StringMap<unsigned>> groups;
  auto add = [](std::vector<std::string> &to, const std::string &name) {
    if (!name.empty() && !is_contained(to, name))
      to.push_back(name);
  };
  for (const Doubt &doubt : doubts) {
    auto [it, isNew] =
        groups.try_emplace(withoutNames(doubt), DoubtGroup{&doubt, 0, {}, {}});
    DoubtGroup &group = it->second;
    if (!isNew) {
      ++group.others;
      std::string name = firstName(doubt.message);
      if (name != firstName(group.first->message))
        add(group.names, name);
    }
    for (const std::string &name : doubt.parameters)
      add(group.parameters, name);
  }
  std::vector<DoubtGroup> list;
  for (auto &[kind, group] : groups)
    list.push_back(std::move(group));
  return list;
}

} // namespace accel::onnxio
