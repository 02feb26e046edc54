"""`penstock run WORKER CONNECTOR --until-done` with the job in this process, for tests of the driver."""

import sys
import threading
from pathlib import Path

from connecting import InProcess
from penstock import crashpoints
from penstock.loading import load
from penstock.loop import keep_running
from penstock.running import Running

worker, connector = map(Path, sys.argv[1:])
crashpoints.arm()
config, kafka = load(connector, worker, None)
with Running.open(config, kafka, InProcess(kafka)) as running:
    keep_running(running, threading.Event(), until_done=True)
