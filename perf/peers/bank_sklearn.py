"""Logistic regression of scikit-learn on Bank Marketing: the features and parts of a weft plan, made
anew from the CSV file. For people who want to know whether the MLP is worth its steps; no test needs it.

    plan=apps/plans/bank-mlp.toml
    for seed in 1 2 3 4 5; do
      build/release/weft train $plan --data DATA --run bank-$seed --set numerics.seed=$seed
      build/release/weft eval $plan --data DATA --set numerics.seed=$seed --checkpoint bank-$seed --split test
    done
    python3 perf/peers/bank_sklearn.py DATA/bank/bank-additional-full.csv bank-1 bank-2 bank-3 bank-4 bank-5

Needs numpy and scikit-learn. Prints areas under the ROC and the precision-recall curve (average
precision) of both models on the validation part, and on the test part where all runs were judged on it:
of weft the mean and the deviation over the runs, of the step that test_uses.jsonl names last, else of
the last one. Parts by time only. The regression's C is chosen on the validation part, as weft's
threshold is; columns that are constant in training are left out: their coefficients would be 0.
"""

import argparse
import csv
import json
import pathlib
import sys
import tomllib

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

NUMBERS = {"age", "balance", "day", "duration", "campaign", "pdays", "previous", "emp.var.rate",
           "cons.price.idx", "cons.conf.idx", "euribor3m", "nr.employed"}
CS = (0.001, 0.01, 0.1, 1, 10, 100, 1000)


def read(path, allow_leak, num_training):
    """Features [rows, n] and labels; fitted on the first `num_training` rows."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    never = "-1" if len(rows[0]) == 17 else "999"
    columns = []
    for name in rows[0]:
        values = [row[name] for row in rows]
        if name == "y" or (name == "duration" and not allow_leak):
            continue
        if name not in NUMBERS:
            for category in sorted(set(values[:num_training])):
                columns.append([value == category for value in values])
            continue
        counts = np.array([name != "pdays" or value != never for value in values])
        numbers = np.array(values, dtype=np.float64)
        fitted = numbers[:num_training][counts[:num_training]]
        columns.append(np.where(counts, (numbers - fitted.mean()) / (fitted.std() or 1), 0))
        if name == "pdays":
            columns.append(counts)
    x = np.array(columns, dtype=np.float32).T.astype(np.float64)  # rounded as weft's
    return x[:, x[:num_training].std(axis=0) > 0], np.array([row["y"] == "yes" for row in rows])


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def areas_of(run):
    """{part: (ROC AUC, PR AUC)} of one run folder, all of one step."""
    evaluations, uses = lines_of(run / "eval.jsonl"), lines_of(run / "test_uses.jsonl")
    areas = lambda line: (line["roc_auc"], line["pr_auc"])
    if not uses:
        return {"validation": areas(evaluations[-1])}
    of_step = [line for line in evaluations if line["step"] == uses[-1]["step"]]
    return {"validation": areas(of_step[-1]), "test": areas(uses[-1])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("runs", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    tasks = [tomllib.loads((run / "plan.toml").read_text())["task"] for run in arguments.runs]
    task, split = tasks[0], tasks[0]["split"]
    if task["dataset"] != "bank" or split["kind"] != "time" or any(other != task for other in tasks):
        sys.exit("expected runs of one task on the bank data, split by time")
    ends = np.cumsum([split["train"], split["validation"], split["test"]])
    train, validation, test = slice(0, ends[0]), slice(ends[0], ends[1]), slice(ends[1], ends[2])
    x, y = read(arguments.table, task["allow_leak"], split["train"])
    fits = [LogisticRegression(C=c, max_iter=5000).fit(x[train], y[train]) for c in CS]
    best = max(fits, key=lambda fit: roc_auc_score(y[validation], fit.decision_function(x[validation])))
    print(f"{len(y)} rows, {x.shape[1]} features, C = {best.C:g} of {', '.join(f'{c:g}' for c in CS)}; "
          f"{len(arguments.runs)} runs\n"
          f"{'part':<12} {'yes':>7} {'ROC AUC: regression':>20} {'weft':>16} {'PR AUC: regression':>20} {'weft':>16}")
    ours = [areas_of(run) for run in arguments.runs]
    for name, part in (("validation", validation), ("test", test)):
        if not all(name in areas for areas in ours):
            continue
        scores = best.decision_function(x[part])
        areas = np.array([areas[name] for areas in ours])
        weft = [f"{mean:.4f} +- {deviation:.4f}" for mean, deviation in zip(areas.mean(axis=0), areas.std(axis=0))]
        print(f"{name:<12} {y[part].mean():>7.4f} {roc_auc_score(y[part], scores):>20.4f} {weft[0]:>16} "
              f"{average_precision_score(y[part], scores):>20.4f} {weft[1]:>16}")


if __name__ == "__main__":
    main()
