#!/usr/bin/env python3
"""How often `weft profile` names what was done to a run on purpose, rank and cause.

    perf/stragglers.py PLAN DATA [TRIES [SEED]]

Each try draws one of four data-parallel ranks for each of: 20 ms a step more of compute; a loader that
takes 60 ms a step; a link on which each message leaves 10 ms late. The first two are right where exactly
that rank is named with that cause; a slow link is right where links are named and no rank.
"""
import json
import pathlib
import random
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent.parent
plan, data = sys.argv[1:3]
tries = int(sys.argv[3]) if len(sys.argv) > 3 else 20
random.seed(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
delays = {"compute": 20, "data": 60, "link": 10}


def profile(delay):
    command = [here / "apps/launch.sh", "4", here / "build/release/weft", "profile", plan, "--data", data,
               "--set", "layout.dp=4", "--steps", "40", "--warmup", "10", "--json", "--delay", delay]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


right = dict.fromkeys(delays, 0)
for number in range(tries):
    for cause, ms in delays.items():
        rank = random.randrange(4)
        found = profile(f"{rank}:{cause}={ms}")
        named = found["straggler"]
        if cause == "link":
            is_right = named is None and bool(found["slow_links"])
        else:
            is_right = named is not None and (named["rank"], named["cause"]) == (rank, cause)
        right[cause] += is_right
        if not is_right:
            print(f"try {number}: {rank}:{cause}={ms} was told as {named}", flush=True)
print(", ".join(f"{cause} {count} of {tries}" for cause, count in right.items()))
