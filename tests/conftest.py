"""Hypothesis runs the same examples every time, and noise is that of the test: no test depends on luck."""

import gc
import os
import sys
from typing import Any

# As many processes run as there are cores: threads of the linear algebra would only wait for each other.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from support import luck, types_of_sql  # noqa: E402

settings.register_profile(
    "tacit",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tacit")

# Tests start many processes; where nothing compiled may be written, each would compile the whole library again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Thousands of collected tests are no garbage: they are not looked through again, and garbage is looked for less often.
gc.set_threshold(20_000, 50, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs Spark comes first, and so falls to one of several processes: Java starts once, and is warm."""
    spark = sys.modules.get("support.spark")
    if spark is not None:
        items.sort(key=lambda item: spark.needs_spark.mark not in item.iter_markers("skipif"))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    """Where SQL is written, which is much of what tests wait for, the names of its types are parsed once."""
    if "sqlglot.expressions" in sys.modules:
        types_of_sql.settle()


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> None:
    """A fixture that is shared draws the same, whichever test asks for it first."""
    luck.settle(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param_index', 0)}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    luck.settle(item.nodeid)
