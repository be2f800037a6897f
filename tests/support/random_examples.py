"""Examples of what `tacit.random_data` makes, for the contract about strange parameters."""

from __future__ import annotations

from typing import Any

RANDOM_DATA: dict[str, dict[str, Any]] = {
    "ChangesByQuantile": {
        "rows": 40, "levels": (1, 2.5, 7), "rank": 18, "slack": 3, "choice_epsilon": 3, "release_epsilon": 1,
        "all_pairs": False, "spacing": 0.25, "independent": True,
    },
    "ChangesBySmoothness": {
        "rows": 40, "rank": 18, "epsilon": 1, "beta": 0.05, "smooth_gamma": 0.125, "all_pairs": False,
        "spacing": 0.25, "independent": True,
    },
    "ChosenBins": {
        "rows": 40, "candidates": (2, 4), "choice_epsilon": 1, "release_epsilon": 2, "gamma": 0.25,
        "independent": True,
    },
    "Overlap": {"rows": 20, "attacker_rows": 30, "least_overlap": 15},
    "RandomDensity": {
        "rows": 40, "low": 0.0, "high": 1.0, "bins": 8, "bandwidth": 0.25, "epsilon": 1, "gamma": 0.5,
    },
    "pairs_gain": {"distance": 1.0, "bandwidth": 0.5},
    "PredictiveHistogram": {"rows": 40, "cells": 4, "epsilon": 1, "least": 2, "independent": True},
    "RandomHistogram": {
        "rows": 40, "cells": 4, "epsilon": 1, "gamma": 0.25, "small_cells": False, "sharp": True,
        "neighbours": "replace-one", "independent": True,
    },
    "RandomProportion": {
        "rows": 40, "epsilon": 1, "gamma": 0.25, "neighbours": "replace-one", "independent": True,
    },
    "SampledSensitivity": {
        "rows": 40, "draws": 9, "rank": 8, "epsilon": 1, "spacing": 0.25, "independent": True,
    },
    "dkw_draws": {"gamma": 0.05},
}  # fmt: skip
