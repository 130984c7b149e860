"""A whole training of the GPT in weft and in PyTorch, and a yardstick for how far apart they may come: the
same training in PyTorch in f64, begun with the last bit of one weight changed, with more threads, or with
each batch in several pieces. For people who want to know whether weft learns as others do; no test needs it.

    train="build/release/weft train apps/plans/text-gpt.toml --data DATA/tinyshakespeare.txt"
    $train --set run.steps=1 --run start     # a checkpoint after the first step
    $train --run whole                       # the curve to compare with
    twin="python3 perf/peers/gpt_curve.py train start/checkpoints/step-000000001 whole DATA/tinyshakespeare.txt"
    $twin double.jsonl --double && $twin twin.jsonl && $twin nudged.jsonl --nudge
    python3 perf/peers/gpt_curve.py compare double.jsonl whole twin.jsonl nudged.jsonl

`train` needs torch, numpy and h5py. It writes a line a step and at the end the validation loss, and now and
then its state beside the curve: the same command goes on from it. With `--until STEP` it stops there.
`compare` prints the losses of the first curve at some steps, and how far each other one is from it: the
largest relative difference of any step since the row above, up to the end of the shortest.
"""

import argparse
import json
import math
import pathlib
import sys

# Rows of the table: steps in between count for the next row.
SHOWN = (2, 5, 10, 20, 50, 100, 150, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200)
STEPS_A_STATE = 50


def nudge(model):
    """The last bit of one weight."""
    import torch
    with torch.no_grad():
        weight = model.block[0].up.weight
        weight[0, 0] = torch.nextafter(weight[0, 0], torch.tensor(math.inf))


def to_double(model, optimizer):
    model.double()
    for state in optimizer.state.values():
        for moment in ("exp_avg", "exp_avg_sq"):
            state[moment] = state[moment].double()


def validation_loss(model, text, plan):
    """Mean over all bytes of the validation windows. The file is cut in the proportion of the parts
    (io/text/byte_text.hpp), and each part's windows begin where it does."""
    import torch
    from torch.nn import functional
    tokens, split = plan["task"]["tokens"], plan["task"]["split"]
    begin = len(text) * split["train"] // (split["train"] + split["validation"] + split["test"])
    total = 0.0
    with torch.no_grad():
        for window in range(split["validation"]):
            piece = torch.from_numpy(text[begin + window * tokens:begin + (window + 1) * tokens + 1])
            logits = model(piece[None, :-1])[0]
            total += functional.cross_entropy(logits.double(), piece[1:], reduction="sum").item()
    return total / (split["validation"] * tokens)


def train(arguments):
    import numpy as np
    import torch
    from gpt_pytorch import Gpt, batches
    from weft_twin import begin_twin, train_step
    plan, model, optimizer, done, lines = begin_twin(
        arguments, "gpt", lambda plan: Gpt(plan["model"], plan["task"]["tokens"]))
    if arguments.double:
        to_double(model, optimizer)
    saved = arguments.curve.with_suffix(".state")
    if saved.exists():
        state = torch.load(saved)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["step"]
    elif arguments.nudge:
        nudge(model)
    # What was trained behind the state that was saved last comes once more.
    before = [] if not saved.exists() else [
        line for line in arguments.curve.read_text().splitlines() if json.loads(line).get("step", math.inf) <= done]
    batch_of, end = batches(arguments.data, plan), max(done, min(arguments.until or len(lines), len(lines)))
    with open(arguments.curve, "w") as curve:
        curve.writelines(line + "\n" for line in before)
        for line in lines[done:end]:
            step = line["step"]
            loss = train_step(model, optimizer, batch_of(step - 1), line["lr"], plan["optimizer"]["clip_norm"],
                              arguments.pieces)
            curve.write(json.dumps({"step": step, "loss": loss}) + "\n")
            if step % STEPS_A_STATE == 0 or step == end:
                curve.flush()
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, saved)
        if end == len(lines):
            text = np.fromfile(arguments.data, np.uint8).astype(np.int64)
            curve.write(json.dumps({"validation_loss": validation_loss(model, text, plan)}) + "\n")
    print(f"{arguments.curve}: {end} of {len(lines)} steps")


def read_curve(path):
    """{step: loss}, and the last validation loss; of a curve, or of a run folder of weft."""
    parse = lambda file: [json.loads(line) for line in file.read_text().splitlines()]
    if path.is_dir():
        evaluations = parse(path / "eval.jsonl")
        return {line["step"]: line["loss"] for line in parse(path / "run.jsonl")}, evaluations[-1]["loss"]
    lines = parse(path)
    losses = {line["step"]: line["loss"] for line in lines if "step" in line}
    return losses, lines[-1].get("validation_loss", math.nan)


def compare(arguments):
    reference, reference_validation = read_curve(arguments.reference)
    others = [read_curve(path) for path in arguments.others]
    print(f"{'steps to':>8} {arguments.reference.stem:>12}" +
          "".join(f" {path.stem:>14}" for path in arguments.others))
    first, last = min(reference), min(max(losses) for losses in [reference] + [losses for losses, _ in others])
    before = first - 1
    for step in [shown for shown in SHOWN if shown < last] + [last]:
        steps = [one for one in reference if before < one <= step]
        apart = [max(abs(losses[one] - reference[one]) / reference[one] for one in steps) for losses, _ in others]
        print(f"{step:>8} {reference[step]:>12.7f}" + "".join(f" {one:>14.1e}" for one in apart))
        before = step
    bits = [f"{loss / math.log(2):.5f}" for loss in [reference_validation] + [loss for _, loss in others]]
    print(f"validation, bits a byte: {bits[0]} |" + "".join(f" {one}" for one in bits[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("train")
    one.set_defaults(run_command=train)
    one.add_argument("checkpoint", type=pathlib.Path)
    one.add_argument("run", type=pathlib.Path, help="run folder with the learning rates and the number of steps")
    one.add_argument("data", type=pathlib.Path, help="the text file")
    one.add_argument("curve", type=pathlib.Path, help="file to write")
    one.add_argument("--until", type=int)
    one.add_argument("--nudge", action="store_true", help="begin with the last bit of one weight changed")
    one.add_argument("--threads", type=int, default=1)
    one.add_argument("--pieces", type=int, default=1, help="parts of a batch, their gradients added")
    one.add_argument("--double", action="store_true", help="compute in f64")
    both = commands.add_parser("compare")
    both.set_defaults(run_command=compare)
    both.add_argument("reference", type=pathlib.Path)
    both.add_argument("others", type=pathlib.Path, nargs="+", help="curves, or run folders of weft")
    arguments = parser.parse_args()
    arguments.run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
