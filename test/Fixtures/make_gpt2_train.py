#!/usr/bin/env python3
"""Makes test/Fixtures/gpt2_train: a small GPT-2 with its loss as output, as today's
exporter writes it in four ways, and how PyTorch itself trains it.

  {default,raw}_{static,dynamic}/model.onnx   default: the exporter's defaults;
                                              raw: optimize=False
  inputs/{input_ids,labels}.npy               int64, 8 x 12; -100 in unequal numbers
  parameters.json                             state_dict: name, shape, tied names
  expected.safetensors                        float32 of float64 results:
    start/NAME                                  the initial parameters (float32 itself)
    gradient/NAME                               of the first step, not clipped
    RUN/NAME                                    the parameters after ten steps of RUN
    RUN_3/NAME                                  after three
  expected.json
    counts                                      labels that count, of each row
    curves RUN                                  {loss, grad_norm}: ten steps, float64
    fp32 RUN[_3] ATTENTION NAME                 how far PyTorch's float32 parameters are
                                                from float64, L2, relative
    fp32_curves RUN ATTENTION                   the curves of the same float32 runs
    autocast RUN ATTENTION/M                    losses of PyTorch in bf16 autocast, the
                                                batch in M token-weighted parts

RUN is {sgd,adamw}[_clip][_held]: SGD with lr 0.05 and momentum 0.9, or AdamW with
lr 0.01 and weight decay 0.01; _clip: gradients clipped to the norm 1; _held: without
the position embeddings, which the exporter's constant folding takes out of
default_static (what it gathers is a constant there).

Every parameter has values of its own (an exporter merges equal ones), the output
head is tied to the embedding. The seed is fixed: the same versions make the same
models. Run it with the versions of requirements.txt."""
import json
import pathlib
import shutil

import numpy as np
import safetensors.numpy
import torch
import transformers

import exported

BATCH, SEQUENCE, VOCABULARY, POSITIONS = 8, 12, 96, 16
STEPS = 10
HELD = "transformer.wpe.weight"
FOLDER = pathlib.Path(__file__).resolve().parent / "gpt2_train"


class GPT2WithLoss(transformers.GPT2LMHeadModel):
    """GPT-2 that returns the mean loss alone. Its parameters have GPT-2's names."""

    def forward(self, input_ids, labels):
        return super().forward(input_ids=input_ids, labels=labels, use_cache=False).loss


def make_model(attention="sdpa", kind=GPT2WithLoss):
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=POSITIONS, n_embd=32, n_head=4, n_layer=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
        bos_token_id=0, eos_token_id=0, attn_implementation=attention)
    model = kind(config).eval()
    assert model.lm_head.weight is model.transformer.wte.weight
    generator = torch.Generator().manual_seed(30)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if ".ln_" in name and name.endswith("weight"):
                parameter.copy_(1 + 0.2 * noise)
            else:
                parameter.copy_((0.1 if parameter.ndim == 1 else 0.2) * noise)
    return model


def make_inputs():
    """GPT-2 shifts the labels itself, so that the first one of a row counts for
    nothing. Of row r the first 1 + r are ignored, of the third the last as well:
    the parts of the batch differ in how much they weigh."""
    ids = torch.randint(0, VOCABULARY, (BATCH, SEQUENCE),
                        generator=torch.Generator().manual_seed(31))
    labels = ids.clone()
    for row in range(BATCH):
        labels[row, :1 + row] = -100
    labels[2, -1] = -100
    return ids, labels


def losses(model, ids, labels, parts):
    """Yields the loss of each part: its sum over the labels that count, divided by
    their number in the whole batch. (The loss in transformers is computed in
    float32 even of a float64 model, and knows only its own part.)"""
    target = torch.nn.functional.pad(labels, (0, 1), value=-100)[:, 1:]
    count = (target != -100).sum()
    for part, wanted in zip(ids.chunk(parts), target.chunk(parts)):
        logits = transformers.GPT2LMHeadModel.forward(model, input_ids=part, use_cache=False).logits
        if logits.dtype == torch.bfloat16:
            logits = logits.float()
        yield torch.nn.functional.cross_entropy(
            logits.reshape(-1, VOCABULARY), wanted.reshape(-1), reduction="sum") / count


def train(run, attention, dtype, parts=1, autocast=False):
    """Returns {"loss", "grad_norm"} of each step and the parameters after each."""
    model = make_model(attention).to(dtype)
    ids, labels = make_inputs()
    options = run.split("_")
    trained = [p for n, p in model.named_parameters() if n != HELD or "held" not in options]
    if options[0] == "sgd":
        optimizer = torch.optim.SGD(trained, lr=0.05, momentum=0.9)
    else:
        optimizer = torch.optim.AdamW(trained, lr=1e-2, weight_decay=0.01)
    curve, states = {"loss": [], "grad_norm": []}, []
    for _ in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            for loss in losses(model, ids, labels, parts):
                loss.backward()
                total += loss.item()
        limit = 1.0 if "clip" in options else float("inf")
        norm = torch.nn.utils.clip_grad_norm_(trained, limit)
        curve["loss"].append(total)
        curve["grad_norm"].append(norm.item())
        optimizer.step()
        states.append({n: p.detach().double().numpy().copy() for n, p in model.named_parameters()})
    return curve, states


def gradients():
    model = make_model().double()
    next(losses(model, *make_inputs(), 1)).backward()
    return {n: p.grad.numpy() for n, p in model.named_parameters()}


def distance(found, expected):
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def export():
    model = make_model()
    ids, labels = make_inputs()
    sizes = {0: torch.export.Dim("batch", min=1, max=64),
             1: torch.export.Dim("sequence", min=2, max=POSITIONS)}
    for optimize, kind in ((True, "default"), (False, "raw")):
        for shapes, sort in ((None, "static"), ({"input_ids": sizes, "labels": sizes}, "dynamic")):
            exported.export(FOLDER / f"{kind}_{sort}" / "model.onnx", model,
                            {"input_ids": ids, "labels": labels}, ["loss"], optimize, shapes)
    exported.save_parameters(FOLDER / "parameters.json", model)
    (FOLDER / "inputs").mkdir()
    np.save(FOLDER / "inputs" / "input_ids.npy", ids.numpy())
    np.save(FOLDER / "inputs" / "labels.npy", labels.numpy())


def references():
    tensors, texts = {}, {"counts": (make_inputs()[1][:, 1:] != -100).sum(1).tolist(),
                          "curves": {}, "fp32": {}, "fp32_curves": {}, "autocast": {}}

    def keep(prefix, values):
        tensors.update({f"{prefix}/{n}": v.astype(np.float32) for n, v in values.items()})

    keep("start", {n: p.detach().numpy() for n, p in make_model().named_parameters()})
    keep("gradient", gradients())
    for run in ("sgd", "sgd_clip", "adamw", "adamw_clip", "sgd_held", "adamw_clip_held"):
        texts["curves"][run], states = train(run, "sdpa", torch.float64)
        if not run.endswith("_held"):
            keep(run, states[-1])
        if run.startswith("adamw_clip"):
            keep(f"{run}_3", states[2])
        own = {a: train(run, a, torch.float32) for a in ("eager", "sdpa")}
        texts["fp32_curves"][run] = {a: curve for a, (curve, _) in own.items()}
        for suffix, step in (("", -1), ("_3", 2)):
            texts["fp32"][run + suffix] = {
                a: {n: distance(v, states[step][n]) for n, v in found[step].items()}
                for a, (_, found) in own.items()}
    texts["autocast"]["adamw_clip"] = {
        f"{attention}/{parts}": train("adamw_clip", attention, torch.float32, parts, True)[0]["loss"]
        for attention in ("eager", "sdpa") for parts in (1, 2, 4)}
    data = safetensors.numpy.save(tensors)
    (FOLDER / "expected.safetensors").write_bytes(data)
    (FOLDER / "expected.json").write_text(json.dumps(texts, indent=1) + "\n")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    shutil.rmtree(FOLDER, ignore_errors=True)
    export()
    references()
