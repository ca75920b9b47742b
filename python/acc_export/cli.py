"""The command line. Nothing here imports PyTorch before the arguments are known to be
good."""
import argparse
import dataclasses
import json
import os
import sys

from . import Refused, __version__

_DESCRIPTION = """\
Writes a PyTorch model as an ONNX file that says all that training needs, for acc-opt: the
parameters under their own names with their ties, where gradients stop, the loss inside.
What a file cannot say is refused, with what to do instead.

MODEL is one of
  FILE.py[:function]   a function (default: model) that returns (module, args) or
                       (module, args, kwargs), or a module with example_inputs; it is
                       exported in the mode it is in, train() or eval()
  FOLDER, ID           a model of Hugging Face with its weights, from a folder or the
                       local cache; nothing is downloaded
  FOLDER/config.json   the same with random weights"""

_EPILOG = """\
DIR gets model.onnx (and model.onnx.data beyond 2 GB) and inputs/<name>.npy, a sample that
acc-run --inputs reads:
  acc-opt DIR/model.onnx --train --loss loss --optimizer adamw -o model.accx
  acc-run model.accx --steps 10 --inputs DIR/inputs --save-weights weights.safetensors
In Python, acc_export.load(module, "weights.safetensors") puts the weights back."""


def _positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("expected a number from 1 on")
    return value


class _Once(argparse.Action):
    """One value: of two that differ none wins."""

    def __call__(self, parser, namespace, values, option_string=None):
        before = getattr(namespace, self.dest)
        if before not in (None, values):
            parser.error(f"expected {option_string} once, found {before} and {values}")
        setattr(namespace, self.dest, values)


def make_parser():
    parser = argparse.ArgumentParser(
        prog="acc-export", description=_DESCRIPTION, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", help="see above")
    parser.add_argument("-o", action=_Once, dest="dir", metavar="DIR", required=True,
                        help="the folder to write, made where it is missing")
    parser.add_argument("--loss", action=_Once, metavar="KIND",
                        help="causal-lm, sequence-classification, mlm, seq2seq (the model is "
                        "given decoder_input_ids), or FILE.py:function, "
                        "called with (outputs, labels), where labels is that argument of the "
                        "model's; without it the model returns the loss itself")
    parser.add_argument("--text", action=_Once, metavar="FILE",
                        help="make the sample of this text with the model's tokenizer (lines "
                        "LABEL<tab>TEXT for sequence-classification) instead of random tokens")
    parser.add_argument("--batch", action=_Once, type=_positive, metavar="N",
                        help="rows of the sample of a model of Hugging Face (default: 8)")
    parser.add_argument("--sequence", action=_Once, type=_positive, metavar="N",
                        help="tokens in a row of it (default: 128, or all that the model has)")
    parser.add_argument("--padded", action="store_true",
                        help="a model of Hugging Face takes an attention_mask: rows are padded")
    parser.add_argument("--packed", action="store_true",
                        help="it takes position_ids, which begin again with each of several "
                        "sequences in a row, and keep these apart (causal-lm)")
    parser.add_argument("--dynamic", action="store_true",
                        help="leave the batch symbolic, for acc-opt --dim batch=N")
    parser.add_argument("--dynamic-sequence", action="store_true",
                        help="leave the length of a row symbolic, too, for --dim sequence=N: the "
                        "second dimension of every argument whose is as long as the first one's")
    parser.add_argument("--eval", action="store_true",
                        help="a model of Hugging Face without dropout; the default is its "
                        "training mode")
    parser.add_argument("--opset", action=_Once, type=_positive, metavar="N",
                        help="default: what PyTorch's exporter writes")
    parser.add_argument("--json", action="store_true",
                        help="one JSON object on stdout, of an error too")
    parser.add_argument("--version", action="version", version=f"acc-export {__version__}")
    return parser


def _dynamic_shapes(module, args, kwargs, has_sequence):
    """The first dimension of every tensor is the batch; with `has_sequence` the second of
    those that are as long there as the first of them is the sequence."""
    import inspect

    import torch

    parameters = list(inspect.signature(module.forward).parameters.values())[:len(args)]
    if len(parameters) < len(args) or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise Refused("--dynamic needs the model's arguments by name: return (module, (), kwargs)")
    named = {p.name: value for p, value in zip(parameters, args)}
    arguments = {**named, **kwargs}
    lengths = [value.shape[1] for value in arguments.values()
               if isinstance(value, torch.Tensor) and value.dim() > 1]
    if has_sequence and not lengths:
        raise Refused("--dynamic-sequence needs an argument with two dimensions")

    def mark(value):
        if not isinstance(value, torch.Tensor) or not value.dim():
            return None
        is_row = has_sequence and value.dim() > 1 and value.shape[1] == lengths[0]
        return {0: "batch", 1: "sequence"} if is_row else {0: "batch"}
    return {name: mark(value) for name, value in arguments.items()}


def _export(options, progress):
    try:
        import torch  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise Refused(f"{error.name} is not installed here: pip install torch "
                      "onnxscript") from error
    from . import models, program
    with program.step(progress, f"loading {options.model}"):
        if models.is_file(options.model):
            for flag, given in (("--text", options.text), ("--sequence", options.sequence),
                                ("--batch", options.batch), ("--eval", options.eval),
                                ("--padded", options.padded), ("--packed", options.packed)):
                if given:
                    raise Refused(f"{flag} is for models of Hugging Face: have the function in the "
                                  "file do it")
            module, args, kwargs = models.from_file(options.model)
        else:
            module, args, kwargs = models.from_hub(
                options.model, options.loss, text_file=options.text, batch=options.batch or 8,
                sequence=options.sequence, train=not options.eval, padded=options.padded,
                packed=options.packed)
    loss = options.loss
    if loss and models.is_file(loss):
        loss = models.function_of(loss)
    shapes = None
    if options.dynamic or options.dynamic_sequence:
        shapes = _dynamic_shapes(module, args, kwargs, options.dynamic_sequence)
    return program.export_module(module, args, kwargs, loss=loss, path=None, dir=options.dir,
                                 dynamic_shapes=shapes, input_names=None, output_names=None,
                                 opset=options.opset, progress=progress)


def _describe(summary):
    """For people."""
    yield (f"{summary.path}: {summary.parameters} parameters ({summary.elements:,} numbers), "
           f"{summary.trained} of them trained, opset {summary.opset}, {summary.seconds:.1f} s")
    for count, what in ((summary.dropouts, "dropout draws random numbers in every step"),
                        (summary.checkpoints, "what torch.utils.checkpoint runs is computed again in "
                         "the backward"),
                        (summary.stops, "a gradient is stopped")):
        if count:
            yield f"  {count} times {what}"
    for name, value in summary.inputs.items():
        yield f"  input {name}: {value['dtype']} {value['shape']}"
    yield f"  outputs: {', '.join(summary.outputs)}"
    if "loss" not in summary.outputs:
        yield "  no output is called 'loss': say acc-opt --loss OUTPUT"


def execute(options, answer):
    """What main does with arguments that are good: the answer to `answer`, messages to
    stderr. Returns the exit status."""
    err = sys.stderr  # while tracing, sys.stderr is another
    try:
        summary = _export(options, lambda text: print(f"acc-export: {text}", file=err, flush=True))
    except (Refused, OSError) as problem:
        if options.json:
            print(json.dumps({"error": str(problem)}), file=answer, flush=True)
        print(f"acc-export: error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("acc-export: interrupted", file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps(dataclasses.asdict(summary)), file=answer, flush=True)
    else:
        for line in _describe(summary):
            print(line, file=answer, flush=True)
    return 0


def main(argv=None):
    options = make_parser().parse_args(argv)
    # Whatever a library prints on stdout is not the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return execute(options, answer)
