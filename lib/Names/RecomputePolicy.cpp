// Reads a policy of recomputation.

#include "RecomputePolicy.h"

#include "Nearest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/GlobPattern.h"

using namespace llvm;
using namespace accel;

static Error fail(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

static constexpr StringLiteral kParts[] = {
    "core_attn", "layernorm", "mlp",           "mlp_act",
    "moe",       "moe_act",   "shared_experts"};

ArrayRef<StringLiteral> RecomputePolicy::getParts() { return kParts; }

static Error checkPart(StringRef part) {
  SmallVector<StringRef> names(std::begin(kParts), std::end(kParts));
  if (is_contained(names, part))
    return Error::success();
  return fail("expected " + listNames(names) + " behind 'selective:', found '" +
              part + "'" + suggestName(part, names) +
              "; other modules are named by patterns of their paths");
}

Expected<RecomputePolicy> RecomputePolicy::parse(StringRef text) {
  RecomputePolicy policy;
  if (text == "auto")
    return policy;
  if (text == "model") {
    policy.kind = Kind::Model;
    return policy;
  }
  if (text == "none") {
    policy.kind = Kind::None;
    return policy;
  }
  if (text == "full") {
    policy.kind = Kind::Uniform;
    return policy;
  }
  if (text == "selective") {
    policy.kind = Kind::Selective;
    policy.names = {"core_attn"};
    return policy;
  }
  if (text.consume_front("full:")) {
    auto [method, number] = text.split(':');
    if ((method != "uniform" && method != "block") ||
        number.getAsInteger(10, policy.layers) || policy.layers < 1)
      return fail("expected full:uniform:N or full:block:N with N of at least "
                  "1, found 'full:" +
                  text + "'");
    policy.kind = method == "uniform" ? Kind::Uniform : Kind::Block;
    return policy;
  }
  policy.kind =
      text.consume_front("selective:") ? Kind::Selective : Kind::Patterns;
  SmallVector<StringRef> names;
  text.split(names, ',');
  for (StringRef name : names) {
    if (policy.kind == Kind::Selective) {
      if (Error error = checkPart(name))
        return error;
    } else if (name.empty()) {
      return fail("expected none, selective, full, or patterns of modules' "
                  "paths, found '" +
                  text + "'");
    } else if (Expected<GlobPattern> pattern = GlobPattern::create(name);
               !pattern) {
      return fail("expected a glob pattern of modules' paths, found '" + name +
                  "': " + toString(pattern.takeError()));
    }
    policy.names.push_back(name.str());
  }
  return policy;
}

bool RecomputePolicy::isLayer(StringRef module) {
  int64_t number;
  return !module.substr(module.rfind('.') + 1).getAsInteger(10, number);
}

bool RecomputePolicy::isCheckpoint(StringRef module) {
  return module.starts_with("checkpoint#");
}

StringRef RecomputePolicy::findModule(ArrayRef<std::string> modules) const {
  for (StringRef module : modules) {
    bool isFound = false;
    if (kind == Kind::Uniform)
      isFound = isLayer(module);
    else if (kind == Kind::Auto || kind == Kind::Model)
      isFound = isCheckpoint(module);
    else if (kind == Kind::Patterns)
      isFound = any_of(names, [&](StringRef name) {
        return cantFail(GlobPattern::create(name)).match(module);
      });
    if (isFound)
      return module;
  }
  return {};
}
