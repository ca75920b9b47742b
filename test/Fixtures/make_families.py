#!/usr/bin/env python3
"""Exports small random models of twelve families of pictures, sounds, sequences and noise with
acc-export, each with a loss: families/NAME/model.onnx and families/NAME/inputs.
families/expected.json says how PyTorch trains them in float64: loss and gradients' norm of each step
of SGD, and what has become of the smaller parameters. Those with batch norms take statistics of each
half of the batch; those that draw random numbers are of the numbers that acc draws. Run it with the
versions of requirements.txt."""
import json
import pathlib
import shutil
import sys
from unittest import mock

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from transformers.models.mamba.modeling_mamba import MambaRMSNorm

from exported import strip

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "test" / "Fixtures" / "families"
sys.path += [str(ROOT / "test" / "PyTorch"), str(ROOT / "python" / "tests"), str(ROOT / "python")]

import acc_export  # noqa: E402
import check_vision  # noqa: E402
import trained  # noqa: E402
from draws import Draws  # noqa: E402

STEPS, RATE, BATCH, PARTS = 3, 2.0 ** -5, 8, 2
MOST = 200  # elements of a parameter whose end is written down
#: Narrower than check_vision has them, so that twelve are a few megabytes, or wide all through.
NARROW = {
    "efficientnet": dict(image_size=32, width_coefficient=0.1, depth_coefficient=0.1, hidden_dim=128,
                         dropout_rate=0.0, drop_connect_rate=0.0),
    "mobilenet_v2": dict(depth_multiplier=0.05, image_size=64, classifier_dropout_prob=0.0, min_depth=8,
                         finegrained_output=False),
    "mamba": dict(vocab_size=99, hidden_size=16, num_hidden_layers=2, state_size=4, use_cache=False,
                  residual_in_fp32=False),
}


class Tagger(torch.nn.Module):
    """Two directions of an LSTM, and a class for each word."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(40, 12)
        self.lstm = torch.nn.LSTM(12, 10, num_layers=2, bidirectional=True, batch_first=True)
        self.head = torch.nn.Linear(20, 5)

    def forward(self, ids, labels):
        hidden, _ = self.lstm(self.embed(ids))
        return F.cross_entropy(self.head(hidden).reshape(-1, 5), labels.reshape(-1))


class Autoencoder(torch.nn.Module):
    """A variational one of convolutions, its batch norms trained."""

    def __init__(self):
        super().__init__()
        self.encode = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3, stride=2, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
            torch.nn.Conv2d(8, 8, 3, stride=2, padding=1), torch.nn.Flatten(), torch.nn.Linear(128, 12))
        self.decode = torch.nn.Sequential(
            torch.nn.Linear(6, 128), torch.nn.Unflatten(1, (8, 4, 4)),
            torch.nn.ConvTranspose2d(8, 8, 4, stride=2, padding=1), torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(), torch.nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1))

    def forward(self, x):
        middle, spread = self.encode(x).chunk(2, -1)
        code = middle + torch.randn_like(spread) * torch.exp(0.5 * spread)
        divergence = -0.5 * (1 + spread - middle ** 2 - spread.exp()).mean()
        return F.binary_cross_entropy_with_logits(self.decode(code), x) + divergence


class Block(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = torch.nn.Conv2d(inputs, outputs, 3, padding=1)
        self.second = torch.nn.Conv2d(outputs, outputs, 3, padding=1)
        self.norm, self.time = torch.nn.GroupNorm(4, outputs), torch.nn.Linear(16, outputs)
        self.skip = torch.nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, time):
        hidden = self.first(x) + self.time(time)[:, :, None, None]
        return self.skip(x) + self.second(F.silu(self.norm(hidden)))


class Diffusion(torch.nn.Module):
    """A U-Net that finds the noise of a time, both drawn in each step."""

    def __init__(self, times=20):
        super().__init__()
        self.times = times
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-4, 0.2, times), 0))
        self.embed = torch.nn.Embedding(times, 16)
        self.down, self.middle, self.up = Block(2, 8), Block(8, 16), Block(24, 8)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = torch.nn.Conv2d(8, 2, 1)

    def forward(self, x):
        steps = torch.randint(0, self.times, (x.shape[0],))
        noise = torch.randn_like(x)
        kept = self.kept[steps].view(-1, 1, 1, 1)
        time = self.embed(steps)
        high = self.down(kept.sqrt() * x + (1 - kept).sqrt() * noise, time)
        low = self.middle(F.avg_pool2d(high, 2), time)
        rows = low.flatten(2).transpose(1, 2)
        low = low + self.attention(rows, rows, rows)[0].transpose(1, 2).view(low.shape)
        wide = F.interpolate(low, scale_factor=2, mode="nearest")
        return F.mse_loss(self.head(self.up(torch.cat([high, wide], 1), time)), noise)


def own(kind, **inputs):
    torch.manual_seed(4)
    return kind().train(), inputs


def families():
    """name: module, inputs."""
    draw = torch.Generator().manual_seed(7)
    made = {}
    for name in ("resnet", "convnext", "efficientnet", "mobilenet_v2", "vit", "swin", "whisper", "wav2vec2",
                 "mamba"):
        kind, config, sizes, shapes = check_vision.ARCHITECTURES[name]
        if name in NARROW:
            sizes = NARROW[name]
            if "image_size" in sizes:
                shapes = check_vision.picture(sizes["image_size"])
            check_vision.ARCHITECTURES[name] = kind, config, sizes, shapes
        made[name] = check_vision.make(name)
    made["tagger"] = own(Tagger, ids=torch.randint(0, 40, (BATCH, 7), generator=draw),
                         labels=torch.randint(0, 5, (BATCH, 7), generator=draw))
    made["autoencoder"] = own(Autoencoder, x=torch.rand(BATCH, 1, 16, 16, generator=draw))
    made["diffusion"] = own(Diffusion, x=torch.randn(BATCH, 2, 8, 8, generator=draw))
    return made


def has_norms(module):
    return any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in module.modules())


def train(module, inputs):
    """Losses and norms of gradients, and the parameters and running statistics at the end."""
    module = trained.widen(module)
    for part in module.modules():
        if isinstance(part, MambaRMSNorm):  # which computes in float32 always
            part.forward = lambda x, of=part: F.rms_norm(
                x, x.shape[-1:], of.weight, float(np.float32(of.variance_epsilon)))
        if isinstance(getattr(part, "eps", None), float):  # of other norms, too
            part.eps = float(np.float32(part.eps))
    parts, draws = PARTS if has_norms(module) else 1, Draws()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    steps = []
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for part in range(parts):
            # Mamba computes in float32 here and there.
            with draws.of(step, part, parts), mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
                loss = module(**{key: trained.double(value).chunk(parts)[part]
                                 for key, value in inputs.items()}) / parts
            loss.backward()
            total += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(module.parameters(), float("inf"))
        steps.append({"loss": total, "grad_norm": norm.item()})
        optimizer.step()
    start = dict(module.named_buffers())
    return steps, {name: value.flatten().tolist() for name, value in module.state_dict().items()
                   if value.is_floating_point() and value.numel() <= MOST
                   and (name not in start or "running" in name)}


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    expected = {}
    for name, (module, inputs) in families().items():
        acc_export.export(module, (), inputs, dir=str(FOLDER / name))
        path = FOLDER / name / "model.onnx"
        proto = strip(onnx.load(path))
        for node in proto.graph.node:  # a third of the file, and said by name_scopes too
            kept = [p for p in node.metadata_props if p.key != "namespace"]
            del node.metadata_props[:]
            node.metadata_props.extend(kept)
        path.write_bytes(proto.SerializeToString(deterministic=True))
        for file in (FOLDER / name / "inputs").glob("*.npy"):
            np.save(file, trained.double(torch.from_numpy(np.load(file))).numpy())
        steps, parameters = train(module, inputs)
        flags = ["--optimizer", "sgd", "--set", f"optimizer.lr={RATE}"]
        if has_norms(module):
            flags += ["--set", f"batch_norm.parts={PARTS}"]
        expected[name] = {"flags": flags, "steps": steps, "parameters": parameters}
    (FOLDER / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
