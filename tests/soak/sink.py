"""`penstock run WORKER CONNECTOR` with the job in this process: a start in two seconds, so that many can be killed."""

import signal
import sys
import threading
from pathlib import Path

from connecting import InProcess
from penstock.errors import PenstockError
from penstock.loading import load
from penstock.loop import keep_running, open_patiently
from penstock.running import Running
from penstock.worker.logs import configure


def main(worker: str, connector: str) -> int:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    configure()
    config, kafka = load(Path(connector), Path(worker), None)
    try:
        with open_patiently(lambda: Running.open(config, kafka, InProcess(kafka)), stop) as running:
            keep_running(running, stop, until_done=False)
            stopped = [fault.message for fault in running.engine.faults.values() if not fault.passing]
    except PenstockError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stderr.writelines(f"{message}\n" for message in stopped)
    return 1 if stopped else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
