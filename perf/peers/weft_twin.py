"""What the PyTorch twins of weft's runs share: random numbers and orders by the comments of
core/random.hpp and io/random_order.hpp, checkpoints by io/checkpoint/FORMAT.md, the transformer block
by layers/FORMAT.md, and the comparison of losses. Needs torch, numpy and h5py.
"""

import json
import math
import statistics
import sys
import time
import tomllib

import h5py
import numpy as np
import torch
from torch import nn
from torch.nn import functional

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


def epoch_samples(train, size, seed, step):
    """Indices of the global batch of optimizer step `step`, counted from 0; the last batch is dropped."""
    epoch, place = divmod(step, len(train) // size)
    return random_order(train, seed, STREAM_PERMUTATION, epoch)[place * size:(place + 1) * size]


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
    """Pre-norm transformer block, by layers/FORMAT.md. `causal`: a token sees itself and earlier ones."""

    def __init__(self, hidden, heads, ratio, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(hidden, eps=1e-5), nn.LayerNorm(hidden, eps=1e-5)
        self.q, self.k, self.v, self.proj = (nn.Linear(hidden, hidden) for _ in range(4))
        self.up, self.down = nn.Linear(hidden, ratio * hidden), nn.Linear(ratio * hidden, hidden)

    def forward(self, x):
        n, t, h = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(n, t, self.heads, h // self.heads).transpose(1, 2) for f in (self.q, self.k, self.v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(n, t, h)
        x = x + self.proj(mixed)
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


def weft_name(name):
    for norm in ("norm1", "norm2", "final_norm"):
        name = name.replace(norm + ".weight", norm + ".gain")
    return name


def load(model, plan, state, step):
    """The optimizer of `model`, both with what `state` says they were after `step` steps."""
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
    return optimizer


def train_step(model, optimizer, batch, rate, clip_norm, pieces=1):
    """`pieces`: parts of the batch that are taken one after the other, their gradients added."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    total = 0.0
    for inputs, labels in zip(*(part.chunk(pieces) for part in batch)):
        logits = model(inputs)
        loss = functional.cross_entropy(logits.flatten(0, -2), labels.flatten()) / pieces
        loss.backward()
        total += loss.item()
    if clip_norm > 0:
        nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    optimizer.step()
    return total


def begin_twin(arguments, kind, make_model):
    """What goes on from arguments.checkpoint as arguments.run did: plan, module, optimizer, the steps
    that the checkpoint has behind it, and the lines of all steps in run.jsonl. make_model(plan) -> module."""
    torch.set_num_threads(arguments.threads)
    plan = tomllib.loads((arguments.run / "plan.toml").read_text())
    if plan["task"].get("augment", False) or plan["model"]["dropout"] > 0 or plan["model"]["kind"] != kind:
        sys.exit(f"expected a run of kind {kind} without augmentation and dropout")
    # Behind it a line with its hash.
    first = json.loads((arguments.checkpoint / "MANIFEST").read_bytes()[:-42])["step"]
    lines = [json.loads(line) for line in (arguments.run / "run.jsonl").read_text().splitlines()]
    state = read_checkpoint(arguments.checkpoint)
    unread = [name for kind in state.values() for name, values in kind.items() if np.isnan(values).any()]
    if unread:
        sys.exit(f"no piece covers all of {unread[0]}")
    model = make_model(plan)
    return plan, model, load(model, plan, state, first), first, lines


def compare(arguments, kind, make_model, make_batches):
    """Trains on from arguments.checkpoint as arguments.run did, and prints both losses of each step.
    make_model(plan) -> module; make_batches(plan) -> f(step) -> (inputs, labels). Returns 0 where all
    losses agree to 1e-5."""
    plan, model, optimizer, first, lines = begin_twin(arguments, kind, make_model)
    batch_of = make_batches(plan)

    worst, times = 0.0, []
    print(f"PyTorch {torch.__version__}, {arguments.threads} threads, from step {first}\n"
          f"{'step':>5} {'weft':>14} {'PyTorch':>14} {'relative':>10}")
    for line in lines[first:]:
        batch = batch_of(line["step"] - 1)
        begin = time.perf_counter()
        loss = train_step(model, optimizer, batch, line["lr"], plan["optimizer"]["clip_norm"])
        times.append(1e3 * (time.perf_counter() - begin))
        difference = abs(loss - line["loss"]) / abs(line["loss"])
        worst = max(worst, difference if math.isfinite(difference) else math.inf)
        print(f"{line['step']:>5} {line['loss']:>14.9f} {loss:>14.9f} {difference:>10.1e}")
    ours = statistics.median(line["step_ms"] for line in lines[first:])
    print(f"largest relative difference {worst:.1e} over {len(times)} steps; "
          f"median step {ours:.0f} ms weft, {statistics.median(times):.0f} ms PyTorch")
    return 0 if times and worst <= 1e-5 else 1
