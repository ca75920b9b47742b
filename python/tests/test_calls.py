"""Training from a program that calls the ranks step by step, in float64 beside a loop in
PyTorch and beside acc-run, bit by bit, in every kind of layout: weights and checkpoints in and
out, batches that do not fit, and every way in which one side may end. Needs the tools and the
library, near the folder that ACC_BIN names."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from common import acc_export
import acc  # noqa: E402, from the folder that common adds
from test_data import BATCH, LAYOUTS, RATE, ROWS, Net, order_of, samples, take
from training import TOOLS, WITHOUT_TOOLS, TrainCase

STEPS = 6
ORDER = order_of(STEPS)
DATA = samples(ROWS, 3)
# A program that loads a run, says so, and does what is on its command line.
CALLER = f"""
import sys; sys.path[:0] = {[str(pathlib.Path(p)) for p in sys.path[:4]]!r}
import acc, numpy as np, os, time
with acc.load(sys.argv[1]) as run:
    for array in run.inputs.values(): array[...] = 1
    run.step()
    print("loaded", flush=True)
    exec(sys.argv[2])
"""


class Scores(Net):
    def forward(self, ids, mask, features):
        x = torch.tanh(self.hidden(self.words(ids)))
        weights = mask.to(x.dtype)[:, :, None]
        return self.head(torch.cat([(x * weights).sum(1) / weights.sum(1), features.T], 1))


def batch(rows, data=DATA):
    return dict(zip(data, take(data, rows)))


def children(process):
    return [int(child) for child in pathlib.Path(
        f"/proc/{process}/task/{process}/children").read_text().split()]


def processes():
    """(acc-run, its ranks) of the run that this process has loaded last."""
    overseer = max(child for child in children(os.getpid()) if "acc-run" in pathlib.Path(
        f"/proc/{child}/cmdline").read_text())
    return overseer, children(overseer)


def lives(process):
    try:
        return "State:\tZ" not in pathlib.Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Calls(TrainCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.programs = pathlib.Path(folder.name)
        acc_export.export(Net(), tuple(
            value.float() if value.is_floating_point() else value
            for value in take(DATA, list(range(BATCH)))), dir=folder.name)

    def compile(self, layout="", entries="step,eval,forward"):
        """The executable for a layout, which all tests share."""
        program = self.programs / f"{layout}-{entries}.accx".replace(" ", "_").lstrip("-")
        if not program.exists():
            self.tool("acc-opt", self.programs / "model.onnx", "--train", "--loss", "loss",
                      "--dtype=f64", "--optimizer", "adamw", "--set", f"optimizer.lr={RATE / 8}",
                      "--batch-dim", "features=1", "--entries", entries, *layout.split(), "-o",
                      program)
        return program

    def assert_gone(self, *found):
        deadline = time.monotonic() + 10
        while any(map(lives, found)) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual([p for p in found if lives(p)], [])

    def torch_loop(self):
        module = Net().double()
        optimizer = torch.optim.AdamW(module.parameters(), lr=RATE / 8)
        losses = []
        for rows in ORDER:
            optimizer.zero_grad()
            loss = module(*take(DATA, rows))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, module

    def acc_loop(self, program, *words, steps=STEPS):
        """Lines and weights of acc-run on the same batches, from files."""
        text, weights = [], self.folder / "w.safetensors"
        for name, value in DATA.items():
            np.save(self.folder / f"{name}.npy", value.numpy())
            text.append(f"{name}={self.folder / name}.npy")
        lines = self.tool("acc-run", program, "--json", "--steps", steps, "--data", ",".join(text),
                          "--data-order=file", "--save-weights", weights, *words).splitlines()
        return [json.loads(line) for line in lines if '"loss"' in line], load_file(weights)

    def assert_same_bits(self, results, run, lines, weights):
        for line, result in zip(lines, results, strict=True):
            for name in ("step", "loss", "grad_norm", "lr"):
                self.assertEqual(line[name], getattr(result, name), name)
        found = run.weights()
        self.assertEqual(found.keys(), weights.keys())
        for name, value in weights.items():
            np.testing.assert_array_equal(found[name], value.numpy(), name)

    def test_every_layout_is_pytorchs_and_acc_runs_bit_by_bit(self):
        losses, module = self.torch_loop()
        with torch.no_grad():
            held = [module(*take(DATA, rows)).item() for rows in ORDER[:2]]
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                program = self.compile(layout)
                with acc.load(program) as run:
                    results = [run.step(batch(rows)) for rows in ORDER]
                    torch.testing.assert_close([r.loss for r in results], losses, rtol=1e-9,
                                               atol=1e-12)
                    self.assert_same_bits(results, run, *self.acc_loop(program))
                    torch.testing.assert_close(run.evaluate(batch(rows) for rows in ORDER[:2]),
                                               sum(held) / 2, rtol=1e-9, atol=1e-12)
                    torch.testing.assert_close(run.evaluate(batch(ORDER[0])), held[0], rtol=1e-9,
                                               atol=1e-12)
                    self.assertEqual((run.steps, results[0].samples), (STEPS, BATCH))

    def test_what_is_installed_is_found(self):
        """As a wheel puts it into an environment: acc-run in the PATH, the library beside."""
        prefix = self.folder / "prefix"
        subprocess.run(["cmake", "--install", TOOLS.parent, "--prefix", prefix, "--strip",
                        "--component", "tools"], check=True, capture_output=True)
        said = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", CALLER, self.compile(),
             "import acc.library; print(acc.library.candidates()[0], run.steps)"],
            env={"PATH": f"{prefix / 'bin'}:/usr/bin:/bin"}, text=True, capture_output=True)
        self.assertEqual(said.stdout.splitlines()[1:],
                         [f"{prefix.resolve() / 'lib' / 'libaccel-run.so'} 1"], said.stderr)

    def test_the_outputs_of_a_forward_follow_the_weights(self):
        module, (ids, mask, features, _) = Scores().double(), take(DATA, ORDER[0])
        acc_export.export(Scores(), (ids, mask, features.float()), dir=str(self.folder))
        changed = Scores().double()
        changed.load_state_dict({name: value + 1 for name, value in module.state_dict().items()})
        for words, dtype in (("--dtype=f64", torch.float64), ("--dtype=f64 --mesh tp=2", torch.float64),
                             ("", torch.float32),
                             ("--dtype=f64 --train --loss cross_entropy:output,labels --mesh dp=2",
                              torch.float64)):
            program = self.folder / "scores.accx"
            self.tool("acc-opt", self.folder / "model.onnx", "--batch-dim", "features=1",
                      *words.split(), "-o", program)

            def check(found, module):
                with torch.no_grad():
                    expected = module(ids, mask, features)
                torch.testing.assert_close(torch.from_numpy(found["output"]).double(), expected,
                                           **({} if dtype == torch.float64 else
                                              {"rtol": 1e-5, "atol": 1e-5}))

            with self.subTest(words), acc.load(program) as run:
                check(run.forward({"ids": ids, "mask": mask, "features": features.to(dtype)}),
                      module)
                weights = run.weights()
                for name, value in module.state_dict().items():
                    np.testing.assert_array_equal(weights[name], value.to(dtype))
                run.load_weights(weights)
                given = {name: value.to(dtype) for name, value in changed.state_dict().items()}
                try:
                    run.load_weights(given)
                except acc.Error as error:  # where products have them packed
                    self.assertRegex(str(error), "^expected the value that it has of the parameter "
                                                 "'.*', which is frozen .* load the executable "
                                                 "with these weights instead$")
                    self.assertEqual(words, "")
                    check(run.forward(), module)
                else:
                    check(run.forward(), changed)
                if "--train" not in words:
                    with self.assertRaisesRegex(acc.Error, "expected an executable that trains"):
                        run.save_checkpoint(self.folder)

    def test_gradients_are_outputs_of_a_step(self):
        module = Net().double()
        module(*take(DATA, ORDER[0])).backward()
        for layout in ("", "--mesh dp=4 --set zero_stage=3"):
            with acc.load(self.compile(layout + " --emit-gradients")) as run:
                result = run.step(batch(ORDER[0]), outputs=True)
                for name, parameter in module.named_parameters():
                    np.testing.assert_allclose(result.outputs[name + ".grad"], parameter.grad,
                                               rtol=1e-9, atol=1e-12)
                self.assertEqual(run.step(batch(ORDER[1])).outputs, {})

    def test_batches_are_written_in_place(self):
        program = self.compile("--mesh dp=2 --micro-batches=2")
        with acc.load(program) as run, acc.load(program) as other:
            for rows in ORDER[:3]:
                for name, value in batch(rows).items():
                    torch.from_numpy(run.inputs[name]).copy_(value)
                # A batch that is there already is not copied: nobody could tell, but it is
                # the same memory.
                self.assertEqual(run.step(run.inputs).loss, other.step(
                    {name: value.numpy() for name, value in batch(rows).items()}).loss)
            kept = run.inputs["ids"]
        self.assertTrue(run.closed)
        np.testing.assert_array_equal(kept, batch(ORDER[2])["ids"])  # it outlives the run

    def test_a_batch_that_does_not_fit_leaves_the_run(self):
        good = batch(ORDER[0])
        cases = {
            "expected input 'mask' .int64 .4, 6.., found none among 'ids', 'features', 'labels'":
                {name: value for name, value in good.items() if name != "mask"},
            "found 'mask2'": {**good, "mask2": good["mask"]},
            "expected int64 .4. for input 'labels', found int32 .4.: convert it, as with":
                {**good, "labels": good["labels"].int()},
            "expected float64 .3, 4. for input 'features', found float64 .4, 3.":
                {**good, "features": good["features"].T},
            "expected int64 .4. for input 'labels', found int64 .3.: a step takes whole batches":
                {**good, "labels": good["labels"][:3]},
            "expected a dictionary of inputs by their names, found list": list(good.values())}
        with acc.load(self.compile("--mesh dp=2")) as run, acc.load(self.compile()) as other:
            for words, wrong in cases.items():
                before = {name: array.copy() for name, array in run.inputs.items()}
                with self.assertRaisesRegex(acc.BatchError, words):
                    run.step(wrong)
                for name, array in run.inputs.items():
                    np.testing.assert_array_equal(array, before[name])
            with self.assertRaisesRegex(acc.BatchError, "at least one batch"):
                run.evaluate([])
            for rows in ORDER[:2]:
                self.assertAlmostEqual(run.step(batch(rows)).loss, other.step(batch(rows)).loss,
                                       delta=1e-12)

    def test_a_loss_that_is_no_number_leaves_the_state(self):
        program = self.compile("--mesh pp=2 --micro-batches=2")
        with acc.load(program) as run:
            run.step(batch(ORDER[0]))
            before = run.weights()
            bad = batch(ORDER[1])
            bad["features"] = bad["features"] * float("inf")
            with self.assertRaisesRegex(acc.NotFinite, "^step 2: the loss is not finite .nan.; the "
                                                       "state is that of step 1$"):
                run.step(bad)
            for name, value in run.weights().items():
                np.testing.assert_array_equal(value, before[name])
            results = [run.step(batch(rows)) for rows in ORDER[1:]]
            self.assertEqual(results[0].step, 2)
            self.assert_same_bits(results, run, *(
                part[1:] if isinstance(part, list) else part for part in self.acc_loop(program)))

    def test_weights_in_and_out(self):
        torch.manual_seed(3)
        given = {name: torch.randn_like(value, dtype=torch.float64)
                 for name, value in Net().state_dict().items()}
        save_file(given, self.folder / "given.safetensors")
        for layout in ("", "--mesh dp=4 --set zero_stage=3", "--mesh tp=2"):
            program = self.compile(layout)
            with self.subTest(layout=layout), acc.load(program) as run, acc.load(
                    program, weights=self.folder / "given.safetensors") as other:
                run.load_weights(given)
                for name, value in run.weights().items():
                    np.testing.assert_array_equal(value, given[name])
                for rows in ORDER[:3]:
                    self.assertEqual(run.step(batch(rows)).loss, other.step(batch(rows)).loss)
                one = {"head.bias": torch.zeros(5, dtype=torch.float64)}
                before = run.weights()
                run.load_weights(one, strict=False)
                for name, value in run.weights().items():
                    np.testing.assert_array_equal(value, one.get(name, before[name]))
                for words, wrong in {
                        "expected weight '.*' .float64 .*, found none among 'head.bias'": one,
                        "found 'more'": {**given, "more": given["head.bias"]},
                        "expected float64 .5. for weight 'head.bias', found float32 .5.":
                            {**given, "head.bias": given["head.bias"].float()}}.items():
                    with self.assertRaisesRegex(acc.BatchError, words):
                        run.load_weights(wrong)

    def test_checkpoints_are_acc_runs(self):
        one, four = self.compile(), self.compile("--mesh dp=4 --set zero_stage=3")
        expected, weights = self.acc_loop(one)
        saved, mine = self.folder / "saved", self.folder / "mine"
        self.acc_loop(one, "--checkpoint", saved, steps=2)
        with acc.load(four, resume=saved) as run:
            self.assertEqual(run.steps, 2)
            for rows in ORDER[2:4]:
                result = run.step(batch(rows))
            self.assertAlmostEqual(result.loss, expected[3]["loss"], delta=1e-12)
            for folder in (mine, self.folder / "other", mine):  # the last one is there
                run.save_checkpoint(folder)
            with self.assertRaisesRegex(acc.Error, "expected no checkpoint in .* that is newer"):
                (self.folder / "full" / "step-00000009").mkdir(parents=True)
                (self.folder / "full" / "step-00000009" / "checkpoint.json").write_text("{}")
                run.save_checkpoint(self.folder / "full")
            with self.assertRaisesRegex(acc.Error, "cannot|no such|expected"):
                run.save_checkpoint(self.folder / "no" / "such" / "folder")
            self.assertAlmostEqual(run.step(batch(ORDER[4])).loss, expected[4]["loss"],
                                   delta=1e-12)
        self.assertEqual(sorted(p.name for p in mine.glob("step-*")), ["step-00000004"])
        lines = self.tool("acc-run", one, "--json", "--resume", mine, "--steps", STEPS,
                          "--data", ",".join(f"{n}={self.folder / n}.npy" for n in DATA),
                          "--data-order=file").splitlines()
        found = [json.loads(line)["loss"] for line in lines if '"loss"' in line]
        np.testing.assert_allclose(found, [line["loss"] for line in expected[4:]], rtol=1e-12)

    def test_a_rank_that_ends_is_an_error(self):
        program = self.compile("--mesh dp=2")
        for wait in (0.2, 0):
            with acc.load(program) as run:
                run.step(batch(ORDER[0]))
                overseer, ranks = processes()
                os.kill(ranks[1], signal.SIGKILL)
                time.sleep(wait)
                with self.assertRaisesRegex(acc.Error, "rank 1.*: ended by signal 9"):
                    for _ in range(10000):  # it may make a step before it ends
                        run.step()
                self.assertTrue(run.closed)
                with self.assertRaisesRegex(acc.Error, "found one that was closed"):
                    run.step()
                self.assert_gone(overseer, *ranks)

    def test_what_refuses_numbers_says_what_acc_run_says(self):
        program = self.compile("--mesh dp=2")
        wrong = batch(ORDER[0])
        wrong["ids"] = wrong["ids"].clone()
        wrong["ids"][3, 1] = 1000
        folder = self.folder / "wrong"
        folder.mkdir()
        for name, value in wrong.items():
            np.save(folder / f"{name}.npy", value.numpy())
        done = subprocess.run([TOOLS / "acc-run", program, "--inputs", folder], text=True,
                              capture_output=True)
        self.assertIn("1000", done.stderr)
        with acc.load(program) as run, self.assertRaises(acc.Error) as caught:
            run.step(wrong)
        self.assertEqual(f"acc-run: error: {caught.exception}\n", done.stderr)

    def test_an_acc_run_that_is_killed_is_an_error(self):
        with acc.load(self.compile("--mesh dp=2")) as run:
            overseer, ranks = processes()
            os.kill(overseer, signal.SIGKILL)
            with self.assertRaisesRegex(acc.Error, "acc-run', process [0-9]+ was ended by signal 9"):
                for _ in range(10000):  # its ranks end after it
                    run.step(batch(ORDER[0]))
            self.assert_gone(overseer, *ranks)

    def test_a_caller_that_ends_takes_its_ranks_along(self):
        program = self.compile("--mesh dp=2")
        # The fork keeps the socket open.
        for code, how in (("time.sleep(60)", signal.SIGKILL),
                          ("os.fork() or time.sleep(5); time.sleep(60)", signal.SIGKILL),
                          ("os._exit(3)", None), ("pass", None)):
            with self.subTest(code=code):
                caller = subprocess.Popen([sys.executable, "-W", "ignore", "-c", CALLER,
                                           str(program), code], stdout=subprocess.PIPE)
                self.assertEqual(caller.stdout.readline(), b"loaded\n")
                found = []
                if how:
                    time.sleep(0.2)
                    overseer = next(c for c in children(caller.pid) if "acc-run" in pathlib.Path(
                        f"/proc/{c}/cmdline").read_text())
                    found = [overseer, *children(overseer)]
                    self.assertEqual(len(found), 3)
                    caller.send_signal(how)
                caller.wait()
                self.assert_gone(*found)
                caller.stdout.close()

    def test_waiting_for_the_caller_is_no_hang_but_a_rank_that_stands_is(self):
        with acc.load(self.compile("--mesh dp=2"), hang_after=1) as run:
            run.step(batch(ORDER[0]))
            time.sleep(1.5)
            run.step(batch(ORDER[1]))
            overseer, ranks = processes()
            os.kill(ranks[0], signal.SIGSTOP)
            with self.assertRaisesRegex(acc.Error, "no rank made progress for 1 s: rank 0.*in state "
                                                   "T .stopped.*; rank 1"):
                run.step()
            self.assert_gone(overseer, *ranks)

    def test_an_interrupt_ends_the_ranks(self):
        with acc.load(self.compile("--mesh dp=2")) as run:
            run.step(batch(ORDER[0]))
            overseer, ranks = processes()
            os.kill(ranks[0], signal.SIGSTOP)
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            begin = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                run.step()
            self.assertTrue(run.closed)
            self.assertLess(time.monotonic() - begin, 10)
            self.assert_gone(overseer, *ranks)

    def test_a_fork_may_not_call(self):
        with acc.load(self.compile()) as run:
            if not (child := os.fork()):
                try:
                    run.step(batch(ORDER[0]))
                except acc.Error as error:
                    run.close()  # which leaves the ranks to the parent
                    os._exit("forked" in str(error))
                os._exit(2)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 1)
            run.step(batch(ORDER[0]))

    def test_what_cannot_be_loaded_says_what_acc_run_says(self):
        program = self.compile()
        for words, file, options in (("expected 1 rank as the mesh", program, {"ranks": 2}),
                                     ("cannot open|no such file", self.folder / "none.accx", {}),
                                     ("cannot open the weights", program, {"weights": "none"}),
                                     ("cannot start '/no/acc-run': No such file", program,
                                      {"acc_run": "/no/acc-run"})):
            with self.assertRaisesRegex(acc.Error, words):
                acc.load(file, **options)
        for words in (["--steps", "2"], ["--entry", "eval"], ["--data", "x"]):
            with self.assertRaisesRegex(acc.Error, f"^cannot use option '{words[0]}' with --serve"):
                acc.Run(program, words)
        with self.assertRaisesRegex(acc.Error, "^unknown option '--what'"):
            acc.Run(program, ["--what"])
        with acc.load(self.compile(entries="step")) as run:
            for call in (run.evaluate, run.forward):
                with self.assertRaisesRegex(acc.Error, "expected an executable with the entry '"):
                    call()
            run.step(batch(ORDER[0]))


if __name__ == "__main__":
    unittest.main()
