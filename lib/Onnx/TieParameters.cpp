// The rules, each of parameters that those before it have left.

#include "TieParameters.h"

#include "CallFrames.h"
#include "NodeInfo.h"
#include "ParameterRoles.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace accel::onnxio {

namespace {
class Ties {
public:
  Ties(const OnnxFile &file, ParameterBuilder &builder, ArrayRef<bool> named,
       const llvm::StringSet<> &folded, std::vector<std::string> &notes)
      : file(file), builder(builder), named(named), folded(folded),
        notes(notes) {}

  void tieUnnamed();
  void tieShared();
  void tieOriginals();

private:
  bool isOpen(unsigned parameter) const {
    return !named[parameter] && !builder.isClaimed(parameter) &&
           builder.representative(parameter) == parameter;
  }
  bool isSharedBeside(unsigned table, StringRef name) const;
  void believe(unsigned parameter, unsigned other, const std::string &why,
               const std::string &clause);

  const OnnxFile &file;
  ParameterBuilder &builder;
  ArrayRef<bool> named;
  const llvm::StringSet<> &folded;
  std::vector<std::string> &notes;
};
} // namespace

static std::pair<StringRef, StringRef> moduleAndLeaf(StringRef name) {
  return name.contains('.') ? name.rsplit('.')
                            : std::pair<StringRef, StringRef>("", name);
}

/// Ties the parameter to another, and says so: `why` of the later of both
/// names, `clause` behind the other's.
void Ties::believe(unsigned parameter, unsigned other, const std::string &why,
                   const std::string &clause) {
  std::string name = builder.nameOf(parameter).str(),
              table = builder.nameOf(other).str();
  builder.tie(parameter, other,
              "'" + builder.nameOf(std::max(parameter, other)).str() + "' " +
                  why);
  notes.push_back("no call names parameter '" + name +
                  "': it is taken for another name of '" + table + "', " +
                  clause);
}

/// A tie shows as one placeholder in the calls; the other names are those of
/// the modules that the calls were made in.
void Ties::tieUnnamed() {
  SmallVector<unsigned> unnamed;
  for (unsigned i = 0; i < builder.size(); ++i)
    if (!named[i] && !builder.isClaimed(i))
      unnamed.push_back(i);
  for (unsigned i : unnamed) {
    // Not a structured binding: lambdas cannot capture those in C++17.
    StringRef module = moduleAndLeaf(builder.nameOf(i)).first;
    StringRef leaf = moduleAndLeaf(builder.nameOf(i)).second;
    SmallVector<unsigned> users, inside;
    for (unsigned other = 0; other < builder.size(); ++other) {
      if (is_contained(unnamed, other) || !builder.isClaimed(other))
        continue;
      auto [otherModule, otherLeaf] = moduleAndLeaf(builder.nameOf(other));
      if (otherLeaf != leaf)
        continue;
      bool usedHere = false;
      builder.forEachClaim(other, [&](const InitializerUse &use) {
        usedHere |= StringRef(modulePath(*use.node)) == module;
      });
      if (usedHere)
        users.push_back(other);
      if (moduleAndLeaf(otherModule).first == module)
        inside.push_back(other);
    }
    if (users.size() == 1) {
      std::string name = builder.nameOf(users.front()).str();
      builder.tie(i, users.front(),
                  "'" + builder.nameOf(std::max(i, users.front())).str() +
                      "' is the same: module '" + module.str() + "' uses '" +
                      name + "'");
    } else if (!inside.empty() && !folded.contains(builder.nameOf(i))) {
      // Nothing proves a tie here (BERT's cls.predictions.bias), nor that the
      // parameter was folded away: only the user can say.
      builder.omit(i);
      std::string names = llvm::join(
          llvm::map_range(inside,
                          [&](unsigned other) {
                            return "'" + builder.nameOf(other).str() + "'";
                          }),
          ", ");
      notes.push_back(
          "no call names parameter '" + builder.nameOf(i).str() +
          "': if it is another name of " +
          (inside.size() > 1 ? "one of " : "") + names + ", say --tie " +
          builder.nameOf(i).str() + "=" +
          (inside.size() > 1 ? "NAME" : builder.nameOf(inside[0]).str()));
    }
  }
}

/// Whether modules of one name and of several parents, within the module that
/// `name` is two levels below, use the table: `model.encoder.embed_tokens` and
/// `model.decoder.embed_tokens`, of `model.shared.weight`.
bool Ties::isSharedBeside(unsigned table, StringRef name) const {
  // Not a structured binding: lambdas cannot capture those in C++17.
  StringRef leaf = moduleAndLeaf(name).second;
  StringRef parent = moduleAndLeaf(moduleAndLeaf(name).first).first;
  llvm::StringMap<unsigned> parents;
  bool isShared = false;
  builder.forEachName(table, [&](StringRef other) {
    auto [otherModule, otherLeaf] = moduleAndLeaf(other);
    if (otherLeaf == leaf && otherModule.contains('.') &&
        (parent.empty() || other.starts_with((parent + ".").str())))
      isShared |= ++parents[otherModule.rsplit('.').second] > 1;
  });
  return isShared;
}

/// The table of an encoder and a decoder is a parameter of the module around
/// them, too, which calls it by no name.
void Ties::tieShared() {
  for (unsigned i = 0; i < builder.size(); ++i) {
    if (!isOpen(i) || folded.contains(builder.nameOf(i)))
      continue;
    std::string name = builder.nameOf(i).str();
    SmallVector<unsigned> tables;
    for (unsigned other = 0; other < builder.size(); ++other)
      if (builder.isClaimed(other) && isSharedBeside(other, name))
        tables.push_back(other);
    if (tables.size() != 1)
      continue;
    believe(i, tables.front(),
            "is the same: modules beside '" + name + "' share the table",
            "which modules beside it share");
  }
}

/// Parameters that no call names and --original-weights holds, which are equal
/// to one that is used.
void Ties::tieOriginals() {
  for (unsigned i = 0; i < builder.size(); ++i) {
    std::string name = builder.nameOf(i).str();
    const onnx::TensorProto *original = file.findInitializer(name);
    if (!isOpen(i) || !original || !file.isOriginal(*original) ||
        isUniform(file, *original))
      continue;
    SmallVector<unsigned> equal;
    for (unsigned other = 0; other < builder.size(); ++other) {
      SmallVector<int64_t, 4> permutation;
      const InitializerUse *held = builder.representative(other) == other
                                       ? builder.firstClaim(other, permutation)
                                       : nullptr;
      if (held &&
          holdSame(file, *original, identityPermutation(original->dims_size()),
                   *held->tensor, permutation))
        equal.push_back(other);
    }
    if (equal.size() != 1)
      continue;
    believe(i, equal.front(),
            "is equal to it in --original-weights, and no call names both",
            "to which it is equal in --original-weights");
  }
}

void tieUnnamedParameters(const OnnxFile &file, ParameterBuilder &builder,
                          ArrayRef<bool> named, const llvm::StringSet<> &folded,
                          std::vector<std::string> &notes) {
  Ties ties(file, builder, named, folded, notes);
  ties.tieUnnamed();
  ties.tieShared();
  ties.tieOriginals();
}

} // namespace accel::onnxio
