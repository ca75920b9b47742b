// Who used a copy last is counted run by run; what has been left in it is held
// against what runs of the same body have left before.

#include "Copies.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

Copies::Copies(plan::ProgramOp program, Terms &terms, int64_t microBatches)
    : terms(terms), microBatches(microBatches),
      any(getAnyMicroBatch(program.getContext())),
      memory(std::in_place, terms) {
  for (auto buffer : program.getOps<plan::BufferOp>()) {
    int64_t slots = buffer.getSlots(), begin = buffer.getOffset(),
            bytes = buffer.getBytes(),
            end = begin + (slots - 1) * int64_t(buffer.getSlotStride()) + bytes;
    if (slots > 1)
      areas.push_back({buffer, buffer.getSpace(), begin, end, bytes});
  }
  llvm::stable_sort(areas, [](const CopiedBytes &lhs, const CopiedBytes &rhs) {
    return std::tuple(lhs.space, lhs.begin) < std::tuple(rhs.space, rhs.begin);
  });
  std::vector<Group> uses;
  for (auto [number, area] : llvm::enumerate(areas)) {
    ofBuffer[plan::BufferOp(area.buffer).getSymNameAttr()] = number;
    uses.emplace_back().slots = plan::BufferOp(area.buffer).getSlots();
  }
  if (areas.empty())
    return;
  SymbolTable symbols(program);
  for (auto body : program.getOps<plan::BodyOp>())
    readBody(body, symbols, uses);
  for (auto [number, area] : llvm::enumerate(areas)) {
    Group &use = uses[number];
    auto known = llvm::find_if(
        groups, [&](const Group &group) { return group.isLike(use); });
    area.group = known - groups.begin();
    if (known == groups.end())
      groups.push_back(std::move(use));
  }
}

/// Whether a body uses copies, and which copies' bytes it writes as another
/// buffer's.
void Copies::readBody(plan::BodyOp body, SymbolTable &symbols,
                      std::vector<Group> &uses) {
  StringAttr name = body.getSymNameAttr();
  llvm::SetVector<StringAttr> named, written;
  body.walk([&](plan::CommandOpInterface command) {
    for (plan::ViewAttr view : command.getReads())
      named.insert(view.getBuffer().getAttr());
    for (plan::ViewAttr view : command.getWrites())
      written.insert(view.getBuffer().getAttr());
    if (auto releases = command->getAttrOfType<ArrayAttr>(plan::kReleasesAttr))
      for (auto view : releases.getAsRange<plan::ViewAttr>())
        written.insert(view.getBuffer().getAttr());
  });
  named.insert_range(written);
  for (StringAttr each : named)
    if (auto at = ofBuffer.find(each); at != ofBuffer.end()) {
      uses[at->second].users.insert(name);
      ofBody[name].push_back(at->second);
    }
  for (StringAttr each : written) {
    auto buffer = symbols.lookup<plan::BufferOp>(each);
    if (!buffer)
      continue; // which is refused where it is named
    const CopiedBytes *own = find(buffer);
    int64_t begin = buffer.getOffset(),
            end = own ? own->end : begin + int64_t(buffer.getBytes());
    forEachTouching(buffer.getSpace(), begin, end, own,
                    [&](const CopiedBytes &area) {
                      uses[&area - areas.data()].others.insert(name);
                    });
  }
}

const CopiedBytes *Copies::find(plan::BufferOp buffer) const {
  auto found = ofBuffer.find(buffer.getSymNameAttr());
  return found == ofBuffer.end() ? nullptr : &areas[found->second];
}

void Copies::forEachTouching(
    plan::Space space, int64_t begin, int64_t end, const CopiedBytes *butFor,
    llvm::function_ref<void(const CopiedBytes &)> visit) const {
  for (const CopiedBytes &area : areas)
    if (area.space == space && area.begin < end && begin < area.end &&
        &area != butFor)
      visit(area);
}

void Copies::beginEntry(plan::EntryOp entry) {
  left.clear();
  if (areas.empty())
    return;
  SmallVector<plan::RunTurn> runs = plan::listRuns(entry);
  for (Group &group : groups)
    follow(group, runs);
}

void Copies::follow(Group &group, ArrayRef<plan::RunTurn> runs) {
  group.sources.clear();
  group.asked.clear();
  struct User {
    StringAttr body;
    int64_t microBatch;
  };
  std::vector<User> last(group.slots);
  for (const plan::RunTurn &run : runs) {
    StringAttr body = run.run.getTaskAttr().getAttr();
    int64_t microBatch = run.getMicroBatch();
    if (group.users.contains(body)) {
      User &user = last[microBatch % group.slots];
      StringAttr source =
          user.microBatch == microBatch ? user.body : StringAttr();
      auto [known, isNew] = group.sources.try_emplace(run.run, source);
      if (!isNew && known->second != source)
        known->second = {}; // not the same in all turns
      user = {body, microBatch};
    }
    if (group.others.contains(body))
      last.assign(group.slots, {});
  }
  for (auto [run, source] : group.sources)
    if (source)
      group.asked.insert(source);
}

Copies::Left Copies::rename(Renaming &renaming, const Left &left) {
  Left result = left;
  for (Memory::Piece &piece : result.pieces)
    piece.term = renaming.rename(piece.term);
  for (Memory::OwnPiece &own : result.own) {
    own.term = renaming.rename(own.term);
    own.place.map = renaming.rename(own.place.map);
  }
  return result;
}

void Copies::beginRun(plan::RunOp run, MicroBatch microBatch, int64_t turns) {
  auto used = ofBody.find(run.getTaskAttr().getAttr());
  if (used == ofBody.end())
    return;
  memory.emplace(terms);
  Renaming renaming(terms, any, microBatch, turns);
  for (unsigned number : used->second) {
    StringAttr source = groups[areas[number].group].sources.lookup(run);
    auto found = left.find({source, number});
    if (!source || found == left.end())
      continue;
    found->second.isFound = true;
    Left begins = rename(renaming, found->second);
    for (const Memory::Piece &piece : begins.pieces)
      memory->put(areas[number].space, piece);
    for (const Memory::OwnPiece &own : begins.own)
      memory->put(own);
  }
}

LogicalResult Copies::endRun(plan::RunOp run, MicroBatch microBatch) {
  StringAttr body = run.getTaskAttr().getAttr();
  auto used = ofBody.find(body);
  if (used == ofBody.end())
    return success();
  Renaming renaming(terms, microBatch, any, microBatches);
  for (unsigned number : used->second) {
    CopiedBytes &area = areas[number];
    if (!groups[area.group].asked.contains(body))
      continue;
    Left found;
    found.pieces =
        memory->list(area.space, area.begin, area.begin + area.bytes);
    found.own =
        memory->listOwn(area.space, area.begin, area.begin + area.bytes);
    found = rename(renaming, found);
    auto [at, isNew] = left.try_emplace({body, number}, found);
    Left &known = at->second;
    if (isNew || (known.pieces == found.pieces && known.own == found.own))
      continue;
    if (known.isFound)
      return run.emitOpError()
             << "leaves something else in its copy of @"
             << area.buffer.getSymName()
             << " than an earlier run of it: expected what other micro-batches "
                "find in theirs";
    // Nobody has read what they do not agree about.
    llvm::erase_if(known.pieces, [&](const Memory::Piece &piece) {
      return !llvm::is_contained(found.pieces, piece);
    });
    llvm::erase_if(known.own, [&](const Memory::OwnPiece &own) {
      return !llvm::is_contained(found.own, own);
    });
  }
  return success();
}
