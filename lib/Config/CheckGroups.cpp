// Groups of ranks that keep a second copy of the parameters (hpZ), held against
// the stage and the mesh.

#include "lib/Config/Resolver.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;

Error Resolver::checkGroups() {
  StringRef name = "zero.hpz_partition_size";
  const Resolved *said = find(name);
  int64_t size = 1;
  if (!said || StringRef(said->value).getAsInteger(10, size) || size == 1)
    return Error::success();
  auto fail = [&](const Twine &message) {
    return failAt(placeOf(name), message);
  };
  std::string what = ("'" + name + "' " + Twine(size)).str();
  if (find("zero_stage")->value != "3")
    return fail("expected 'zero_stage' 3 with " + what + ", found " +
                find("zero_stage")->value + " (" +
                find("zero_stage")->origin.str() +
                "): only there parameters are gathered again");
  if (const Resolved *once = find("zero.gather_once");
      once && once->value != "false")
    return fail("expected 'zero.gather_once' false with " + what +
                ": parameters that are gathered once a step need no second "
                "copy");
  int64_t sequences = 1; // ranks with the same rows: they are in one group
  std::string axes;
  for (auto &[axis, ranks] : modelAxes)
    if (axis != "tp" && axis != "ep") {
      sequences *= ranks;
      axes += (axes.empty() ? "" : " x ") + axis;
    }
  if (shards * sequences % size != 0)
    return fail("expected '" + name + "' to divide the " +
                Twine(shards * sequences) + " ranks that share states (" +
                (axes.empty() ? "dp_shard" : "dp_shard x " + axes) +
                "), found " + Twine(size));
  if (size % sequences != 0)
    return fail("expected '" + name + "' to be a multiple of " + axes + " = " +
                Twine(sequences) + ", found " + Twine(size));
  return Error::success();
}
