#!/usr/bin/env python3
"""Exports a small T5 of Hugging Face (an encoder and a decoder of two layers, attention
with a learned bias of positions, attention across, the labels shifted inside, the table
of words tied to the head) with acc-export: t5/model.onnx, its batch symbolic, and
t5/inputs. t5/expected.json says how PyTorch trains it in float64: the loss and the norm
of the gradients in each step of SGD. Run it with the versions of requirements.txt."""
import json
import pathlib
import shutil
import sys

import onnx
import torch
import torch.nn.functional as F
from transformers import T5Config, T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5LayerNorm

from exported import strip

FOLDER = pathlib.Path(__file__).resolve().parent / "t5"
sys.path.insert(0, str(FOLDER.parent.parent.parent / "python"))
import acc_export  # noqa: E402  (from python/)

STEPS, RATE, BATCH, SOURCE, TARGET, WORDS = 3, 0.05, 4, 16, 8, 96


class Translation(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = T5ForConditionalGeneration(T5Config(
            vocab_size=WORDS, d_model=16, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
            relative_attention_num_buckets=8, relative_attention_max_distance=12,
            dropout_rate=0.0, decoder_start_token_id=0, use_cache=False))

    def forward(self, input_ids, labels):
        return self.model(input_ids=input_ids, labels=labels, use_cache=False).loss


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    torch.manual_seed(0)
    module = Translation().train()
    inputs = {"input_ids": torch.randint(1, WORDS, (BATCH, SOURCE)),
              "labels": torch.randint(1, WORDS, (BATCH, TARGET))}
    acc_export.export(module, tuple(inputs.values()), dir=str(FOLDER),
                      dynamic_shapes={name: {0: "batch"} for name in inputs})
    proto = strip(onnx.load(FOLDER / "model.onnx"))
    for node in proto.graph.node:  # a third of the file, and said by name_scopes too
        kept = [p for p in node.metadata_props if p.key != "namespace"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    (FOLDER / "model.onnx").write_bytes(proto.SerializeToString(deterministic=True))
    module = module.double()
    for part in module.modules():  # Hugging Face's norm computes in float32 always
        if isinstance(part, T5LayerNorm):
            part.forward = lambda x, of=part: F.rms_norm(x, x.shape[-1:], of.weight,
                                                         of.variance_epsilon)
    optimizer = torch.optim.SGD(module.parameters(), RATE)
    steps = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = module(**inputs)
        loss.backward()
        norm = torch.nn.utils.get_total_norm([p.grad for p in module.parameters()])
        steps.append({"loss": loss.item(), "grad_norm": norm.item()})
        optimizer.step()
    (FOLDER / "expected.json").write_text(json.dumps(steps, indent=1) + "\n")


if __name__ == "__main__":
    main()
