"""The earlier name of `tacit.functions.models`: each name is passed on with a warning, for one version."""

from __future__ import annotations

import warnings
from typing import Any

from tacit.functions import models

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    found = getattr(models, name)
    warnings.warn(
        f"tacit.functions.machines.{name} is tacit.functions.models.{name} now",
        DeprecationWarning,
        stacklevel=2,
    )
    return found
