#!/usr/bin/env python3
"""Makes test/Fixtures/gpt2: a small GPT-2 as today's exporter writes it, in four
ways, with PyTorch's own outputs, in the layout of `acc-run --inputs/--outputs`.

  {default,raw}_{static,dynamic}/model.onnx   default: the exporter's defaults;
                                              raw: optimize=False
  inputs/input_ids.npy                        int64, 8 x 16
  inputs_dynamic/input_ids.npy                int64, 4 x 12: other sizes of the same model
  expected/logits.npy                         PyTorch's outputs, float32
  expected_f64/logits.npy                     the same model computed in float64
  expected_dynamic/logits.npy                 for inputs_dynamic, float32
  labels/labels.npy                           int64, 8 x 16, shifted; unequal counts of -100
  labels/losses.json                          the mean loss over the other labels, float64
  parameters.json                             state_dict: name, shape, tied names

Every parameter has values of its own (an exporter merges equal ones), the output
head is tied to the embedding, and no stack_trace of other people's code is left
in the files. The seed is fixed: the same versions make the same bytes.
Run it with the versions of requirements.txt."""
import json
import pathlib
import shutil

import numpy as np
import torch
import transformers

import exported

BATCH, SEQUENCE = 8, 16
FOLDER = pathlib.Path(__file__).resolve().parent / "gpt2"


class Logits(torch.nn.Module):
    """GPT-2 as a function of input_ids alone, returning the logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


def make_model():
    config = transformers.GPT2Config(
        vocab_size=97, n_positions=32, n_embd=40, n_head=4, n_layer=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
        bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config).eval()
    assert model.lm_head.weight is model.transformer.wte.weight
    generator = torch.Generator().manual_seed(20)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if ".ln_" in name and name.endswith("weight"):
                parameter.copy_(1 + 0.2 * noise)
            else:
                parameter.copy_((0.1 if parameter.ndim == 1 else 0.2) * noise)
    return Logits(model).eval()


def export(model, ids, name, optimize, dynamic):
    shapes = None
    if dynamic:
        shapes = {"input_ids": {0: torch.export.Dim("batch", min=1, max=64),
                                1: torch.export.Dim("sequence", min=2, max=32)}}
    exported.export(FOLDER / name / "model.onnx", model, {"input_ids": ids}, ["logits"],
                    optimize, shapes)


def save(folder, name, tensor):
    (FOLDER / folder).mkdir(parents=True, exist_ok=True)
    np.save(FOLDER / folder / f"{name}.npy", tensor.detach().numpy())


def save_labels(ids, logits):
    """Labels shifted as GPT-2's are, the last position ignored, and of row r
    the first r more: a mean over rows is then not a mean over tokens."""
    labels = torch.full_like(ids, -100)
    labels[:, :-1] = ids[:, 1:]
    for row in range(BATCH):
        labels[row, :row] = -100
    total = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), reduction="sum")
    count = int((labels != -100).sum())
    save("labels", "labels", labels)
    (FOLDER / "labels" / "losses.json").write_text(json.dumps(
        {"sum": total.item(), "count": count, "mean": total.item() / count}) + "\n")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    shutil.rmtree(FOLDER, ignore_errors=True)
    model = make_model()
    generator = torch.Generator().manual_seed(21)
    ids = torch.randint(0, 97, (BATCH, SEQUENCE), generator=generator)
    other = torch.randint(0, 97, (4, 12), generator=generator)
    with torch.no_grad():
        save("inputs", "input_ids", ids)
        save("inputs_dynamic", "input_ids", other)
        save("expected", "logits", model(ids))
        save("expected_dynamic", "logits", model(other))
        for optimize, kind in ((True, "default"), (False, "raw")):
            export(model, ids, f"{kind}_static", optimize, dynamic=False)
            export(model, ids, f"{kind}_dynamic", optimize, dynamic=True)
        exported.save_parameters(FOLDER / "parameters.json", model)
        logits = model.double()(ids)
        save("expected_f64", "logits", logits)
        save_labels(ids, logits)


main()
