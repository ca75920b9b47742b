// Reads the description of machines and links, and says what is wrong with it.

#include "Links.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace accel::cost {
namespace {

class Reader {
public:
  Reader(StringRef path, MLIRContext *context)
      : at(FileLineColLoc::get(context, path, 0, 0)) {}

  LogicalResult fail(const Twine &message) { return emitError(at) << message; }

  /// The value of a key that must be there; `where` names the object.
  LogicalResult number(const llvm::json::Object &object, StringRef where,
                       StringRef key, bool mayBeZero, double &value) {
    const llvm::json::Value *found = object.get(key);
    if (!found)
      return fail("expected '" + key + "' in " + where + ", found none");
    std::optional<double> read = found->getAsNumber();
    if (!read || !(*read > 0 || (mayBeZero && *read == 0)))
      return fail("expected a number " +
                  Twine(mayBeZero ? "of at least 0" : "above 0") + " for '" +
                  key + "' in " + where);
    value = *read;
    return success();
  }
  LogicalResult onlyHas(const llvm::json::Object &object, StringRef where,
                        ArrayRef<StringRef> keys) {
    for (auto &[key, value] : object)
      if (!llvm::is_contained(keys, StringRef(key)))
        return fail("unknown key '" + StringRef(key) + "' in " + where +
                    "; it has " + llvm::join(keys, ", "));
    return success();
  }

  LogicalResult read(StringRef text, int64_t ranks, Links &links);

private:
  LogicalResult readLevel(const llvm::json::Value &value, size_t number,
                          size_t count, int64_t ranks, Links &links);

  Location at;
  int64_t below = 1; ///< Ranks of a unit of the level before, as it says.
};

LogicalResult Reader::readLevel(const llvm::json::Value &value, size_t number,
                                size_t count, int64_t ranks, Links &links) {
  std::string where = "levels[" + std::to_string(number) + "]";
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return fail("expected an object for " + where);
  if (failed(onlyHas(*object, where,
                     {"name", "ranks", "seconds", "bytes_per_second"})))
    return failure();
  Level level;
  std::optional<StringRef> name = object->getString("name");
  if (!name || name->empty())
    return fail("expected a text for 'name' in " + where);
  level.name = name->str();
  if (failed(this->number(*object, where, "seconds", true, level.seconds)) ||
      failed(this->number(*object, where, "bytes_per_second", false,
                          level.bytesPerSecond)))
    return failure();
  bool isLast = number + 1 == count;
  if (isLast && object->get("ranks"))
    return fail("expected no 'ranks' in " + where +
                ", the last level: it has all ranks");
  level.ranks = ranks;
  if (!isLast) {
    std::optional<int64_t> size = object->getInteger("ranks");
    if (!size || *size < 1 || *size % below != 0)
      return fail("expected for 'ranks' in " + where +
                  " a whole number of the " + Twine(below) +
                  " that the level before has");
    below = *size;
    // Fewer ranks than one unit holds are one unit.
    level.ranks = std::min(*size, ranks);
    if (ranks % level.ranks != 0)
      return fail("expected a mesh whose " + Twine(ranks) +
                  " ranks fill all of " + where + " with " + Twine(*size) +
                  " each");
  }
  links.levels.push_back(std::move(level));
  return success();
}

LogicalResult Reader::read(StringRef text, int64_t ranks, Links &links) {
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  if (!parsed)
    return fail(llvm::toString(parsed.takeError()));
  const llvm::json::Object *all = parsed->getAsObject();
  if (!all)
    return fail("expected an object with 'rank' and 'levels'");
  if (failed(onlyHas(*all, "the file", {"rank", "levels"})))
    return failure();
  const llvm::json::Object *rank = all->getObject("rank");
  const llvm::json::Array *levels = all->getArray("levels");
  if (!rank)
    return fail("expected an object for 'rank': what one rank does in a "
                "second");
  if (!levels || levels->empty())
    return fail("expected a list for 'levels': the memory of a machine, then "
                "the links between machines");
  if (failed(onlyHas(
          *rank, "'rank'",
          {"flops_per_second", "bytes_per_second", "seconds_per_command"})) ||
      failed(number(*rank, "'rank'", "flops_per_second", false,
                    links.rank.flopsPerSecond)) ||
      failed(number(*rank, "'rank'", "bytes_per_second", false,
                    links.rank.bytesPerSecond)) ||
      failed(number(*rank, "'rank'", "seconds_per_command", true,
                    links.rank.secondsPerCommand)))
    return failure();
  for (size_t i = 0; i < levels->size(); ++i)
    if (failed(readLevel((*levels)[i], i, levels->size(), ranks, links)))
      return failure();
  return success();
}

} // namespace

FailureOr<Links> readLinks(StringRef path, int64_t ranks,
                           MLIRContext *context) {
  Reader reader(path, context);
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path)) {
    (void)reader.fail("cannot read: it is no file"); // a device need not end
    return failure();
  }
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    (void)reader.fail("cannot read: " + buffer.getError().message());
    return failure();
  }
  Links links;
  if (failed(reader.read((*buffer)->getBuffer(), ranks, links)))
    return failure();
  return links;
}

} // namespace accel::cost
