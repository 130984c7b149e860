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
import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from weft_twin import STREAM_SPLIT, Block, compare, epoch_samples, random_order

MEAN = (0.491400, 0.482158, 0.446531)
DEVIATION = (0.247032, 0.243485, 0.261588)


def batches(folder, plan):
    """step -> images [size, 3, 32, 32] and labels."""
    rows = np.concatenate(
        [np.fromfile(folder / f"data_batch_{i}.bin", np.uint8).reshape(-1, 3073) for i in range(1, 6)])
    split = plan["task"]["split"]
    order = random_order(np.arange(len(rows)), split["seed"], STREAM_SPLIT, 0)
    train = np.sort(order[split["validation"]:split["validation"] + split["train"]])

    def batch(step):
        chosen = rows[epoch_samples(train, plan["batch"]["global"], plan["numerics"]["seed"], step)]
        images = chosen[:, 1:].reshape(-1, 3, 32, 32).astype(np.float64) / 255
        images = (images - np.reshape(MEAN, (3, 1, 1))) / np.reshape(DEVIATION, (3, 1, 1))
        return torch.from_numpy(images.astype(np.float32)), torch.from_numpy(chosen[:, 0].astype(np.int64))

    return batch


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("run", type=pathlib.Path, help="run folder with the losses to compare with")
    parser.add_argument("data", type=pathlib.Path, help="CIFAR-10, official binary files")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    sys.exit(compare(arguments, "vit", lambda plan: Vit(plan["model"]), lambda plan: batches(arguments.data, plan)))


if __name__ == "__main__":
    main()
