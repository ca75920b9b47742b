// Who used a copy last is counted run by run; what has been left in it is held
// against what runs of the same body have left before.

#include "Copies.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

Copies::Uses Copies::readBodies(plan::ProgramOp program) {
  Uses uses;
  for (auto body : program.getOps<plan::BodyOp>()) {
    StringAttr name = body.getSymNameAttr();
    llvm::SetVector<StringAttr> &written = uses.written[name];
    body.walk([&](plan::CommandOpInterface command) {
      auto write = [&](plan::ViewAttr view) {
        written.insert(view.getBuffer().getAttr());
        uses.users[view.getBuffer().getAttr()].insert(name);
      };
      for (plan::ViewAttr view : command.getReads())
        uses.users[view.getBuffer().getAttr()].insert(name);
      llvm::for_each(command.getWrites(), write);
      if (auto all = command->getAttrOfType<ArrayAttr>(plan::kReleasesAttr))
        llvm::for_each(all.getAsRange<plan::ViewAttr>(), write);
    });
  }
  return uses;
}

/// Whether in a loop a run always finds a buffer as a run on its own
/// micro-batch has left it, and not always one of its own turn.
bool Copies::isCarriedOver(plan::ProgramOp program, const BodySet &users) {
  struct Way {
    bool always = true, fromAnother = false;
  };
  for (auto entry : program.getOps<plan::EntryOp>()) {
    if (entry.getOps<plan::LoopOp>().empty())
      continue;
    llvm::DenseMap<Operation *, Way> ways;
    std::optional<plan::RunTurn> last;
    for (const plan::RunTurn &run : plan::listRuns(entry)) {
      if (!users.contains(run.run.getTaskAttr().getAttr()))
        continue;
      if (Operation *loop = run.run->getParentOfType<plan::LoopOp>()) {
        Way &way = ways[run.run];
        way.always &= last && last->getMicroBatch() == run.getMicroBatch();
        way.fromAnother |=
            last && (last->turn != run.turn ||
                     last->run->getParentOfType<plan::LoopOp>() != loop);
      }
      last = run;
    }
    for (auto [run, way] : ways)
      if (way.always && way.fromAnother)
        return true;
  }
  return false;
}

Copies::Copies(plan::ProgramOp program, Terms &terms)
    : terms(terms), any(getAnyMicroBatch(program.getContext())),
      memory(std::in_place, terms) {
  Uses uses = readBodies(program);
  llvm::DenseSet<StringAttr> ofEach; // that a command reads or writes at once
  program.walk([&](Operation *op) {
    if (auto read = dyn_cast<plan::ReadOp>(op);
        read && read.getEachMicroBatch())
      ofEach.insert(read.getTarget().getBuffer().getAttr());
    if (auto write = dyn_cast<plan::WriteOp>(op);
        write && write.getEachMicroBatch())
      ofEach.insert(write.getView().getBuffer().getAttr());
  });
  std::map<std::vector<const void *>, bool> known; // of sets of users
  auto isFollowed = [&](plan::BufferOp buffer) {
    if (buffer.getSlots() > 1)
      return true;
    // What all micro-batches share is no micro-batch's.
    if (llvm::is_contained(
            {plan::Role::state, plan::Role::packed, plan::Role::constant},
            buffer.getRole()) ||
        ofEach.contains(buffer.getSymNameAttr()))
      return false;
    const BodySet &users = uses.users[buffer.getSymNameAttr()];
    std::vector<const void *> key;
    for (StringAttr user : users)
      key.push_back(user.getAsOpaquePointer());
    auto [at, isNew] = known.try_emplace(key);
    if (isNew)
      at->second = isCarriedOver(program, users);
    return at->second;
  };
  for (auto buffer : program.getOps<plan::BufferOp>()) {
    int64_t others = buffer.getSlots() - 1, begin = buffer.getOffset(),
            bytes = buffer.getBytes(),
            end = begin + others * int64_t(buffer.getSlotStride()) + bytes;
    if (isFollowed(buffer))
      areas.push_back({buffer, buffer.getSpace(), begin, end, bytes});
  }
  if (areas.empty())
    return;
  llvm::stable_sort(areas, [](const CopiedBytes &lhs, const CopiedBytes &rhs) {
    return std::tuple(lhs.space, lhs.begin) < std::tuple(rhs.space, rhs.begin);
  });
  for (const CopiedBytes &area : areas) {
    bool isFirst = reaches.empty() || (&area - 1)->space != area.space;
    reaches.push_back(isFirst ? area.end : std::max(reaches.back(), area.end));
  }
  std::vector<Group> all(areas.size());
  for (auto [number, area] : llvm::enumerate(areas)) {
    plan::BufferOp buffer = area.buffer;
    ofBuffer[buffer.getSymNameAttr()] = number;
    all[number].slots = buffer.getSlots();
    all[number].users = uses.users[buffer.getSymNameAttr()];
    for (StringAttr body : all[number].users)
      ofBody[body].push_back(number);
  }
  // Whoever writes bytes of copies as another buffer's.
  SymbolTable symbols(program);
  for (auto &[body, written] : uses.written)
    for (StringAttr each : written) {
      auto buffer = symbols.lookup<plan::BufferOp>(each);
      if (!buffer)
        continue; // which is refused where it is named
      const CopiedBytes *own = find(buffer);
      int64_t begin = buffer.getOffset(),
              end = own ? own->end : begin + int64_t(buffer.getBytes());
      forEachTouching(buffer.getSpace(), begin, end, own,
                      [&, body = body](const CopiedBytes &area) {
                        all[&area - areas.data()].others.insert(body);
                      });
    }
  for (auto [number, area] : llvm::enumerate(areas)) {
    Group &use = all[number];
    auto like = llvm::find_if(
        groups, [&](const Group &group) { return group.isLike(use); });
    area.group = like - groups.begin();
    if (like == groups.end())
      groups.push_back(std::move(use));
  }
}

const CopiedBytes *Copies::find(plan::BufferOp buffer) const {
  auto found = ofBuffer.find(buffer.getSymNameAttr());
  return found == ofBuffer.end() ? nullptr : &areas[found->second];
}

void Copies::forEachTouching(
    plan::Space space, int64_t begin, int64_t end, const CopiedBytes *butFor,
    llvm::function_ref<void(const CopiedBytes &)> visit) const {
  auto behind = llvm::partition_point(areas, [&](const CopiedBytes &area) {
    return std::tuple(area.space, area.begin) < std::tuple(space, end);
  });
  for (size_t at = behind - areas.begin(); at-- > 0;) {
    const CopiedBytes &area = areas[at];
    if (area.space != space || reaches[at] <= begin)
      break;
    if (begin < area.end && &area != butFor)
      visit(area);
  }
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
    User &user = last[microBatch % group.slots];
    bool isUser = group.users.contains(body);
    if (isUser) {
      StringAttr source =
          user.microBatch == microBatch ? user.body : StringAttr();
      SmallVector<StringAttr, 1> &sources = group.sources[run.run];
      if (!llvm::is_contained(sources, source))
        sources.push_back(source);
    }
    // What it does to its own copy is followed command by command.
    if (group.others.contains(body))
      last.assign(group.slots, {});
    if (isUser)
      user = {body, microBatch};
  }
  for (auto &[run, sources] : group.sources)
    if (!llvm::is_contained(sources, StringAttr()))
      group.asked.insert_range(sources);
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

void Copies::intersect(Left &left, const Left &other) {
  llvm::erase_if(left.pieces, [&](const Memory::Piece &piece) {
    return !llvm::is_contained(other.pieces, piece);
  });
  llvm::erase_if(left.own, [&](const Memory::OwnPiece &own) {
    return !llvm::is_contained(other.own, own);
  });
}

/// What the bodies, each of them in some turns, have left in a copy; none if
/// one has not, or nobody.
std::optional<Copies::Left> Copies::findLeft(ArrayRef<StringAttr> sources,
                                             unsigned area) {
  std::optional<Left> all;
  for (StringAttr source : sources) {
    auto found = left.find({source, area});
    if (!source || found == left.end())
      return std::nullopt;
    found->second.isFound = true;
    if (all)
      intersect(*all, found->second);
    else
      all = found->second;
  }
  return all;
}

void Copies::beginRun(plan::RunOp run, MicroBatch microBatch) {
  auto used = ofBody.find(run.getTaskAttr().getAttr());
  inUse = {};
  if (used == ofBody.end())
    return;
  inUse = used->second;
  memory.emplace(terms);
  Renaming renaming(terms, any, microBatch);
  for (unsigned number : used->second) {
    auto found =
        findLeft(groups[areas[number].group].sources.lookup(run), number);
    if (!found)
      continue;
    Left begins = rename(renaming, *found);
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
  Renaming renaming(terms, microBatch, any);
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
    intersect(known, found);
  }
  return success();
}
