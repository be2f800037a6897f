"""Spark sessions: the user's own, left as it is, or a local one that is made here, quiet and private.

The local session keeps its files in a temporary folder, listens on the loopback address alone, has no web page and
writes no log: engines quote rows in their logs. It lives as long as the process, since a start takes seconds.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter

__all__ = ["as_table", "java_command", "local_session", "memory_in_mib", "read_parquet"]

JAVA = 17
"""The oldest Java that Spark 4 runs on; Spark 3.5 would run on older ones."""
LEAST_MIB = 1024
LOG = "rootLogger.level = OFF\n"
_local: list[Any] = []


def java_command() -> str | None:
    """The Java that Spark would start, if there is one."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return shutil.which("java", path=str(Path(home) / "bin"))
    return shutil.which("java")


def memory_in_mib(memory: str) -> int:
    """A limit such as "1GB" or "512MiB", in MiB, and at least what Spark needs to start."""
    units = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt])i?b?\s*", memory.lower())
    if found is None:
        raise InvalidParameter(parameter="memory", value=memory, must='be a size such as "4GB"')
    return max(LEAST_MIB, int(float(found[1]) * units[found[2]]))


def _missing(what: str, hint: str) -> InvalidParameter:
    return InvalidParameter(parameter="engine", value="spark", must=f"find {what}", hint=hint)


def _pyspark() -> Any:
    try:
        import pyspark.sql
    except ImportError:
        raise _missing("PySpark installed", "pip install 'tacit[spark]'") from None
    return pyspark


def local_session(memory: str) -> Any:
    """A session of this process: beside a session that is already there, or in a Spark that is started for it."""
    size = memory_in_mib(memory)
    pyspark = _pyspark()
    with contextlib.suppress(Exception):
        if _local and _local[0].sparkContext._jsc is not None:
            return _local[0]
    _local.clear()
    running = pyspark.SparkContext._active_spark_context
    # In a Spark that runs already the settings are the user's: ours live in a session of their own.
    session = pyspark.sql.SparkSession(running).newSession() if running else _started(pyspark, size)
    for name, value in {"spark.sql.caseSensitive": "true", "spark.sql.session.timeZone": "UTC"}.items():
        session.conf.set(name, value)
    _local.append(session)
    return session


def _started(pyspark: Any, mib: int) -> Any:
    from pyspark.java_gateway import launch_gateway

    if java_command() is None:
        raise _missing(
            f"Java {JAVA} or later, and there is no Java here",
            "install a Java runtime (Debian: default-jre-headless) or set JAVA_HOME; DuckDB needs none",
        )
    folder = Path(tempfile.mkdtemp(prefix="tacit-spark-"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    (folder / "log4j2.properties").write_text(LOG)
    log = f"-Dlog4j2.configurationFile=file:{folder / 'log4j2.properties'}"
    settings = {
        "spark.master": f"local[{cores}]", "spark.app.name": "tacit", "spark.driver.memory": f"{mib}m",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"{log} -Dderby.system.home={folder}",
        "spark.local.dir": str(folder), "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF",
        "spark.sql.catalogImplementation": "in-memory", "spark.driver.maxResultSize": "0",
        # One partition for each core: the default of 200 costs more than the work, on one machine.
        "spark.sql.shuffle.partitions": str(cores), "spark.default.parallelism": str(cores),
    }  # fmt: skip
    conf = pyspark.SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        with (folder / "java.log").open("wb") as stream:
            gateway = launch_gateway(conf, {"stdout": stream, "stderr": stream})
            context = pyspark.SparkContext(conf=conf, gateway=gateway)
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        context = None
    if context is None:
        # Outside the handler: Java's words and the paths in them are nobody's business here.
        raise _missing(
            f"a Java that starts it; it needs Java {JAVA} or later", "see java -version and JAVA_HOME"
        )

    def stop() -> None:
        with contextlib.suppress(Exception):
            context.stop()
        with contextlib.suppress(Exception):
            gateway.shutdown()
        with contextlib.suppress(Exception):
            gateway.proc.stdin.close()
            gateway.proc.wait(10)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return pyspark.sql.SparkSession(context)


def as_table(frame: Any) -> tuple[Any, Callable[[], None]]:
    """A Spark DataFrame as an Ibis table, and a call that takes its name back."""
    import ibis

    session = frame.sparkSession
    names = ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")
    before = {name: session.conf.get(name, None) for name in names}
    backend = ibis.pyspark.connect(session)
    # Ibis sets these; the session is the user's, and days begin where it says.
    for name, value in before.items():
        with contextlib.suppress(Exception):
            session.conf.set(name, value) if value is not None else session.conf.unset(name)
    view = f"__tacit_{secrets.token_hex(8)}"
    frame.createOrReplaceTempView(view)

    def close() -> None:
        session.catalog.dropTempView(view)

    return backend.table(view), close


def read_parquet(session: Any, paths: list[str]) -> tuple[Any, Callable[[], None], Callable[[], None]]:
    """Parquet files as an Ibis table; a call that takes the name back, and one for when the files have changed."""
    # Spark takes *, ?, [ and { in a path as patterns; these are names of files.
    plain = [re.sub(r"([\\*?\[\]{}])", r"\\\1", str(Path(p).absolute())) for p in paths]
    table, close = as_table(session.read.parquet(*(f"file://{p}" for p in plain)))

    def refresh() -> None:
        for path in plain:
            session.catalog.refreshByPath(f"file://{path}")

    return table, close, refresh
