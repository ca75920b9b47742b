"""The command line. No library is imported before the arguments are known to be good."""
import argparse
import json
import os
import signal
import sys
import time

from . import Refused, __version__

_DESCRIPTION = """\
Makes a data set into .npy files, one for each input of a model, whose rows are samples:
what acc-run --data reads. Everything streams, so that data may be larger than memory. What
is cut, dropped or left out is counted and said; the folder is there whole or not at all.

KIND is one of
  causal-lm   each token is asked for the next. Columns: messages (a chat, rendered by the
              tokenizer's chat template; the loss is on what the assistant says), prompt and
              completion (the loss is on the completion), text, or input_ids
  mlm         hidden tokens are asked for. Column text
  sequence-classification
              a class for each text. Columns text, pair (if there) and label
  seq2seq     from one text to another. Columns source and target
  table       numbers, classes by name, lists of numbers, tensors: --input NAME=COLUMN,...
  images      a class for each image: a folder with a folder of images for each class, or
              columns image and label

SOURCE is a file, or a folder of files of one kind
  .jsonl (.ndjson, .json: one object a line), .csv, .tsv (names in the first line), .txt (a
  text a line), each also as .gz; .parquet, .arrow, .feather; .safetensors, .npy (rows along
  the first dimension); a folder that `datasets` has saved to disk, and for images one with
  a folder of images (or of .npy) for each class"""

_EPILOG = """\
DIR gets NAME.npy for each input (with --validation DIR/train/NAME.npy and
DIR/validation/NAME.npy) and data.json, which says what was made of what:
  acc-export model --loss causal-lm --sequence 512 -o exported
  acc-data causal-lm chat.jsonl --tokenizer model --for exported --validation 0.05 -o data
  acc-run model.accx --steps 1000 --data input_ids=data/train/input_ids.npy,...
The last line of the output is that text for --data."""

#: Options and the kinds that can use them; the others are for all.
_LANGUAGE = ("causal-lm", "mlm", "sequence-classification", "seq2seq")
_USED_BY = {
    "tokenizer": _LANGUAGE, "sequence": _LANGUAGE, "long": _LANGUAGE,
    "pad_token": ("causal-lm", "mlm", "sequence-classification"),
    "pack": ("causal-lm",), "loss_on": ("causal-lm",), "labels": ("causal-lm",),
    "no_eos": ("causal-lm",), "mask_probability": ("mlm",), "copies": ("mlm",),
    "target_sequence": ("seq2seq",), "prefix": ("seq2seq",), "decoder_start": ("seq2seq",),
    "input": ("table",), "standardise": ("table",),
    "classes": ("sequence-classification", "images", "table"),
    "like": ("sequence-classification", "images", "table"),
    "columns": (*_LANGUAGE, "images"),
    "size": ("images",), "fit": ("images",), "mean": ("images",), "std": ("images",),
    "grey": ("images",),
}
KINDS = (*_LANGUAGE, "table", "images")


def _positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("expected a number from 1 on")
    return value


def _part(text):
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError("expected a number between 0 and 1")
    return value


def _token(text):
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("expected the ID of a token, from 0 on")
    return value


def _seed(text):
    value = int(text)
    if not 0 <= value < 1 << 64:
        raise argparse.ArgumentTypeError("expected a whole number from 0 to 2^64 - 1")
    return value


class _Columns(argparse.Action):
    """ROLE=COLUMN, several times."""

    def __call__(self, parser, namespace, values, option_string=None):
        role, equals, column = values.partition("=")
        if not (role and equals and column):
            parser.error(f"expected --column ROLE=COLUMN, found '{values}'")
        setattr(namespace, self.dest, {**getattr(namespace, self.dest), role: column})


def make_parser():
    parser = argparse.ArgumentParser(
        prog="acc-data", description=_DESCRIPTION, epilog=_EPILOG, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("kind", metavar="KIND", choices=KINDS, help="see above")
    add("sources", metavar="SOURCE", nargs="+", help="see above; several follow each other")
    add("-o", dest="dir", metavar="DIR", required=True, help="the folder to write")
    add("--for", dest="model", metavar="EXPORTED",
        help="the folder that acc-export wrote: which inputs the model takes, their sizes and "
        "types; what it does not take is left out, and what would be wrong without is refused")
    add("--rename", metavar="MADE=INPUT,...",
        help="the model's names, where they are others than input_ids, labels, ...")
    add("--validation", type=_part, metavar="F", default=0.0,
        help="keep this part of the rows out of training, chosen by the seed and the number of "
        "the row (default: none)")
    add("--seed", type=_seed, metavar="S", default=0, help="of that, and of mlm (default: 0)")
    add("--missing", choices=("error", "drop"), default="error",
        help="what becomes of a row without a value that is needed (default: error)")
    add("--overwrite", action="store_true",
        help="put the new data in the place of those that acc-data wrote to DIR before")
    add("--json", action="store_true", help="one JSON object on stdout, of an error too")
    add("--version", action="version", version=f"acc-data {__version__}")

    add = parser.add_argument_group("text").add_argument
    add("--tokenizer", metavar="FOLDER",
        help="a tokenizer of Hugging Face, with its chat template, or a tokenizer.json")
    add("--sequence", type=_positive, metavar="N", help="tokens in a row (default: the model's)")
    add("--long", choices=("cut", "drop", "split", "error"), default="cut",
        help="what becomes of more tokens: cut at the end (default), drop the row, split it "
        "into several (causal-lm), or an error")
    add("--pad-token", type=_token, metavar="ID",
        help="what fills rows up (default: the tokenizer's; for causal-lm without one, the end "
        "of text, whose labels are -100)")
    add("--column", dest="columns", action=_Columns, default={}, metavar="ROLE=COLUMN",
        help="the column to take for text, pair, label, source, target, messages, prompt, "
        "completion, input_ids or image; A.B is field B of column A; repeatable")

    add = parser.add_argument_group("causal-lm").add_argument
    add("--pack", action="store_true",
        help="several sequences in a row, with position_ids that begin again and segment_ids; "
        "the model keeps them apart by position_ids, if it has no attention_mask, or by an "
        "attention_mask of [batch, 1, N, N]")
    add("--loss-on", choices=("assistant", "completion", "all"),
        help="assistant: all that it says (default for messages); completion: what it says "
        "last, or the completion; all: every token")
    add("--labels", choices=("same", "next"), default="same",
        help="same (default): the model shifts the labels, as acc-export's causal-lm and "
        "those of Hugging Face; next: a label is the token behind its own")
    add("--no-eos", action="store_true", help="do not end a text with the tokenizer's last token")

    add = parser.add_argument_group("mlm").add_argument
    add("--mask-probability", type=_part, metavar="P", default=0.15,
        help="tokens that are asked for (default: 0.15): 80 in 100 of them are hidden, 10 "
        "another token")
    add("--copies", type=_positive, metavar="N", default=1,
        help="of each row, hidden differently (default: 1)")

    add = parser.add_argument_group("seq2seq").add_argument
    add("--target-sequence", type=_positive, metavar="N",
        help="tokens in a row of labels (default: the model's, or as --sequence)")
    add("--prefix", metavar="TEXT", help="put before each source")
    add("--decoder-start", type=_token, metavar="ID",
        help="first of decoder_input_ids, if the model takes them (default: as config.json says)")

    add = parser.add_argument_group("labels").add_argument
    add("--classes", metavar="A,B,...",
        help="names of classes in the order of their numbers (default: all that are found, in "
        "the order of the letters)")
    add("--like", metavar="DIR",
        help="take the classes and scales of data that acc-data wrote before")

    add = parser.add_argument_group("table").add_argument
    add("--input", action="append", metavar="NAME[:TYPE]=COLUMN,...",
        help="an input of the model, of one column or of several side by side; *: those of no "
        "other input; TYPE float32 (default for fractions), float64, int64, int32 or bool; "
        "repeatable (default: each column by itself)")
    add("--standardise", action="append", metavar="NAME", default=[],
        help="take off the mean and divide by the standard deviation, of the rows that are "
        "trained on, column by column; repeatable")

    add = parser.add_argument_group("images").add_argument
    add("--size", metavar="HxW", help="of an image (default: the model's)")
    add("--fit", choices=("stretch", "crop"), default="stretch",
        help="how an image gets there, by bilinear interpolation: stretched (default) or cut "
        "around its middle")
    add("--mean", metavar="M,...", default="0.5",
        help="taken off values from 0 to 1, of each channel or all (default: 0.5)")
    add("--std", metavar="S,...", default="0.5", help="that they are divided by (default: 0.5)")
    add("--grey", action="store_true", help="one channel")
    return parser


def _check(options):
    """An option that the work asked for cannot use is refused."""
    default = {action.dest: action for action in make_parser()._actions}
    for name, kinds in _USED_BY.items():
        if options.kind not in kinds and getattr(options, name) != default[name].default:
            raise Refused(f"{default[name].option_strings[0]} is for {', '.join(kinds)}, not for "
                          f"{options.kind}")
    if options.long == "split" and options.kind != "causal-lm":
        raise Refused("--long split is for causal-lm: say cut, drop or error")
    if options.classes and options.like:
        raise Refused("expected one of --classes and --like, found both")


def run(options, tell=None):
    """What data.json holds, beside "dir" and "seconds". `tell` hears of what takes long."""
    _check(options)
    from . import output, rows
    from .inputs import Inputs
    from .sources import Source
    report = rows.Report(tell)
    split = rows.Split(options.validation, options.seed)
    inputs = Inputs(options.model, options.rename)
    with output.Output(options.dir, options.overwrite) as writer:
        if options.kind == "images":
            from . import images as kind
            convert, source = kind.convert, options.sources
        else:
            source = Source(options.sources)
            if options.kind == "causal-lm":
                from .causal import convert
            elif options.kind == "table":
                from .table import convert
            else:
                from . import encoded
                convert = {"mlm": encoded.masked, "seq2seq": encoded.pairs,
                           "sequence-classification": encoded.classified}[options.kind]
        described = convert(options, source, split, inputs, writer, report)
        for name in split.names:
            if not writer.rows(name):
                raise Refused(f"expected rows{' for ' + name if name else ''}, none are left of "
                              f"the {report.read:,} that were read" + "".join(
                                  f"; {what}: {count:,}" for what, count in report.counts.items()
                                  if what.startswith("dropped")))
        description = {"version": 1, "acc_data": __version__, "kind": options.kind,
                       "sources": list(map(str, options.sources)), "seed": options.seed,
                       "validation": options.validation, **described,
                       "rows_read": report.read, "counts": dict(report.counts)}
        writer.finish(description)
    return {**description, "dir": options.dir,
            "seconds": round(time.monotonic() - report.began, 3)}


def data_text(summary, split):
    """For acc-run --data."""
    return ",".join(f"{name}={os.path.join(summary['dir'], array['file'])}"
                    for name, array in summary["arrays"][split].items())


def _describe(summary):
    """For people."""
    for split, arrays in summary["arrays"].items():
        rows = next(iter(arrays.values()))["shape"][0]
        yield (f"{os.path.join(summary['dir'], '' if split == 'all' else split)}: {rows:,} rows")
        for name, array in arrays.items():
            yield f"  {name}: {array['dtype']} {array['shape']}"
    yield f"of {summary['rows_read']:,} rows read, {summary['seconds']:.1f} s"
    for what, count in summary["counts"].items():
        yield f"  {what}: {count:,}"
    for column, names in summary.get("classes", {}).items():
        yield f"  classes of {column}: {', '.join(names[:10])}{', …' if len(names) > 10 else ''}"
    for split in summary["arrays"]:
        flag = "--eval-data" if split == "validation" else "--data"
        yield f"{flag} {data_text(summary, split)}"


def execute(options, answer):
    """What main does with arguments that are good: the answer to `answer`, messages to
    stderr. Returns the exit status."""
    err = sys.stderr
    end = "\r" if err.isatty() else "\n"
    try:
        summary = run(options, lambda text: print(f"acc-data: {text}", file=err, end=end,
                                                  flush=True))
    except (Refused, OSError) as problem:
        if options.json:
            print(json.dumps({"error": str(problem)}), file=answer, flush=True)
        print(f"acc-data: error: {problem}", file=err)
        return 1
    except KeyboardInterrupt:
        print("acc-data: interrupted", file=err)
        return 130
    if options.json:
        summary["data"] = {split: data_text(summary, split) for split in summary["arrays"]}
        print(json.dumps(summary), file=answer, flush=True)
    else:
        for line in _describe(summary):
            print(line, file=answer, flush=True)
    return 0


def _end(*_):
    raise KeyboardInterrupt


def main(argv=None):
    options = make_parser().parse_args(argv)
    # Ended by others, too, nothing is left half written.
    signal.signal(signal.SIGTERM, _end)
    # Whatever a library prints on stdout is not the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return execute(options, answer)
