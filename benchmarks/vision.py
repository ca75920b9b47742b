"""A training step of vision models beside PyTorch: ResNet-50 (batch norms trained) and ViT-B/16, float32,
SGD with momentum, the same pictures in every step. acc and each form of PyTorch (eager, eager with
channels last, compile) are processes of their own that take turns, as often as --rounds; what is told is
the median of all steps but each round's first two, and PyTorch's over acc's. Models are written here as
torchvision has them, whose package does not go with PyTorch's CPU wheels.

    .venv-bench/bin/python benchmarks/vision.py --model resnet50 --batch 16
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

PEERS = ("eager", "channels-last", "compile")
RATE, MOMENTUM, STEPS = 1e-3, 0.9, 6


def make(name):
    import torch
    from torch import nn

    def normed(inputs, outputs, size, stride=1):
        return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False),
                             nn.BatchNorm2d(outputs))

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.first, self.second = normed(inputs, width, 1), normed(width, width, 3, stride)
            self.third = normed(width, 4 * width, 1)
            self.down = normed(inputs, 4 * width, 1, stride) if stride > 1 or inputs != 4 * width else (
                nn.Identity())

        def forward(self, x):
            y = self.third(torch.relu(self.second(torch.relu(self.first(x)))))
            return torch.relu(y + self.down(x))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.pool = normed(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)
            blocks, inputs = [], 64
            for stage, depth in enumerate((3, 4, 6, 3)):
                for number in range(depth):
                    width = 64 * 2 ** stage
                    blocks.append(Bottleneck(inputs, width, 2 if stage and not number else 1))
                    inputs = 4 * width
            self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(inputs, 1000)

        def forward(self, x):
            return self.head(self.blocks(self.pool(torch.relu(self.stem(x)))).mean((2, 3)))

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            rows, length, width = x.shape
            q, k, v = self.qkv(self.before(x)).view(
                rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, width))
            return x + self.down(nn.functional.gelu(self.up(self.between(x))))

    class ViT(nn.Module):
        def __init__(self, width=768, depth=12, heads=12):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 16, 16)
            self.first = nn.Parameter(0.02 * torch.randn(1, 1, width))
            self.places = nn.Parameter(0.02 * torch.randn(1, 197, width))
            self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(depth)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
            return self.head(self.norm(self.layers(x))[:, 0])

    torch.manual_seed(0)
    return {"resnet50": ResNet, "vit-b16": ViT}[name]().train()


def sample(batch):
    import torch
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(batch, 3, 224, 224, generator=generator),
            torch.randint(0, 1000, (batch,), generator=generator))


def run_peer(arguments):
    """Prints the seconds of steps, on a line for each `go` that it reads."""
    import torch
    torch.set_num_threads(arguments.threads)
    model, (x, labels) = make(arguments.model), sample(arguments.batch)
    if arguments.peer == "channels-last":
        model, x = (each.to(memory_format=torch.channels_last) for each in (model, x))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)

    def loss_of(x, labels):
        return torch.nn.functional.cross_entropy(model(x), labels)
    call = torch.compile(loss_of) if arguments.peer == "compile" else loss_of
    for _ in sys.stdin:
        seconds, losses = [], []
        for _ in range(STEPS):
            began = time.perf_counter()
            optimizer.zero_grad()
            loss = call(x, labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            seconds.append(time.perf_counter() - began)
        print(json.dumps({"seconds": seconds[2:], "loss": losses[0]}), flush=True)


def compile_acc(arguments, work):
    import acc_export
    import torch
    x, labels = sample(arguments.batch)
    acc_export.export(make(arguments.model), (x,), {"labels": labels},
                      loss=torch.nn.functional.cross_entropy, dir=work)
    began = time.perf_counter()
    subprocess.run([ROOT / "build/bin/acc-opt", work / "model.onnx", "--train", "--loss=loss",
                    "--entries=step", "--optimizer=sgd", "--set", f"optimizer.lr={RATE}", "--set",
                    f"optimizer.momentum={MOMENTUM}", f"--threads-per-rank={arguments.threads}", "-o",
                    work / "m.accx"], check=True, capture_output=True)
    return time.perf_counter() - began


def run_acc(work):
    """The seconds of steps, and the first loss."""
    done = subprocess.run([ROOT / "build/bin/acc-run", work / "m.accx", "--steps", str(STEPS), "--inputs",
                           work / "inputs", "--json"], check=True, capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if '"loss"' in line]
    return [line["time_s"] for line in lines][2:], lines[0]["loss"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("resnet50", "vit-b16"), default="resnet50")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return run_peer(arguments)
    peers = {name: subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__, "--peer", name, "--model", arguments.model, "--batch",
         str(arguments.batch), "--threads", str(arguments.threads)], text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for name in PEERS}
    seconds, losses = {name: [] for name in ("acc", *PEERS)}, {}
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        compiled = compile_acc(arguments, work)
        for _ in range(arguments.rounds):
            found, losses["acc"] = run_acc(work)
            seconds["acc"] += found
            for name, peer in peers.items():
                peer.stdin.write("go\n")
                peer.stdin.flush()
                said = json.loads(peer.stdout.readline())
                seconds[name] += said["seconds"]
                losses.setdefault(name, said["loss"])
    for peer in peers.values():
        peer.stdin.close()
        peer.wait()
    median = {name: statistics.median(each) for name, each in seconds.items()}
    name = re.search("model name\\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())[1]
    print(f"{arguments.model}, batch {arguments.batch}, float32, {arguments.threads} threads, {name}; "
          f"compiled by acc in {compiled:.1f} s\n\n| | s a step | x acc's | first loss |\n|---|---|---|---|")
    for each, value in median.items():
        print(f"| {each} | {value:.3f} | {value / median['acc']:.2f} | {losses[each]:.5f} |")


if __name__ == "__main__":
    main()
