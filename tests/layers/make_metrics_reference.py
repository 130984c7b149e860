# Makes metrics_reference.json: labels, predictions and scores, and what scikit-learn says of them.
# Not part of any build; run it by hand where cases are added:
#   python3 -m venv ENV && ENV/bin/pip install scikit-learn
#   ENV/bin/python make_metrics_reference.py > metrics_reference.json
# Undefined values are null. Thresholds are chosen here by fractions, without scikit-learn, which
# has no such function; what the decision at a threshold is worth is scikit-learn's again.
import json
import math
import platform
import random
import warnings
from fractions import Fraction

import numpy
import sklearn
from sklearn import metrics

warnings.simplefilter("ignore")
NAN = float("nan")


def number(value):
    return None if math.isnan(value) else float(value)


def multiclass(name, num_classes, labels, predicted):
    classes = list(range(num_classes))

    def scores(average):
        return metrics.precision_recall_fscore_support(
            labels, predicted, labels=classes, average=average, zero_division=NAN)[:3]

    each, macro = scores(None), scores("macro")
    return {
        "name": name, "num_classes": num_classes, "labels": labels, "predicted": predicted,
        "confusion": metrics.confusion_matrix(labels, predicted, labels=classes).tolist(),
        "accuracy": number(metrics.accuracy_score(labels, predicted)),
        **{key: [number(v) for v in values]
           for key, values in zip(("precision", "recall", "f1"), each)},
        **{"macro_" + key: number(value)
           for key, value in zip(("precision", "recall", "f1"), macro)},
    }


def decision(labels, scores, threshold):
    predicted = [int(score >= threshold) for score in scores]
    values = metrics.precision_recall_fscore_support(
        labels, predicted, labels=[1], average=None, zero_division=NAN)[:3]
    return {"threshold": threshold,
            **{key: number(v[0]) for key, v in zip(("precision", "recall", "f1"), values)}}


def best_threshold(labels, scores):
    best = None
    for threshold in sorted(set(scores), reverse=True):
        taken = [label for label, score in zip(labels, scores) if score >= threshold]
        f1 = Fraction(2 * sum(taken), len(taken) + sum(labels))
        if best is None or f1 > best[0]:
            best = (f1, threshold)
    return best[1]


def binary(name, labels, scores, thresholds=()):
    has_positives = sum(labels) > 0
    chosen = best_threshold(labels, scores) if has_positives else None
    all_thresholds = ([] if chosen is None else [chosen]) + list(thresholds)
    return {
        "name": name, "labels": labels, "scores": scores,
        "roc_auc": number(metrics.roc_auc_score(labels, scores)),
        # Without positives scikit-learn gives 0 and warns; weft says undefined.
        "average_precision":
            number(metrics.average_precision_score(labels, scores)) if has_positives else None,
        "best_threshold": chosen,
        "decisions": [decision(labels, scores, t) for t in all_thresholds],
    }


def random_classes(random_numbers, num, num_classes, share_right):
    labels = [random_numbers.randrange(num_classes) for _ in range(num)]
    predicted = [label if random_numbers.random() < share_right
                 else random_numbers.randrange(num_classes) for label in labels]
    return labels, predicted


def random_scores(random_numbers, num, share_positive, digits):
    labels = [int(random_numbers.random() < share_positive) for _ in range(num)]
    scores = [round(random_numbers.gauss(0.9 * label, 1.0), digits) for label in labels]
    return labels, scores


def main():
    rng = random.Random(20)
    four = random_classes(rng, 200, 4, 0.6)
    cases = [
        multiclass("200 random, 4 classes", 4, *four),
        multiclass("137 random, 10 classes", 10, *random_classes(rng, 137, 10, 0.3)),
        multiclass("class 2 is no label, but predicted", 4, [0, 1, 3, 3, 0], [0, 2, 3, 1, 2]),
        multiclass("class 1 is never predicted", 3, [0, 1, 2, 1, 2], [0, 0, 2, 2, 2]),
        multiclass("class 3 is neither", 4, [0, 1, 2, 2], [0, 2, 2, 1]),
        multiclass("all of one class, all right", 3, [1, 1, 1], [1, 1, 1]),
        multiclass("all of one class, all wrong", 3, [1, 1, 1], [2, 2, 2]),
        multiclass("perfect", 4, four[0], four[0]),
        multiclass("two classes", 2, [0, 1, 1, 0, 1, 0, 0], [0, 1, 0, 0, 1, 1, 0]),
        multiclass("one sample", 5, [4], [0]),
    ]
    rare = random_scores(rng, 211, 0.08, 3)
    tied = random_scores(rng, 200, 0.5, 1)
    ordered = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    scored = [
        binary("211 random, rare positives", *rare, thresholds=[0.0, 1.5, -9.0, 9.0]),
        binary("200 random, many ties", *tied, thresholds=[0.0, 0.45]),
        binary("perfect", [0, 0, 0, 1, 1, 1], ordered),
        binary("inverted", [1, 1, 1, 0, 0, 0], ordered, thresholds=[0.35]),
        binary("all scores equal", [0, 1, 1, 0, 1], [0.5] * 5, thresholds=[0.5, 0.6]),
        binary("ties across the classes", [1, 0, 1, 0, 1, 0, 0], [3, 3, 2, 2, 2, 1, 0.5]),
        binary("two thresholds of the same F1", [1, 0, 0, 1], [4.0, 3.0, 2.0, 1.0]),
        binary("all positive", [1, 1, 1], [0.2, 0.1, 0.2], thresholds=[0.15]),
        binary("all negative", [0, 0, 0], [0.2, 0.1, 0.2], thresholds=[0.15, 0.5]),
        binary("a zero and a negative zero", [1, 0, 0, 1], [0.0, -0.0, -1.0, 0.0]),
        binary("one positive, one negative, equal", [1, 0], [0.0, 0.0]),
    ]
    made = {"by": "make_metrics_reference.py", "scikit-learn": sklearn.__version__,
            "numpy": numpy.__version__, "python": platform.python_version()}

    def lines(items):
        return ",\n".join(json.dumps(item) for item in items)

    print(f'{{"made": {json.dumps(made)},\n"multiclass": [\n{lines(cases)}],\n'
          f'"binary": [\n{lines(scored)}]}}')


main()
