"""Spark sessions: the user's own, unchanged, or a local one that is made here, quiet and private.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter
from tacit.sources.engines import memory_in_mib, new_folder, remove_folder

JAVA = 17
"""The oldest Java that Spark 4 runs on; Spark 3.5 would run on older ones."""
LOG = "rootLogger.level = OFF\n"
_local: list[Any] = []


def java_command() -> str | None:
    """The Java that Spark would start, if there is one."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return shutil.which("java", path=str(Path(home) / "bin"))
    return shutil.which("java")


def _missing(what: str, hint: str) -> InvalidParameter:
    return InvalidParameter(parameter="engine", value="spark", must=f"find {what}", hint=hint)


def _pyspark() -> Any:
    try:
        import pyspark.sql
    except ImportError:
        raise _missing("PySpark installed", "pip install 'tacit[spark]'") from None
    return pyspark


def local_session(memory: str) -> Any:
    """A session of this process: beside an existing session, or in a new Spark."""
    size = memory_in_mib(memory)
    pyspark = _pyspark()
    if "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        # PySpark's functions then speak to the remote session only, whatever frame they are given.
        raise _missing(
            "no session of Spark Connect in this process",
            "hand over a table of that session itself: session.read.parquet(...)",
        )
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
    folder = new_folder()
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


class Place:
    """A name in a session for a frame, which another frame can replace; and a private folder."""

    def __init__(self, session: Any) -> None:
        import ibis

        self.session = session
        self.view = f"__tacit_{secrets.token_hex(8)}"
        self.folder: Path | None = None
        names = ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")
        before = {name: session.conf.get(name, None) for name in names}
        self.backend = ibis.pyspark.connect(session)
        # Ibis sets these; the session is the user's, and days begin where it says.
        for name, value in before.items():
            with contextlib.suppress(Exception):
                session.conf.set(name, value) if value is not None else session.conf.unset(name)

    def show(self, frame: Any) -> Any:
        """A Spark DataFrame as an Ibis table."""
        frame.createOrReplaceTempView(self.view)
        return self.backend.table(self.view)

    def fill(self, batches: Iterable[Any], schema: Any) -> Any:
        """Arrow batches, by way of a Parquet file in a private folder that goes with the table."""
        import pyarrow.parquet as pq

        folder = new_folder()
        path = str(folder / "rows.parquet")
        # Spark's times are of microseconds.
        options = {"coerce_timestamps": "us", "allow_truncated_timestamps": True}
        with pq.ParquetWriter(path, schema, **options) as writer:
            for batch in batches:
                writer.write_batch(batch)
        shown = self.show(self.session.read.parquet(f"file://{path}"))
        if self.folder is not None:
            remove_folder(self.folder)
        self.folder = folder
        return shown

    def close(self) -> None:
        """Takes the name back and removes the folder."""
        with contextlib.suppress(Exception):
            self.session.catalog.dropTempView(self.view)
        if self.folder is not None:
            remove_folder(self.folder)


def as_table(frame: Any) -> tuple[Any, Callable[[], None]]:
    """A Spark DataFrame as an Ibis table, and a call that frees its name."""
    place = Place(frame.sparkSession)
    return place.show(frame), place.close


def _plain(path: str) -> str:
    # Spark takes *, ?, [ and { in a path as patterns; this is the name of a file.
    return "file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(Path(path).absolute()))


def read_parquet(
    session: Any, files: Sequence[tuple[str, Mapping[str, str | None]]], columns: Sequence[str]
) -> Any:
    """Parquet files as one frame; with each file, the columns in its path."""
    from pyspark.sql import functions

    told = [name for name in files[0][1] if name in columns]
    stored = [_quoted(name) for name in columns if name not in told]
    if not told:
        return _sound(session.read.parquet(*(_plain(path) for path, _ in files)).select(*stored))
    out = None
    for path, values in files:
        frame = session.read.parquet(_plain(path)).select(*stored)
        frame = frame.withColumns({n: functions.lit(values[n]).cast("string") for n in told})
        out = frame if out is None else out.unionByName(frame)
    return _sound(out)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _sound(frame: Any) -> Any:
    """Text whose bytes are not UTF-8 becomes missing: Spark does not check it, and readers of its answers would fail
    there.
    """
    from pyspark.sql import functions

    if not hasattr(functions, "try_validate_utf8"):
        return frame
    texts = {f.name for f in frame.schema if f.dataType.typeName() == "string"}
    made = [
        functions.try_validate_utf8(functions.col(_quoted(n))).alias(n)
        if n in texts
        else functions.col(_quoted(n))
        for n in frame.columns
    ]
    return frame.select(*made) if texts else frame


def forget(session: Any, paths: Iterable[str]) -> None:
    """Tells a session that files have changed."""
    for path in paths:
        session.catalog.refreshByPath(_plain(path))
