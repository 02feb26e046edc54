from __future__ import annotations

import os
import subprocess
import sys

from penstock.dev import processes


def launched(tmp_path, *command, **env):
    pid_file, log = tmp_path / "x.pid", tmp_path / "x.log"
    pid = processes.launch(command, env=env, log=log, pid_file=pid_file, cwd=tmp_path)
    return pid, pid_file, log


def wait_for(path, text):
    for _ in range(400):
        if path.exists() and text in path.read_text():
            return
        subprocess.run(["sleep", "0.05"], check=True)
    raise AssertionError(path.read_text() if path.exists() else "no log")


def test_a_process_is_recognised_and_ended(tmp_path):
    pid, pid_file, _ = launched(tmp_path, "sleep", "600")
    assert processes.running(pid_file) == pid
    assert os.getsid(pid) != os.getsid(0), "a Ctrl-C in this terminal must not reach it"
    processes.end(pid_file, grace_seconds=10)
    assert processes.running(pid_file) is None
    assert not pid_file.exists()


def test_a_process_that_ignores_sigterm_is_killed(tmp_path):
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    pid, pid_file, log = launched(tmp_path, sys.executable, "-c", stubborn)
    wait_for(log, "deaf")
    processes.end(pid_file, grace_seconds=0.2)
    assert processes._birth(pid) == ""


def test_a_pid_that_now_belongs_to_another_process_is_not_taken_for_ours_and_not_ended(tmp_path):
    with subprocess.Popen(["sleep", "600"]) as other:
        pid_file = tmp_path / "x.pid"
        pid_file.write_text(f"{other.pid} an earlier birth\n")
        assert processes.running(pid_file) is None
        processes.end(pid_file, grace_seconds=1)
        assert other.poll() is None
        other.kill()


def test_a_pid_file_that_is_broken_or_names_nobody_means_that_nothing_runs(tmp_path):
    pid_file = tmp_path / "x.pid"
    assert processes.running(pid_file) is None
    for content in ("", "word", "12", "4194999 1", "\n"):
        pid_file.write_text(content)
        assert processes.running(pid_file) is None


def test_output_goes_to_the_log_and_the_one_before_is_kept(tmp_path):
    _, pid_file, log = launched(tmp_path, "sh", "-c", 'echo "first $GREETING"', GREETING="hello")
    wait_for(log, "first hello")
    processes.end(pid_file, grace_seconds=5)
    launched(tmp_path, "sh", "-c", "echo second >&2")
    wait_for(log, "second")
    assert (log.read_text(), log.with_name("x.log.1").read_text()) == ("second\n", "first hello\n")
