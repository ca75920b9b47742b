"""What MODEL_ID_OR_FILE of the command line means: a Python file that makes the model and
its arguments, or a model of Hugging Face from a folder, a config.json or the cache (never
from the network), with a sample of tokens."""
import importlib.util
import os
import pathlib
import sys

import torch

from .errors import Refused, at, line_of_exception
from .losses import IGNORED
from .trace import first_sentence

_HEADS = {"causal-lm": "AutoModelForCausalLM", "mlm": "AutoModelForMaskedLM",
          "sequence-classification": "AutoModelForSequenceClassification",
          "seq2seq": "AutoModelForSeq2SeqLM"}


def _split(text):
    """FILE.py:function, or FILE.py and the name that is looked for without one."""
    file, _, name = text.partition(".py:")
    return (f"{file}.py", name) if name else (text, "model")


def is_file(text):
    return text.endswith(".py") or ".py:" in text


def function_of(text):
    """What FILE.py:function names."""
    file, name = _split(text)
    path = pathlib.Path(file)
    if not path.is_file():
        raise Refused(f"cannot open '{file}': no such file")
    spec = importlib.util.spec_from_file_location(f"acc_export_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    # As `python FILE.py` would have it: its neighbours can be imported.
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Refused(f"'{file}' fails{at(line_of_exception(error))}: "
                      f"{first_sentence(error)}") from error
    finally:
        sys.path.pop(0)
    if not hasattr(module, name):
        raise Refused(f"'{file}' has no '{name}': name what makes the model as {file}:function")
    return getattr(module, name)


def _arguments(example):
    """(args, kwargs) of an example_inputs in any of its usual forms."""
    if callable(example):
        example = example()
    if isinstance(example, dict):
        return (), dict(example)
    return ((example,) if isinstance(example, torch.Tensor) else tuple(example)), {}


def from_file(text):
    """(module, args, kwargs) of FILE.py[:function]."""
    made = function_of(text)
    if not isinstance(made, torch.nn.Module) and callable(made):
        try:
            made = made()
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"'{text}', called without arguments, fails"
                          f"{at(line_of_exception(error))}: {first_sentence(error)}") from error
    if isinstance(made, torch.nn.Module):
        if not hasattr(made, "example_inputs"):
            raise Refused(f"'{text}' gives a module alone: return (module, args) or "
                          "(module, args, kwargs), or give the module example_inputs")
        return (made, *_arguments(made.example_inputs))
    if isinstance(made, tuple) and len(made) in (2, 3) and isinstance(made[0], torch.nn.Module):
        args, kwargs = _arguments(made[1])
        return made[0], args, {**kwargs, **(made[2] if len(made) == 3 else {})}
    raise Refused(f"'{text}' gives {type(made).__name__}: return (module, args) or (module, args, "
                  "kwargs)")


# -- Hugging Face ------------------------------------------------------------------------

def _transformers():
    try:
        import transformers
    except ImportError as error:
        raise Refused("models by name need Hugging Face's library: pip install transformers, or "
                      "give FILE.py:function") from error
    # Its own progress bars and advice are not about the export.
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _pretrained(name, kind, transformers):
    head = getattr(transformers, _HEADS[kind])
    path = pathlib.Path(name)
    try:
        if path.is_file():
            torch.manual_seed(0)
            return head.from_config(transformers.AutoConfig.from_pretrained(name))
        return head.from_pretrained(name, local_files_only=True, dtype=torch.float32)
    except (OSError, ValueError) as error:
        where = (f"the folder '{name}'" if path.is_dir() else f"'{name}'" if path.exists() else
                 f"'{name}', which is no folder here and not in the cache (hf download {name})")
        raise Refused(f"cannot load a model for {kind} from {where}: "
                      f"{first_sentence(error)}") from error


def _tokenizer(name, transformers):
    folder = os.path.dirname(name) or "." if os.path.isfile(name) else name
    try:
        # Without its files some tokenizers are made all the same, and know no word.
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        if tokenizer("a")["input_ids"] or tokenizer("the")["input_ids"]:
            return tokenizer
        raise ValueError("it knows no words")
    except Exception as error:
        raise Refused(f"--text needs the model's tokenizer, and there is none in '{folder}': leave "
                      "--text out for random tokens, or save the tokenizer there") from error


def _rows_of_text(tokenizer, text, batch, sequence):
    """The first `batch` pieces of `sequence` tokens of the file."""
    tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
    if len(tokens) < batch * sequence:
        raise Refused(f"the text has {len(tokens)} tokens, and the sample takes {batch} times "
                      f"{sequence}: lower --batch or --sequence, or give more text")
    return torch.tensor(tokens[:batch * sequence]).reshape(batch, sequence)


def _lines_of_text(tokenizer, text, batch, sequence):
    """Padded lines `LABEL<tab>TEXT`: (input_ids, attention_mask, labels)."""
    lines = [line.partition("\t") for line in text.splitlines() if line.strip()][:batch]
    if len(lines) < batch or not all(tab and label.strip().isdigit() for label, tab, _ in lines):
        raise Refused(f"expected at least {batch} lines LABEL<tab>TEXT in the text, LABEL a "
                      "number: lower --batch, or mend the text")
    if tokenizer.pad_token is None:
        raise Refused("the model's tokenizer has no padding token: give it one, or leave --text "
                      "out")
    encoded = tokenizer([rest for _, _, rest in lines], padding="max_length", truncation=True,
                        max_length=sequence, return_tensors="pt")
    return (encoded["input_ids"], encoded["attention_mask"],
            torch.tensor([int(label) for label, _, _ in lines]))


def _keeps_apart(model, ids, positions):
    """Whether what stands before the place where positions begin again changes nothing
    behind it."""
    other = ids.clone()
    start = ids.shape[1] // 2
    other[:, :start] = (ids[:, :start] + 1) % model.config.get_text_config().vocab_size
    is_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            first, second = (model(input_ids=x, position_ids=positions).logits[:, start:]
                             for x in (ids, other))
    finally:
        model.train(is_training)
    return torch.allclose(first, second, rtol=1e-5, atol=1e-6)


def _packed_positions(model, name, ids):
    """Of two sequences in a row. Refused where the model would mix them up."""
    start = ids.shape[1] // 2
    positions = torch.cat([torch.arange(start), torch.arange(ids.shape[1] - start)])
    positions = positions.expand(ids.shape).clone()
    try:
        apart = _keeps_apart(model, ids, positions)
    except TypeError:
        apart = False
    if not apart:
        raise Refused(f"'{name}' does not keep the sequences of a row apart by position_ids: leave "
                      "--packed out, or write FILE.py:function with an attention mask of [batch, "
                      "1, length, length]")
    return positions


def _sample(model, kind, tokenizer, text, batch, sequence):
    """The keyword arguments of one call, labels included."""
    generator = torch.Generator().manual_seed(0)
    vocabulary = model.config.get_text_config().vocab_size
    mask = None
    if kind == "sequence-classification" and text is not None:
        ids, mask, labels = _lines_of_text(tokenizer, text, batch, sequence)
    else:
        ids = (_rows_of_text(tokenizer, text, batch, sequence) if text is not None else
               torch.randint(vocabulary, (batch, sequence), generator=generator))
        labels = ids.clone()
    if kind == "sequence-classification" and text is None:
        labels = torch.randint(model.config.num_labels, (batch,), generator=generator)
    if kind == "mlm":
        # Of 15 in 100 tokens the model is asked what they were.
        hidden = torch.rand(ids.shape, generator=generator) < 0.15
        hidden[:, 0] = True
        labels = torch.where(hidden, labels, IGNORED)
        token = getattr(tokenizer, "mask_token_id", None)
        ids = torch.where(hidden, vocabulary - 1 if token is None else token, ids)
    kwargs = {"input_ids": ids}
    if kind == "seq2seq":
        start = model.config.decoder_start_token_id
        if start is None:
            start = model.config.pad_token_id or 0
        kwargs["decoder_input_ids"] = torch.cat([torch.full_like(labels[:, :1], start),
                                                 labels[:, :-1]], 1)
    if mask is not None:
        kwargs["attention_mask"] = mask
    return {**kwargs, "labels": labels}


def from_hub(name, kind, *, text_file, batch, sequence, train, padded=False, packed=False):
    """(module, args, kwargs) of a model by name, folder or config.json. `padded`: it takes an
    attention_mask; `packed`: position_ids, which begin again with each sequence of a row."""
    if kind not in _HEADS:
        raise Refused(f"'{name}' is a model of Hugging Face, whose head is chosen by the loss: say "
                      f"--loss {'|'.join(_HEADS)}, or write FILE.py:function")
    if packed and kind != "causal-lm":
        raise Refused(f"--packed is for --loss causal-lm, not for {kind}")
    if packed and padded:
        raise Refused("expected one of --padded and --packed, found both: a mask of the padding "
                      "would let the sequences of a row attend to each other")
    transformers = _transformers()
    text = None
    if text_file:
        try:
            text = pathlib.Path(text_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(f"cannot read the text '{text_file}': {first_sentence(error)}") from error
    tokenizer = _tokenizer(name, transformers) if text is not None else None
    model = _pretrained(name, kind, transformers).train(train)
    config = model.config.get_text_config()
    for part in (config, *(module.config for module in model.modules()
                           if hasattr(module, "config"))):  # decoders have a copy
        part.use_cache = False
    longest = getattr(config, "max_position_embeddings", None) or sequence or 128
    sequence = sequence or min(128, longest)
    if sequence > longest:
        raise Refused(f"the model has positions for {longest} tokens, found --sequence {sequence}")
    kwargs = _sample(model, kind, tokenizer, text, batch, sequence)
    if padded and "attention_mask" not in kwargs:
        kwargs = {"attention_mask": torch.ones_like(kwargs["input_ids"]), **kwargs}
    if packed:
        kwargs = {"position_ids": _packed_positions(model, name, kwargs["input_ids"]), **kwargs}
    return model, (), kwargs
