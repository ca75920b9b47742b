// Entries, states and outputs of a replayed plan: what must hold when a run
// begins, and what must have come of it.

#include "Replay.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

PlanReplay::PlanReplay(ModuleOp module, plan::ProgramOp program,
                       Meaning &meaning,
                       std::map<StringRef, LocalValues> &entries)
    : module(module), program(program), meaning(meaning), terms(meaning.terms),
      entries(entries), memory(meaning.terms), copies(program, meaning.terms),
      ofEach(program),
      microBatchAxis(
          StringAttr::get(module.getContext(), dist::MeshOp::kMicroBatchAxis)) {
  for (auto buffer : program.getOps<plan::BufferOp>())
    buffers[buffer.getSymNameAttr()] = buffer;
  for (auto body : program.getOps<plan::BodyOp>())
    bodies[body.getSymNameAttr()] = body;
  for (auto function : module.getOps<func::FuncOp>())
    functions[function.getSymNameAttr()] = function;
}

InFlightDiagnostic PlanReplay::refuse(Operation *op) {
  InFlightDiagnostic error = op->emitOpError()
                             << "does not follow from the local program: ";
  if (foreign && foreign != op)
    error.attachNote(foreign->getLoc())
        << "the first command that computes what the local program does not";
  return error;
}

/// Calls come in any order. So each is followed from what load has left alone,
/// and what any of them reads of that must outlive all of them.
LogicalResult PlanReplay::run() {
  plan::EntryOp load;
  llvm::MapVector<StringRef, plan::EntryOp> calls;
  for (auto entry : program.getOps<plan::EntryOp>()) {
    StringRef name = entry.getKind();
    bool isLoad = name == plan::kLoadEntry;
    if (!isLoad && !entries.count(name))
      return entry.emitOpError()
             << "expected an entry of the local program, found none of kind '"
             << name << "'";
    if (isLoad)
      load = entry;
    else
      calls[name] = entry;
  }
  for (auto &[kind, values] : entries)
    if (!calls.count(kind))
      return program.emitOpError()
             << "expected an entry '" << kind
             << "', as the local program has one, found none";
  if (failed(placeConstants()) || (load && failed(runLoad(load))))
    return failure();
  memory.beginRepeated();
  for (auto &[kind, call] : calls) {
    local = &entries.find(kind)->second;
    if (failed(runCall(call)))
      return failure();
  }
  memory.endRepeated();
  return success();
}

LogicalResult PlanReplay::runLoad(plan::EntryOp entry) {
  loading = true;
  copies.beginEntry(entry);
  for (Operation &op : entry.getBody().front()) {
    auto segment = dyn_cast<plan::SegmentOp>(op);
    if (!segment)
      return op.emitOpError() << "expected no loop at load";
    if (failed(runSegment(segment, /*inLoop=*/false)))
      return failure();
  }
  loading = false;
  return success();
}

/// The schedule's sections and the entry's, one after the other: what tasks
/// compute is known before the commands do.
LogicalResult PlanReplay::runCall(plan::EntryOp entry) {
  // Every second section is a loop. A plan has those of the schedule, or the
  // turns of such as exchange messages.
  SmallVector<plan::LoopOp> loops(entry.getOps<plan::LoopOp>());
  if (loops.size() != local->getSections().size() / 2)
    local->unrollExchanging();
  ArrayRef<LocalValues::Section> sections = local->getSections();
  if (loops.size() != sections.size() / 2)
    return refuse(entry) << "expected the " << sections.size() / 2
                         << " loops of the schedule, found " << loops.size();
  memory.beginRepeated();
  copies.beginEntry(entry);
  ofEach.beginEntry();
  if (failed(beginEntry()) || failed(local->run(sections.front())))
    return failure();
  for (Operation &op : entry.getBody().front()) {
    auto segment = dyn_cast<plan::SegmentOp>(op);
    if (segment && failed(runSegment(segment, /*inLoop=*/false)))
      return failure();
    auto loop = dyn_cast<plan::LoopOp>(op);
    if (!loop)
      continue;
    sections = sections.drop_front();
    if (int64_t(loop.getTrips()) != sections.front().trips)
      return refuse(loop) << "expected the " << sections.front().trips
                          << " turns of the schedule's loop, found "
                          << loop.getTrips();
    if (failed(runLoop(loop, sections.front())))
      return failure();
    sections = sections.drop_front();
    if (failed(local->run(sections.front())))
      return failure();
  }
  for (auto &[name, home] : homes)
    if (failed(checkState(name, home, "in the end")))
      return failure();
  if (failed(checkOutputs()))
    return failure();
  memory.forgetWritten();
  memory.endRepeated();
  return success();
}

LogicalResult PlanReplay::runLoop(plan::LoopOp loop,
                                  const LocalValues::Section &section) {
  SmallVector<std::pair<StringAttr, Home *>> kept;
  for (StringAttr name : local->getWritten(section)) {
    FailureOr<Home *> home = findHome(name);
    if (failed(home) ||
        failed(checkState(name, **home, "when the loop begins")))
      return failure();
    kept.push_back({name, *home});
  }
  meaning.beginLoop();
  ofEach.setLoop(loop);
  memory.beginRepeated();
  for (auto [name, home] : kept) {
    local->beginTurn(name);
    if (failed(memory.write(home->place, local->states[name].term, loop)))
      return failure();
  }
  if (failed(local->run(section)))
    return failure();
  for (auto segment : loop.getOps<plan::SegmentOp>())
    if (failed(runSegment(segment, /*inLoop=*/true)))
      return failure();
  for (auto [name, home] : kept)
    if (failed(checkState(name, *home, "when a turn ends")))
      return failure();
  memory.endRepeated();
  ofEach.setLoop({});
  return success();
}

LogicalResult PlanReplay::placeConstants() {
  for (auto buffer : program.getOps<plan::BufferOp>()) {
    command = buffer;
    if (static_cast<int64_t>(buffer.getOffset()) < 0)
      return buffer.emitOpError()
             << "expected a plan whose buffers have places";
    ElementsAttr value = buffer.getValueAttr();
    if (!value)
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    auto view = plan::ViewAttr::get(
        module.getContext(), FlatSymbolRefAttr::get(buffer.getSymNameAttr()),
        /*offset=*/0, /*axes=*/{}, type.getElementType(), type.getShape(),
        denseStrides(type.getShape()));
    if (failed(write(view, meaning.constant(value, buffer))))
      return failure();
  }
  return success();
}

FailureOr<PlanReplay::Home *> PlanReplay::findHome(StringAttr state) {
  auto home = homes.find(state);
  if (home == homes.end())
    return program.emitOpError()
           << "expected a buffer that keeps state '" << state.getValue()
           << "', which the local program writes";
  return &home->second;
}

/// States that are written are another value each time; everything else is as
/// `load` has left it, and must stay so where it is read.
LogicalResult PlanReplay::beginEntry() {
  for (auto &[name, home] : homes) {
    auto state = local->states.find(name);
    if (state == local->states.end()) {
      // Of other entries: this one leaves it alone.
      if (local->isChanging(name) &&
          failed(memory.write(home.place, getOther(name, home), home.read)))
        return failure();
      continue;
    }
    if (home.piece.key.get() != state->second.piece.key.get())
      return refuse(home.read) << "expected the piece of state '"
                               << name.getValue() << "' that tasks have";
  }
  for (auto &[name, state] : local->states) {
    if (!state.changes)
      continue; // perhaps it is packed, and kept no more
    FailureOr<Home *> home = findHome(name);
    if (failed(home) ||
        failed(memory.write((*home)->place, state.term, (*home)->read)))
      return failure();
  }
  return success();
}

/// What a state that the entry at hand does not name holds all along.
TermId PlanReplay::getOther(StringAttr name, const Home &home) {
  return meaning.given(
      local->isChanging(name) ? Source::State : Source::FirstState, name,
      home.piece, home.place.map.count(), home.place.element, home.read);
}

/// The bytes of a state hold what the tasks have given it so far.
LogicalResult PlanReplay::checkState(StringAttr name, const Home &home,
                                     StringRef when) {
  auto state = local->states.find(name);
  TermId expected =
      state != local->states.end() ? state->second.term : getOther(name, home);
  if (memory.read(home.place) != expected)
    return refuse(home.read)
           << when << " the bytes of state '" << name.getValue()
           << "' do not hold the value that the tasks give it";
  return success();
}

LogicalResult PlanReplay::checkOutputs() {
  for (auto &[key, output] : local->outputs)
    if (!output.written)
      return refuse(program)
             << "expected output '" << key.first.getValue()
             << "' of micro-batch " << key.second.second << " to be written";
  return success();
}

LogicalResult PlanReplay::runSegment(plan::SegmentOp segment, bool inLoop) {
  for (auto run : segment.getOps<plan::RunOp>()) {
    plan::BodyOp body = bodies.lookup(run.getTaskAttr().getAttr());
    if (!body)
      return run.emitOpError() << "names no body: " << run.getTaskAttr();
    auto commands = orderCommands(body);
    if (failed(commands))
      return failure();
    meaning.setMicroBatch(run.getOffset(), inLoop);
    copies.beginRun(run, meaning.getMicroBatch());
    for (plan::CommandOpInterface each : *commands)
      if (failed(execute(each)))
        return failure();
    if (failed(copies.endRun(run, meaning.getMicroBatch())))
      return failure();
  }
  return success();
}

bool PlanReplay::isTried(ValueId id) const {
  return llvm::any_of(tried, [&](auto range) {
    return range.first <= id && id < range.second;
  });
}

/// Remembers who made the first value, of those after `known`, that is computed
/// and not just given.
void PlanReplay::noteForeign(unsigned known) {
  for (ValueId id = known; id < terms.size() && !foreign; ++id) {
    if (isTried(id))
      continue;
    ValueKind kind = terms.at(id).kind;
    if (kind == ValueKind::Computed || kind == ValueKind::Product ||
        kind == ValueKind::Cast)
      foreign = command;
  }
}

LogicalResult PlanReplay::execute(plan::CommandOpInterface each) {
  command = each;
  unsigned known = terms.size();
  LogicalResult executed =
      llvm::TypeSwitch<Operation *, LogicalResult>(command)
          .Case<plan::ConvOp, plan::DealRowsOp, plan::GemmOp,
                plan::GroupedGemmOp, plan::GroupedGemmGradOp, plan::AttentionOp,
                plan::AttentionGradOp, plan::KernelOp, plan::CollectiveOp,
                plan::CopyOp, plan::FillOp, plan::PackOp, plan::CoordinateOp,
                plan::ReadOp, plan::WriteOp, plan::SendOp, plan::RecvOp>(
              [&](auto op) { return execute(op); })
          .Case<plan::RecordOp, plan::WaitOp>([](auto) { return success(); })
          .Default([](Operation *op) {
            return op->emitOpError() << "has no meaning to the proof";
          });
  if (failed(executed))
    return failure();
  noteForeign(known);
  if (auto releases = command->getAttrOfType<ArrayAttr>(plan::kReleasesAttr))
    for (auto view : releases.getAsRange<plan::ViewAttr>()) {
      FailureOr<Place> place = locate(view);
      if (failed(place) || failed(release(*place)))
        return failure();
    }
  return success();
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

FailureOr<Place> PlanReplay::locate(plan::ViewAttr view, bool ofNumber) {
  plan::BufferOp buffer = buffers.lookup(view.getBuffer().getAttr());
  if (!buffer)
    return command->emitOpError() << "names no buffer: " << view.getBuffer();
  Place place;
  place.space = buffer.getSpace();
  place.element = view.getElement();
  place.elementBytes = view.getElementBytes();
  place.base = buffer.getOffset();
  place.copies = copies.find(buffer);
  place.limit = place.base + int64_t(buffer.getBytes());
  place.map = IndexMap::strided(0, view.getShape(), view.getStrides());
  for (plan::AxisStrideAttr axis : view.getAxes()) {
    if (axis.getBytes() % place.elementBytes != 0)
      return command->emitOpError()
             << "expected strides of whole elements, found " << axis;
    auto name = StringAttr::get(module.getContext(), axis.getAxis());
    if (failed(meaning.addCoordinate(
            place.map, name, axis.getBytes() / place.elementBytes, command)))
      return failure();
  }
  if (ofNumber)
    place.map = place.map.atNumbers(microBatchAxis);
  // The fixed part of it moves the beginning.
  place.begin =
      place.base + view.getOffset() + place.map.offset * place.elementBytes;
  place.map.offset = 0;
  auto [low, high] = place.map.range();
  place.end = place.begin + (high + 1) * place.elementBytes;
  if (view.getNumElements() == 0)
    place.end = place.begin;
  if (low < 0 || place.begin < place.base || place.end > place.limit)
    return command->emitOpError() << "expected a view within "
                                  << view.getBuffer() << ", found " << view;
  return place;
}

FailureOr<TermId> PlanReplay::read(plan::ViewAttr view) {
  FailureOr<Place> place = locate(view);
  if (failed(place))
    return failure();
  TermId term = at(*place).read(*place);
  // What all micro-batches find in the same tensor, each in its own place.
  FailureOr<Place> anyPlace = locate(view, /*ofNumber=*/false);
  if (succeeded(anyPlace) && !(anyPlace->map == place->map)) {
    TermId general = at(*anyPlace).read(*anyPlace);
    const Term &each = terms.get(general);
    if (each.isOfValue() &&
        terms.strided(each.value, each.map.atNumbers(microBatchAxis)) == term)
      term = general;
  }
  FailureOr<TermId> input = findInput(term);
  if (failed(input))
    return failure();
  term = *input;
  if (!terms.get(term).defined)
    return refuse(command)
           << "reads bytes of " << view.getBuffer() << " that hold no "
           << view.getElement()
           << " which this run, or its beginning, has put there";
  return term;
}

/// Of what was read of each micro-batch at once, what the one at hand has is
/// its input.
FailureOr<TermId> PlanReplay::findInput(TermId id) {
  const Term &term = terms.get(id);
  if (!term.isOfValue())
    return id;
  auto found = readOfEach.find(term.value);
  if (found == readOfEach.end())
    return id;
  plan::ReadOp read = found->second;
  int64_t count =
      read.getTarget().getNumElements() / read.getTarget().getShape().front();
  IndexMap own = IndexMap::dense(count);
  if (failed(meaning.addCoordinate(own, microBatchAxis, count, command)))
    return failure();
  if (!(term.map == own) && !(term.map == own.atNumbers(microBatchAxis)))
    return id;
  return meaning.given(Source::Input, read.getNameAttr(),
                       PieceKey::of(read.getPart()), count,
                       read.getTarget().getElement(), read);
}

LogicalResult PlanReplay::write(plan::ViewAttr view, TermId term) {
  FailureOr<Place> place = locate(view);
  if (failed(place))
    return failure();
  const Term &written = terms.get(term);
  if (written.count != view.getNumElements() ||
      written.element != view.getElement())
    return refuse(command) << "computes " << written.count << " elements of "
                           << written.element << ", where " << view
                           << " stands";
  if (!ofEach.put(view, meaning.getMicroBatch(), term))
    ofEach.overwrite(*place);
  return failure(failed(forgetOthers(*place)) ||
                 failed(at(*place).write(*place, term, command)));
}

LogicalResult PlanReplay::release(const Place &place) {
  ofEach.overwrite(place);
  return failure(
      failed(forgetOthers(place)) ||
      failed(at(place).erase(place.space, place.begin, place.end, command)));
}

LogicalResult PlanReplay::forgetOthers(const Place &place) {
  LogicalResult result = success();
  if (place.begin < place.end)
    copies.forEachTouching(
        place.space, place.first(), place.last(), place.copies,
        [&](const CopiedBytes &others) {
          // What the run does not use is not there, but its place may be
          // another one's.
          if (copies.isInUse(others) &&
              failed(copies.get().erase(others.space, others.begin,
                                        others.begin + others.bytes, command)))
            result = failure();
        });
  if (place.copies &&
      failed(memory.erase(place.space, place.first(), place.last(), command)))
    return failure();
  return result;
}

LogicalResult PlanReplay::overwrite(std::optional<plan::ViewAttr> scratch) {
  if (!scratch)
    return success();
  FailureOr<Place> place = locate(*scratch);
  return failed(place) ? failure() : release(*place);
}

namespace {
struct Range {
  Place place;
  unsigned number;
  bool isWrite;
};
} // namespace

LogicalResult
PlanReplay::checkApart(ArrayRef<plan::ViewAttr> reads,
                       ArrayRef<plan::ViewAttr> writes,
                       llvm::function_ref<bool(unsigned, unsigned)> mayShare) {
  SmallVector<Range> ranges;
  for (auto views : {reads, writes})
    for (auto [number, view] : llvm::enumerate(views)) {
      FailureOr<Place> place = locate(view);
      if (failed(place))
        return failure();
      ranges.push_back(
          {*place, unsigned(number), views.data() == writes.data()});
    }
  llvm::sort(ranges, [](const Range &lhs, const Range &rhs) {
    return std::tuple(lhs.place.space, lhs.place.first()) <
           std::tuple(rhs.place.space, rhs.place.first());
  });
  for (auto [at, range] : llvm::enumerate(ranges))
    for (const Range &other : ArrayRef(ranges).drop_front(at + 1)) {
      if (other.place.space != range.place.space ||
          other.place.first() >= range.place.last())
        break;
      if (!(range.isWrite || other.isWrite) ||
          !range.place.touches(other.place))
        continue;
      const Range &input = range.isWrite ? other : range,
                  &output = range.isWrite ? range : other;
      if (!input.isWrite && mayShare && input.place.isSameAs(output.place) &&
          mayShare(input.number, output.number))
        continue;
      return refuse(command)
             << "writes bytes that it "
             << (input.isWrite ? "writes as another result"
                               : "still reads as another element");
    }
  return success();
}
