"""Medians and quartiles by a peer: errors of 500 runs as JSON lines; run by defaults.py in the peer's environment.

usage: _quantile_peers.py opendp|diffprivlib FILE [RUNS], FILE an .npz of defaults.py with groups of values, bounds,
candidates, shares, epsilons and runs. Under add-or-remove each row is in one group, so every group gets all of epsilon;
several quantiles share it evenly.
"""

from __future__ import annotations

import json
import sys

import numpy as np


def opendp_draw(values, low, high, candidates, share, epsilon):
    import opendp.prelude as dp

    dp.enable_features("contrib", "floating-point")
    domain, metric = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    scores = dp.t.make_quantile_score_candidates(domain, metric, candidates, alpha=share)

    def private(scale):
        return scores >> dp.m.then_noisy_max(output_measure=dp.max_divergence(), scale=scale, negate=True)

    scale = dp.binary_search_param(private, d_in=1, d_out=epsilon, T=float)
    # The scores are computed once: noisy max of the scores is what the chained measurement draws.
    about = (scores.output_domain, scores.output_metric, dp.max_divergence())
    measurement = dp.m.make_noisy_max(*about, scale=scale, negate=True)
    found = scores(np.clip(values, low, high).tolist())
    return lambda: candidates[measurement(found)]


def diffprivlib_draw(values, low, high, candidates, share, epsilon):
    from diffprivlib.tools import quantile

    ordered = np.sort(values)
    return lambda: float(quantile(ordered, share, epsilon=epsilon, bounds=(low, high)))


def main(peer, path):
    given = np.load(path, allow_pickle=True)
    made = opendp_draw if peer == "opendp" else diffprivlib_draw
    for case in json.loads(str(given["cases"])):
        groups = [given[name] for name in case["groups"]]
        for epsilon in case["epsilons"]:
            for j, share in enumerate(case["shares"]):
                errors = []
                for g, values in enumerate(groups):
                    each = epsilon / len(case["shares"])
                    draw = made(values, case["low"], case["high"], case["candidates"], share, each)
                    truth = case["truth"][g][j]
                    errors += [abs(draw() - truth) for _ in range(case["runs"])]
                row = {
                    "case": case["name"],
                    "epsilon": epsilon,
                    "share": share,
                    "error": float(np.median(errors)),
                }
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
