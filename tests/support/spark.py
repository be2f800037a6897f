"""Spark for the tests: one local session a process, and a reason to skip where there is none."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import pytest

from tacit.sources.spark import java_command, local_session


def _missing() -> str:
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed (pip install -r requirements-spark.lock)"
    return "" if java_command() else "there is no Java, which Spark runs on (JAVA_HOME, or java on the path)"


needs_spark = pytest.mark.skipif(bool(_missing()), reason=_missing() or "Spark is there")


def session() -> Any:
    # Many small queries: compiling them well costs more than it saves.
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    return local_session("1GB")


def frame(table: Any) -> Any:
    """An Arrow table as a Spark DataFrame, as a user would have one."""
    return session().createDataFrame(table)
