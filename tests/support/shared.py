"""The reference data that lie beside the project, where they are present."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLACES = (ROOT.parent / "shared", Path("/work/shared"))


def shared(name: str) -> Path:
    """A path below ../shared; the test skips where it is absent."""
    for place in PLACES:
        if (place / name).exists():
            return place / name
    pytest.skip(f"needs ../shared/{name}, which is not part of a plain clone")


def reference_rows() -> list[dict[str, Any]]:
    """The rows of the accountants' reference values, or none where they are absent."""
    for place in PLACES:
        path = place / "data/accountants/reference_values.json"
        if path.exists():
            return list(json.loads(path.read_text())["values"])
    return []
