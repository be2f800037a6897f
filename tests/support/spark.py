"""Spark for the tests: one local session a process, and a reason to skip where there is none.

TACIT_SPARK_MASTER names another master. With `local-cluster[2,1,1024]` two executors run in processes of their own,
so that rows, plans and functions really cross between processes, as they do on a cluster.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tacit.sources.spark import java_command, local_session


def _missing() -> str:
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed (pip install -r requirements-spark.lock)"
    return "" if java_command() else "there is no Java, which Spark runs on (JAVA_HOME, or java on the path)"


needs_spark = pytest.mark.skipif(bool(_missing()), reason=_missing() or "Spark is there")


# Many small queries: compiling them well costs more than it saves. For whoever starts Java first in this process.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
PLAIN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Queries of a few rows, each run once: planned once, and read instead of compiled to Java."""


def session() -> Any:
    master = os.environ.get("TACIT_SPARK_MASTER", "")
    if master:
        _start(master)
    made = local_session("1GB")
    for name, value in PLAIN.items():
        made.conf.set(name, value)
    return made


def _start(master: str) -> None:
    """A Spark of the user's own, beside which tacit opens a session."""
    import pyspark

    if pyspark.SparkContext._active_spark_context is not None:
        return
    folder = Path(tempfile.mkdtemp(prefix="tacit-spark-"))
    (folder / "log4j2.properties").write_text("rootLogger.level = OFF\n")
    log = f"-Dlog4j2.configurationFile=file:{folder / 'log4j2.properties'}"
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    # Workers keep their files in SPARK_HOME/work unless they are told otherwise.
    os.environ.setdefault("SPARK_WORKER_DIR", str(folder / "work"))
    settings = {
        "spark.master": master, "spark.app.name": "tacit tests", "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.executor.memory": "1g",
        "spark.driver.extraJavaOptions": f"{log} -Dderby.system.home={folder}",
        "spark.executor.extraJavaOptions": log, "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2",
    }  # fmt: skip
    conf = pyspark.SparkConf(loadDefaults=False).setAll(list(settings.items()))
    context = pyspark.SparkContext(conf=conf)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(context.stop)


def ordinary() -> None:
    """The session with Spark's own settings, as users have it."""
    for name in PLAIN:
        local_session("1GB").conf.unset(name)


def frame(table: Any) -> Any:
    """An Arrow table as a Spark DataFrame, as a user would have one."""
    return session().createDataFrame(table)
