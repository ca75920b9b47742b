"""A run: ranks that are loaded once, and called."""
import ctypes
import mmap
import os
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from . import arrays
from . import library as lib
from .errors import BatchError, Error, NotFinite, Warn

# How long a wait lets signals wait.
SLICE = 0.1


@dataclass(frozen=True)
class Result:
    """What acc-run tells of a step, under the names of its --json, and the outputs that were
    asked for."""
    step: int  # how many were called so far, this and skipped ones included
    skipped: bool  # by the program's own rule: nothing has changed but `step`
    reports: dict  # the numbers by which the program says how the step went, by name
    time_s: float  # on the slowest rank
    samples: int
    tokens: int  # 0: the program has no inputs of integers [batch, length]
    outputs: dict = field(default_factory=dict, repr=False)

    @property
    def loss(self):
        return self.reports["loss"]

    @property
    def grad_norm(self):
        return self.reports["grad_norm"]

    @property
    def lr(self):
        return self.reports["lr"]


def load(executable, *, weights=None, resume=None, ranks=None, threads=None, hang_after=None,
         poison=False, trace=None, acc_run=None, progress=None):
    """Starts the ranks of an executable of acc-opt, and returns when they have loaded.

    weights: begin with these, as acc-run --weights takes them: a safetensors file, a
        checkpoint, or a folder of checkpoints. resume: go on from a checkpoint, moments and
        number of steps included.
    ranks: their number; an error if it is not the mesh's. threads: of each rank.
    hang_after: seconds without progress that are taken for a hang; waiting for the caller is
        none.
    poison, trace: as of acc-run. acc_run: its path. progress: called with lines of how far
        loading is.

    Raises Error, with acc-run's sentence."""
    words = []
    for name, value in (("--weights", weights), ("--resume", resume), ("-n", ranks),
                        ("--threads", threads), ("--hang-after", hang_after), ("--trace", trace)):
        if value is not None:
            words += [name, os.fspath(value) if name in ("--weights", "--resume", "--trace")
                      else str(value)]
    return Run(executable, [*words, *(["--poison"] if poison else [])], acc_run, progress)


class Run:
    """The ranks of an executable. Made by `load`. A run is for one thread at a time; it ends
    with `close`, with the `with` block, or with the program."""

    def __init__(self, executable, words, acc_run=None, progress=None):
        self._library, self._run = lib.library(), ctypes.c_void_p()
        self._lock, self._owner = threading.Lock(), os.getpid()
        self._slots = {kind: {} for kind in (lib.INPUT, lib.OUTPUT, lib.WEIGHT)}
        if acc_run is None and "ACC_RUN" not in os.environ and os.environ.get("ACC_BIN"):
            acc_run = os.path.join(os.environ["ACC_BIN"], "acc-run")
        encoded = [os.fsencode(word) for word in words]
        self._heard = []  # of warnings: they may be errors, which no callback can raise
        self._options = lib.Options(
            acc_run and os.fsencode(acc_run),
            (ctypes.c_char_p * (len(encoded) + 1))(*encoded, None),
            lib.Told(lambda _, text: self._heard.append(text.decode(errors="replace"))),
            lib.Told(lambda _, text: progress and progress(text.decode(errors="replace"))))
        try:
            self._check(self._library.Open(os.fsencode(executable), self._options,
                                           ctypes.byref(self._run)))
            self._wait()
            self._map()
        except BaseException:
            self.close()
            raise

    # -- What there is ---------------------------------------------------------------------

    @property
    def closed(self):
        """Whether there are no ranks any more."""
        return not self._run

    @property
    def steps(self):
        """Steps that were called, skipped ones among them."""
        return self._info().steps

    @property
    def ranks(self):
        return self._info().ranks

    @property
    def threads(self):
        """Of each rank."""
        return self._info().threads

    @property
    def inputs(self):
        """The memory that the ranks read, as NumPy arrays by the names of inputs: of the whole
        batch, and for all calls that read them. What is written here is not copied any more:
        `run.step()` takes it as it is."""
        return {name: slot.array for name, slot in self._slots[lib.INPUT].items()}

    # -- Calls -----------------------------------------------------------------------------

    def step(self, batch=None, *, outputs=False):
        """One training step on a global batch, a dictionary of arrays or tensors, or on a
        smaller one where the program has a mask of rows (acc-opt --row-mask); None: on
        `inputs` as they are. Returns a Result, with the outputs of the step (gradients, say)
        where they are asked for. Raises NotFinite, after which training can go on, BatchError,
        before which nothing was done, and Error."""
        self._call(lib.STEP, batch, outputs)
        info, result = self._info(), self._library.Result(self._run)
        reports = (self._library.Report(self._run, place)
                   for place in range(self._library.NumReports(self._run)))
        return Result(result.step, result.verdict == lib.STEP_SKIPPED,
                      {report.name.decode(): report.value for report in reports
                       if report.name != b"verdict"},
                      result.seconds, info.samples, info.tokens,
                      self._outputs(lib.STEP) if outputs else {})

    def evaluate(self, batches=None):
        """The loss of a batch, without dropout; or of several, from anything that can be
        iterated: that of all as of one batch where the loss can tell, else the mean of
        theirs."""
        if batches is None or isinstance(batches, Mapping):
            batches = [batches]
        count = 0
        for batch in batches:
            self._call(lib.EVALUATE, batch, goes_on=count > 0)
            count += 1
        if not count:
            raise BatchError("expected at least one batch to evaluate on, found none")
        return self._library.Result(self._run).loss

    def forward(self, batch=None):
        """The outputs of a batch, copied, by their names."""
        self._call(lib.FORWARD, batch, outputs=True)
        return self._outputs(lib.FORWARD)

    def weights(self):
        """Parameters and buffers, copied, under each of their names. Bits of types that NumPy
        has not (bfloat16) come as whole numbers."""
        self._call(lib.GET_WEIGHTS)
        copies, found = {}, {}  # of a parameter with several names there is one
        for name, slot in self._slots[lib.WEIGHT].items():
            at = slot.array.ctypes.data
            if at not in copies:
                copies[at] = slot.array.copy()
            found[name] = copies[at]
        self._library.DropWeights(self._run)
        return found

    def load_weights(self, weights, *, strict=True):
        """Puts others in the place of parameters and buffers: a dictionary, as of a
        state_dict. Moments and the number of steps stay. A parameter with several names is
        given under one of them, or the same under all. strict=False: those that are not given
        stay."""
        slots = self._slots[lib.WEIGHT]
        if not isinstance(weights, Mapping):
            raise BatchError("expected a dictionary of weights by their names, found "
                             f"{type(weights).__name__}")
        tied = {}
        for name, slot in slots.items():
            tied.setdefault(slot.array.ctypes.data, []).append(name)
        wanted = []
        for names in tied.values():
            given = [name for name in names if name in weights]
            for name in given[1:]:
                if not same(weights[given[0]], weights[name]):
                    raise BatchError(f"expected the same value of '{given[0]}' and '{name}', "
                                     "which are one parameter of the program, found two")
            if given or strict:
                wanted.append(slots[given[0] if given else names[0]])
        others = {name: value for name, value in weights.items() if name not in slots}
        chosen = {slot.name: weights[slot.name] for slot in wanted if slot.name in weights}
        if not strict:
            self._call(lib.GET_WEIGHTS)
        arrays.put(wanted, {**chosen, **others}, "weight",
                   "give it, or say strict=False to leave it as it is")
        self._call(lib.SET_WEIGHTS)
        self._library.DropWeights(self._run)

    def save_checkpoint(self, folder):
        """Saves all that training needs to go on into FOLDER/step-NNNNNNNN, as acc-run
        --checkpoint does; `load(resume=FOLDER)` and acc-run --resume go on from it, in any
        layout."""
        self._call(lib.SAVE, folder=os.fsencode(folder))

    def close(self):
        """Ends the ranks. What is at hand is given up."""
        run, self._run = self._run, None
        if run:
            self._library.Close(run)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_run", None):
            self.close()

    def __repr__(self):
        return "<acc.Run, closed>" if self.closed else (
            f"<acc.Run of {self.ranks} ranks after step {self.steps}>")

    # -- How -------------------------------------------------------------------------------

    def _info(self):
        if self.closed:
            raise Error("expected a run with ranks, found one that was closed")
        return self._library.Info(self._run)

    def _map(self):
        """Maps the memory anew, so that an array keeps what it is a view of."""
        memories = []
        for which in (0, 1):
            size = ctypes.c_uint64()
            file = self._library.Memory(self._run, which, ctypes.byref(size))
            memories.append(mmap.mmap(file, size.value) if size.value else None)
        for kind, slots in self._slots.items():
            for index in range(self._library.NumTensors(self._run, kind)):
                found = self._library.Tensor(self._run, kind, index)
                tensor, dtype = found.contents, arrays.NAMES[found.contents.type]
                name, shape = tensor.name.decode(), tuple(tensor.shape[:tensor.rank])
                slots[name] = arrays.Slot(name, dtype, tensor.calls, arrays.view(
                    memories[kind == lib.WEIGHT], self._library.Offset(self._run, found), dtype,
                    shape), bool(tensor.is_row_mask))

    def _of(self, kind, call):
        return [slot for slot in self._slots[kind].values() if slot.calls >> call & 1]

    def _outputs(self, call):
        return {slot.name: slot.array.copy() for slot in self._of(lib.OUTPUT, call)}

    def _call(self, kind, batch=None, outputs=False, goes_on=False, folder=None):
        info = self._info()
        if not self._lock.acquire(blocking=False):
            raise Error("expected one call at a time, found one of another thread at hand")
        try:
            if batch is not None and info.calls >> kind & 1:  # else Start says why not
                slots = self._of(lib.INPUT, kind)
                arrays.put(slots, arrays.fill_up(slots, batch), "input", "a batch has all of them")
            self._check(self._library.Start(self._run, kind, outputs, goes_on, folder))
            self._wait(NotFinite if kind == lib.STEP else Error)
        finally:
            self._lock.release()

    def _wait(self, refusal=Error):
        """Waits in slices, between which Python's handlers of signals run. Whatever they
        raise, Ctrl-C for one, ends the run: a call cannot be taken back."""
        try:
            while (status := self._library.Wait(self._run, SLICE)) == lib.PENDING:
                pass
        except BaseException:
            self.close()
            raise
        self._check(status, refusal)

    def _check(self, status, refusal=Error):
        heard, self._heard[:] = list(self._heard), []
        for text in heard:
            warnings.warn(text, Warn, stacklevel=5)
        if status == lib.DONE:
            return
        if not self._run:
            raise MemoryError
        message = self._library.Message(self._run).decode(errors="replace")
        if status == lib.ENDED:
            self.close()
            raise Error(message)
        raise refusal(message)


def same(one, other):
    (first, a), (second, b) = arrays.as_array(one), arrays.as_array(other)
    return first == second and a.shape == b.shape and a.tobytes() == b.tobytes()
