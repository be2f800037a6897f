"""An error while noise is drawn takes no true number with it: not in the local values of its traceback either."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.curator.assignments import Applied
from tacit.curator.contributing import SharePlan
from tacit.curator.running import open_running_total, running_series
from tacit.errors import ReadFailed
from tacit.ledger import Ledger
from tacit.mechanisms import RoundedGaussian
from tacit.sources.query import Cells

TRUE = 777
FRAME = pd.DataFrame({"week": [1] * TRUE + [2] * 333})
SCHEMA = {"week": tacit.integer(1, 2)}


class Stopped(Exception):
    pass


def numbers(value: Any, depth: int = 0) -> Iterator[int]:
    """Whole numbers in a value, also inside of the containers that answers go through."""
    if isinstance(value, np.ndarray | list | tuple | set):
        for one in np.ravel(value).tolist() if isinstance(value, np.ndarray) else value:
            yield from numbers(one, depth + 1)
    elif isinstance(value, dict):
        for one in value.values():
            yield from numbers(one, depth + 1)
    elif isinstance(value, Cells):
        yield from numbers(value.values, depth + 1)
    elif isinstance(value, int | float | np.generic) and not isinstance(value, bool):
        yield int(value)


def held(problem: BaseException) -> list[str]:
    """The names of local values, in any call on the way of the error, with a true number or a multiple of it."""
    found, chain = [], [problem]
    for one in chain:
        step = one.__traceback__
        while step is not None:
            local = step.tb_frame.f_locals if "tacit" in step.tb_frame.f_code.co_filename else {}
            for name, value in local.items():
                if any(n and n % TRUE == 0 for n in numbers(value)):
                    found.append(f"{step.tb_frame.f_code.co_name}: {name}")
            step = step.tb_next
        chain += [e for e in (one.__cause__, one.__context__) if e is not None and e not in chain]
    return found


def release(curator: Any) -> None:
    curator.release(tacit.count(by="week"), epsilon=1, delta=1e-6)


def step(curator: Any) -> None:
    open_running_total(curator, running_series(curator, "week", epsilon=1, delta=1e-6)).release(1)


def contribute(curator: Any) -> None:
    plan = curator.preview(tacit.count(by="week"), epsilon=1, delta=1e-6)
    share = object.__new__(SharePlan)
    share._plan = plan
    curator.contribute(share, key="session")


@pytest.mark.parametrize("problem", [KeyboardInterrupt, MemoryError, Stopped])
@pytest.mark.parametrize("act", [release, step, contribute])
def test_an_error_while_noise_is_drawn(
    act: Callable[[Any], None], problem: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(self: Any, *given: Any, **more: Any) -> Any:
        raise problem

    monkeypatch.setattr(RoundedGaussian, "release_cells", stops)
    monkeypatch.setattr(Applied, "release", stops)
    with tacit.Curator(
        FRAME,
        protect=tacit.rows(),
        schema=SCHEMA,
        budget=tacit.Approximate(epsilon=3, delta=1e-5),
        ledger=None,
    ) as curator:
        with pytest.raises(BaseException) as caught:
            act(curator)
        # What runs out, and where, may depend on the rows: only a request to stop passes as it is.
        assert type(caught.value) is (problem if problem is KeyboardInterrupt else ReadFailed)
        assert caught.value.__context__ is None
        assert held(caught.value) == []
        assert curator.ledger.state(curator.ledger.charges()[-1].sequence) == "failed"


def test_an_error_while_a_figure_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger's disk is full after the noise was drawn."""
    with tacit.Curator(
        FRAME,
        protect=tacit.rows(),
        schema=SCHEMA,
        budget=tacit.Approximate(epsilon=3, delta=1e-5),
        ledger=None,
    ) as curator:
        total = open_running_total(curator, running_series(curator, "week", epsilon=1, delta=1e-6))

        def full(self: Any, *given: Any, **more: Any) -> Any:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Ledger, "commit", full)
        with pytest.raises(OSError, match="No space") as caught:
            total.release(1)
        assert held(caught.value) == []
