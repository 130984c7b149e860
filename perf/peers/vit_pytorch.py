"""The same training in PyTorch: weights and moments out of a weft checkpoint, the same batches, the
same losses. For people who want to know whether weft computes what they mean; no test needs it.

    train="build/release/weft train apps/plans/cifar10-vit.toml --data DATA --set task.augment=false"
    $train --set run.steps=1 --run start     # a checkpoint after the first step
    $train --set run.steps=21 --run whole    # the losses to compare with
    python3 perf/peers/vit_pytorch.py start/checkpoints/step-000000001 whole DATA

Needs torch, numpy and h5py. Both runs must be in the warm-up of the learning rate, where it does not
depend on run.steps. Prints both losses of each step and their largest relative difference; exit code
1 where that is above 1e-5. `--threads N`: of PyTorch.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
import time
import tomllib

import h5py
import numpy as np
import torch
from torch import nn
from torch.nn import functional

MEAN = (0.491400, 0.482158, 0.446531)
DEVIATION = (0.247032, 0.243485, 0.261588)
STREAM_SPLIT, STREAM_PERMUTATION = 1, 2


def random_bits(seed, stream, round_, index):
    """64 bits an index: Philox 4x32-10, as core/random.hpp has it."""
    c = [index & 0xFFFFFFFF, index >> 32, np.full_like(index, round_ & 0xFFFFFFFF), np.full_like(index, round_ >> 32)]
    k0, k1 = seed & 0xFFFFFFFF, (seed >> 32) | (stream << 24)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> shift) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> shift) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return (c[1] << shift) | c[0]


def random_order(items, seed, stream, round_):
    items = np.asarray(items, dtype=np.uint64)
    return items[np.lexsort((items, random_bits(seed, stream, round_, items)))].astype(np.int64)


class Data:
    def __init__(self, folder, task):
        rows = [np.fromfile(folder / f"data_batch_{i}.bin", np.uint8).reshape(-1, 3073) for i in range(1, 6)]
        self.rows = np.concatenate(rows)
        split = task["split"]
        order = random_order(np.arange(len(self.rows)), split["seed"], STREAM_SPLIT, 0)
        self.train = np.sort(order[split["validation"]:split["validation"] + split["train"]])

    def batch(self, step, size, seed):
        """Images [size, 3, 32, 32] and labels of optimizer step `step`, counted from 0."""
        epoch, place = divmod(step, len(self.train) // size)
        order = random_order(self.train, seed, STREAM_PERMUTATION, epoch)
        rows = self.rows[order[place * size:(place + 1) * size]]
        images = rows[:, 1:].reshape(-1, 3, 32, 32).astype(np.float64) / 255
        images = (images - np.reshape(MEAN, (3, 1, 1))) / np.reshape(DEVIATION, (3, 1, 1))
        return torch.from_numpy(images.astype(np.float32)), torch.from_numpy(rows[:, 0].astype(np.int64))


def read_checkpoint(folder):
    """{kind: {tensor: array}} out of all shards, by io/checkpoint/FORMAT.md."""
    state = {}

    def add(path, dataset):
        if not isinstance(dataset, h5py.Dataset):
            return
        kind, rest = path.split("/", 1)
        tensor = rest.rsplit("/", 1)[0]
        whole = state.setdefault(kind, {}).setdefault(
            tensor, np.full(tuple(dataset.attrs["global_shape"]), np.nan, np.float32))
        box = tuple(slice(int(b), int(e)) for b, e in zip(dataset.attrs["box_begin"], dataset.attrs["box_end"]))
        whole[box] = dataset[...]

    for shard in sorted(folder.glob("shard-*.h5")):
        with h5py.File(shard) as file:
            file.visititems(add)
    return state


class Block(nn.Module):
    def __init__(self, hidden, heads, ratio):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden, eps=1e-5), nn.LayerNorm(hidden, eps=1e-5)
        self.q, self.k, self.v, self.proj = (nn.Linear(hidden, hidden) for _ in range(4))
        self.up, self.down = nn.Linear(hidden, ratio * hidden), nn.Linear(ratio * hidden, hidden)

    def forward(self, x):
        n, t, h = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(n, t, self.heads, h // self.heads).transpose(1, 2) for f in (self.q, self.k, self.v))
        mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, h)
        x = x + self.proj(mixed)
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Vit(nn.Module):
    def __init__(self, model):
        super().__init__()
        hidden, self.patch_size = model["hidden"], model["patch"]
        self.patch = nn.Linear(3 * self.patch_size**2, hidden)
        self.position = nn.Parameter(torch.empty((32 // self.patch_size) ** 2, hidden))
        self.block = nn.ModuleList(
            Block(hidden, model["heads"], model["mlp_ratio"]) for _ in range(model["layers"]))
        self.final_norm = nn.LayerNorm(hidden, eps=1e-5)
        self.head = nn.Linear(hidden, 10)

    def forward(self, images):
        p = self.patch_size
        tokens = functional.unfold(images, p, stride=p).transpose(1, 2)  # (channel, y, x) a token
        x = self.patch(tokens) + self.position
        for block in self.block:
            x = block(x)
        return self.head(self.final_norm(x).mean(dim=1))


def weft_name(name):
    for norm in ("norm1", "norm2", "final_norm"):
        name = name.replace(norm + ".weight", norm + ".gain")
    return name


def make_model(plan, state, step):
    model = Vit(plan["model"])
    optimizer_plan = plan["optimizer"]
    groups = {True: [], False: []}
    for name, parameter in model.named_parameters():
        parameter.data = torch.from_numpy(state["value"][weft_name(name)].copy())
        groups[weft_name(name).endswith(".weight")].append(parameter)
    optimizer = torch.optim.AdamW(
        [{"params": groups[True], "weight_decay": optimizer_plan["weight_decay"]},
         {"params": groups[False], "weight_decay": 0.0}], betas=(0.9, 0.999), eps=1e-8)
    for name, parameter in model.named_parameters():
        optimizer.state[parameter] = {
            "step": torch.tensor(float(step)),
            "exp_avg": torch.from_numpy(state["exp_avg"][weft_name(name)].copy()),
            "exp_avg_sq": torch.from_numpy(state["exp_avg_sq"][weft_name(name)].copy())}
    return model, optimizer


def train_step(model, optimizer, batch, rate, clip_norm):
    for group in optimizer.param_groups:
        group["lr"] = rate
    images, labels = batch
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(images), labels)
    loss.backward()
    if clip_norm > 0:
        nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("run", type=pathlib.Path, help="run folder with the losses to compare with")
    parser.add_argument("data", type=pathlib.Path, help="CIFAR-10, official binary files")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    plan = tomllib.loads((arguments.run / "plan.toml").read_text())
    if plan["task"]["augment"] or plan["model"]["dropout"] > 0 or plan["model"]["kind"] != "vit":
        sys.exit("expected a run of kind vit with task.augment = false and model.dropout = 0")
    # Behind it a line with its hash.
    first = json.loads((arguments.checkpoint / "MANIFEST").read_bytes()[:-42])["step"]
    lines = [json.loads(line) for line in (arguments.run / "run.jsonl").read_text().splitlines()]
    state = read_checkpoint(arguments.checkpoint)
    unread = [name for kind in state.values() for name, values in kind.items() if np.isnan(values).any()]
    if unread:
        sys.exit(f"no piece covers all of {unread[0]}")
    model, optimizer = make_model(plan, state, first)
    data = Data(arguments.data, plan["task"])

    worst, times = 0.0, []
    print(f"PyTorch {torch.__version__}, {arguments.threads} threads, from step {first}\n"
          f"{'step':>5} {'weft':>14} {'PyTorch':>14} {'relative':>10}")
    for line in lines[first:]:
        batch = data.batch(line["step"] - 1, plan["batch"]["global"], plan["numerics"]["seed"])
        begin = time.perf_counter()
        loss = train_step(model, optimizer, batch, line["lr"], plan["optimizer"]["clip_norm"])
        times.append(1e3 * (time.perf_counter() - begin))
        difference = abs(loss - line["loss"]) / abs(line["loss"])
        worst = max(worst, difference if math.isfinite(difference) else math.inf)
        print(f"{line['step']:>5} {line['loss']:>14.9f} {loss:>14.9f} {difference:>10.1e}")
    ours = statistics.median(line["step_ms"] for line in lines[first:])
    print(f"largest relative difference {worst:.1e} over {len(times)} steps; "
          f"median step {ours:.0f} ms weft, {statistics.median(times):.0f} ms PyTorch")
    sys.exit(0 if times and worst <= 1e-5 else 1)


if __name__ == "__main__":
    main()
