"""Logistic regression of scikit-learn on Bank Marketing: the features and parts of a weft plan, made
anew from the CSV file. For people who want to know whether the MLP is worth its steps; no test needs it.

    build/release/weft train apps/plans/bank-mlp.toml --data DATA --run bank
    build/release/weft eval apps/plans/bank-mlp.toml --data DATA --checkpoint bank --split test --json
    python3 perf/peers/bank_sklearn.py bank DATA/bank/bank-additional-full.csv

Needs numpy and scikit-learn. Prints areas under the ROC and the precision-recall curve (average
precision) of both models on the validation and the test part; weft's are from eval.jsonl and
test_uses.jsonl of the run folder. Parts by time only. The regression's C is chosen on the validation
part, as weft's threshold is; columns that are constant in training are left out.
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
    x = np.array(columns, dtype=np.float64).T
    return x[:, x[:num_training].std(axis=0) > 0], np.array([row["y"] == "yes" for row in rows])


def last_line(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return json.loads(lines[-1]) if lines else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("table", type=pathlib.Path)
    arguments = parser.parse_args()
    task = tomllib.loads((arguments.run / "plan.toml").read_text())["task"]
    split = task["split"]
    if task["dataset"] != "bank" or split["kind"] != "time":
        sys.exit("expected a run of the bank data, split by time")
    ends = np.cumsum([split["train"], split["validation"], split["test"]])
    train, validation, test = slice(0, ends[0]), slice(ends[0], ends[1]), slice(ends[1], ends[2])
    x, y = read(arguments.table, task["allow_leak"], split["train"])
    fits = [LogisticRegression(C=c, max_iter=5000).fit(x[train], y[train]) for c in (0.001, 0.01, 0.1, 1, 10)]
    best = max(fits, key=lambda fit: roc_auc_score(y[validation], fit.decision_function(x[validation])))
    print(f"{len(y)} rows, {x.shape[1]} features, C = {best.C:g}\n"
          f"{'part':<12} {'yes':>7} {'ROC AUC: regression':>20} {'weft':>8} {'PR AUC: regression':>20} {'weft':>8}")
    ours = {"validation": last_line(arguments.run / "eval.jsonl"),
            "test": last_line(arguments.run / "test_uses.jsonl")}
    for name, part in (("validation", validation), ("test", test)):
        scores, metrics = best.decision_function(x[part]), ours[name].get("metrics", ours[name])
        weft = [f"{metrics[key]:.4f}" if key in metrics else "-" for key in ("roc_auc", "pr_auc")]
        print(f"{name:<12} {y[part].mean():>7.4f} {roc_auc_score(y[part], scores):>20.4f} {weft[0]:>8} "
              f"{average_precision_score(y[part], scores):>20.4f} {weft[1]:>8}")


if __name__ == "__main__":
    main()
