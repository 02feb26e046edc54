"""One soak: what runs, what happens to it, and what is there at the end."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from confluent_kafka.admin import AdminClient, NewTopic

from audit import Audit, audit
from connecting import InProcess
from faulty_s3 import FaultyS3, at_random, faulty_s3, nothing
from penstock.dev import stack as dev_stack
from penstock.loading import load
from penstock.loop import keep_running, open_patiently
from penstock.running import Running
from penstock.store.s3 import StoreOptions, store
from soak.fleet import Member
from soak.producing import PARTITIONS, Producing, ids, in_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from penstock.dev.settings import StackInfo

TIMED = {"partitioner.class": "hourly", "locale": "en-US", "timezone": "UTC"}
RULES: Mapping[str, Mapping[str, str]] = {
    "size": {"flush.size": "1000"},
    "schedule": {"flush.size": "100000", "rotate.schedule.interval.ms": "3000", "timezone": "UTC"},
    "wallclock": {
        **TIMED,
        "flush.size": "100000",
        "timestamp.extractor": "Wallclock",
        "rotate.interval.ms": "2000",
    },
    "hourly": {**TIMED, "flush.size": "1000", "timestamp.extractor": "Record"},
    "changing": {},  # flush.size is another one at each start
}
SIZES = ("1000", "700", "1300", "333")


@dataclass(frozen=True)
class Trouble:
    """What happens, in seconds between two events of a kind (0: never), and how often a request to S3 suffers.

    `stopped_s`: how long an instance that gets a second one beside it is stopped.
    """

    kill_s: float = 0.0
    stop_s: float = 0.0
    stopped_s: tuple[float, float] = (4.0, 10.0)
    broker_s: float = 0.0
    s3_rate: float = 0.0
    latency_s: tuple[float, float] = (0.0, 0.0)


@dataclass
class Result:
    """`audits`: by connector. `faults`: how many were survived. `failed`: ends that nobody had caused."""

    audits: dict[str, Audit]
    faults: int
    members: Sequence[Member]
    brokers: int
    requests: int
    failed: list[str] = field(default_factory=list)

    @property
    def records(self) -> int:
        return sum(each.records for each in self.audits.values())

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.audits.values())

    @property
    def doubled(self) -> int:
        return sum(each.doubled for each in self.audits.values())


@dataclass
class Course:
    """`bounce`: lets a broker end and come back; None where it is somebody else's. `choose`: the S3 faults, where they
    are not those of `trouble.s3_rate`.
    """

    info: StackInfo
    folder: Path
    seconds: float
    trouble: Trouble
    rules: Sequence[str]
    bounce: Callable[[random.Random], None] | None = None
    replication: int = 1
    with_spark: frozenset[str] = frozenset()
    per_second: int = 2000
    padding: int = 0
    seed: int = 0
    extra: Mapping[str, str] = field(default_factory=dict)
    say: Callable[[str], None] = lambda _: None
    choose: Callable[[object], str | None] | None = None
    brokers: int = 0
    topic: str = field(default_factory=lambda: f"soak-{os.getpid()}-{time.time_ns() // 1_000_000}")

    def run(self) -> Result:
        topic = self.topic
        self._make(topic)
        with faulty_s3(self.info.store_url) as proxy:
            proxy.latency_s, proxy.hold_s = self.trouble.latency_s, 15.0
            members = [self._member(name, topic, proxy) for name in self.rules]
            try:
                self._go_through(members, topic, proxy)
            finally:
                for member in members:
                    member.end()
                proxy.choose, proxy.latency_s = nothing, (0.0, 0.0)
            self.say("writing what is left")
            for member in members:
                self._finish(member)
            produced = in_kafka(self.info.bootstrap_servers, topic)
            audits = {each.name: audit(self._store(each.name), each.name, produced, ids) for each in members}
            happened = proxy.happened.total()
        caused = sum(each.kills + each.stops for each in members) + self.brokers
        failed = [text for each in members for text in each.failed]
        return Result(audits, happened + caused, members, self.brokers, happened, failed)

    def _make(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.info.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic(topic, PARTITIONS, self.replication)])[topic].result(30)

    def _go_through(self, members: Sequence[Member], topic: str, proxy: FaultyS3) -> None:
        dice = random.Random(self.seed)
        for member in members:
            member.start()
        with Producing(self.info.bootstrap_servers, topic, self.per_second, self.padding):
            if self.choose is not None:
                proxy.choose = self.choose
            elif self.trouble.s3_rate:
                proxy.choose = at_random(self.trouble.s3_rate, self.seed)
            end = time.monotonic() + self.seconds
            due = {kind: time.monotonic() + _gap(dice, mean) for kind, mean in self._means().items()}
            while time.monotonic() < end:
                time.sleep(0.1)
                for member in members:
                    member.look_after()
                for kind in [kind for kind, at in due.items() if at <= time.monotonic()]:
                    self._happens(kind, dice.choice(members), dice)
                    due[kind] = time.monotonic() + _gap(dice, self._means()[kind])
            while any(member.zombies for member in members):  # each of them has to end by itself
                time.sleep(0.1)
                for member in members:
                    member.look_after()

    def _means(self) -> dict[str, float]:
        means = {"kill": self.trouble.kill_s, "stop": self.trouble.stop_s, "broker": self.trouble.broker_s}
        return {kind: seconds for kind, seconds in means.items() if seconds}

    def _happens(self, kind: str, member: Member, dice: random.Random) -> None:
        if kind == "broker":
            self.say("the broker")
            assert self.bounce is not None
            self.bounce(dice)
            self.brokers += 1
        elif kind == "kill":
            self.say(f"SIGKILL of {member.name}")
            member.kill()
        else:
            self.say(f"a second {member.name}")
            member.stop_and_replace(dice.uniform(*self.trouble.stopped_s))

    def _member(self, name: str, topic: str, proxy: FaultyS3) -> Member:
        bucket = f"{topic}-{name}"
        client = boto3.client(
            "s3",
            endpoint_url=self.info.store_url,
            region_name=self.info.region,
            aws_access_key_id=self.info.access_key_id,
            aws_secret_access_key=self.info.secret_access_key,
            config=Config(s3={"addressing_style": "path"}),
        )
        client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": self.info.region})
        client.close()

        def describe(start: int) -> dict[str, str]:
            given = self.info.as_json()
            return {
                "connector.class": "io.confluent.connect.s3.S3SinkConnector",
                "storage.class": "io.confluent.connect.s3.storage.S3Storage",
                "topics": topic,
                "format.class": "json",
                "value.converter": "json",
                "value.converter.schemas.enable": "false",
                "tasks.max": "1",
                "s3.bucket.name": bucket,
                "store.url": proxy.url,
                "cycle.interval.ms": "500",
                **{key: given[key] for key in ("s3.region", "aws.access.key.id", "aws.secret.access.key")},
                "flush.size": SIZES[start % len(SIZES)],
                **RULES[name],
                **self.extra,
            }

        folder = self.folder / name
        folder.mkdir(parents=True)
        return Member(bucket, describe, folder, self.info.bootstrap_servers, name in self.with_spark)

    def _store(self, bucket: str) -> object:
        options = StoreOptions(
            bucket,
            self.info.region,
            self.info.store_url,
            access_key_id=self.info.access_key_id,
            secret_access_key=self.info.secret_access_key,
        )
        return store(options)

    def _finish(self, member: Member) -> None:
        """A last start writes everything; it also is a restart of a connector with another flush.size."""
        properties = {**member.describe(member.starts), "name": member.name, "flush.on.stop": "true"}
        config, kafka = load(properties, {"bootstrap.servers": self.info.bootstrap_servers}, None)
        stop = threading.Event()
        with open_patiently(lambda: Running.open(config, kafka, InProcess(kafka)), stop) as running:
            keep_running(running, stop, until_done=True)
            member.failed += [fault.message for fault in running.engine.faults.values()]


def bounce_embedded(home: Path, dice: random.Random) -> None:
    """End the broker of an embedded stack, by SIGKILL or in order, and start it again."""
    (pid,) = [each.pid for each in dev_stack.status(home) if each.name == "kafka"]
    assert pid is not None
    os.kill(pid, signal.SIGKILL if dice.random() < 0.5 else signal.SIGTERM)
    while os.path.exists(f"/proc/{pid}"):  # noqa: PTH110 - not a file
        time.sleep(0.05)
    dev_stack.start(home, echo=lambda _: None)


def _gap(dice: random.Random, mean: float) -> float:
    return dice.uniform(0.5, 1.5) * mean


def last_line(result: Result) -> str:
    return (
        f"soak: {result.records} records, {result.faults} faults survived, {result.lost} lost, {result.doubled} doubled"
    )
