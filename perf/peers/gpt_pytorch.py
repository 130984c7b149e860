"""The same GPT in PyTorch: weights and moments out of a weft checkpoint, the same windows of bytes, the
same losses. For people who want to know whether weft computes what they mean; no test needs it.

    train="build/release/weft train apps/plans/text-gpt.toml --data DATA/tinyshakespeare.txt"
    $train --set run.steps=1 --run start     # a checkpoint after the first step
    $train --set run.steps=21 --run whole    # the losses to compare with
    python3 perf/peers/gpt_pytorch.py start/checkpoints/step-000000001 whole DATA/tinyshakespeare.txt

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

from weft_twin import Block, compare, epoch_samples


class Gpt(nn.Module):
    def __init__(self, model, tokens, vocabulary=256):
        super().__init__()
        hidden = model["hidden"]
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.position = nn.Parameter(torch.empty(tokens, hidden))
        self.block = nn.ModuleList(
            Block(hidden, model["heads"], model["mlp_ratio"], causal=True) for _ in range(model["layers"]))
        self.final_norm = nn.LayerNorm(hidden, eps=1e-5)
        self.tied = model.get("tied", False)
        if not self.tied:
            self.head = nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position
        for block in self.block:
            x = block(x)
        x = self.final_norm(x)
        return x @ self.embedding.weight.T if self.tied else self.head(x)


def batches(path, plan):
    """step -> windows of bytes [size, tokens], and the byte after each."""
    text = np.fromfile(path, np.uint8).astype(np.int64)
    split, tokens = plan["task"]["split"], plan["task"]["tokens"]
    train = np.arange(split["train"])  # windows side by side, from the file's beginning

    def batch(step):
        chosen = epoch_samples(train, plan["batch"]["global"], plan["numerics"]["seed"], step)
        at = chosen[:, None] * tokens + np.arange(tokens)
        return torch.from_numpy(text[at]), torch.from_numpy(text[at + 1])

    return batch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("run", type=pathlib.Path, help="run folder with the losses to compare with")
    parser.add_argument("data", type=pathlib.Path, help="the text file")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    sys.exit(compare(arguments, "gpt", lambda plan: Gpt(plan["model"], plan["task"]["tokens"]),
                     lambda plan: batches(arguments.data, plan)))


if __name__ == "__main__":
    main()
