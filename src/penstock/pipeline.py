"""From a configuration to the parts: the one place where families, store and log are put together."""

from __future__ import annotations

import socket
import time
import uuid
from typing import TYPE_CHECKING

from penstock import parts, stores
from penstock.config.options import WITH_REGISTRY
from penstock.crashpoints import reach
from penstock.errors import ConfigError, StoreUnavailable
from penstock.kafka.deadletters import DeadLetterTopic
from penstock.kafka.reader import ReaderOptions
from penstock.newestindex import NewestIndexes
from penstock.rangewriter import Pipeline
from penstock.registry import Registry
from penstock.rejects import ErrorPolicy
from penstock.spool import Budget
from penstock.statelog.history import entries
from penstock.statelog.log import StateLog, Writer
from penstock.store.probe import refuses_overwrites
from penstock.store.s3 import store
from penstock.store.upload import Owner, Uploads, abort_leftovers

if TYPE_CHECKING:
    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings
    from penstock.model import Commit, TopicPartition
    from penstock.statelog import Head
    from penstock.store.s3 import S3Store
    from penstock.store.upload import ObjectWriter

_NEWEST_ENTRIES = 20  # among so many is the last commit, unless starts failed one after the other


def build(config: SinkConfig, kafka: KafkaSettings, seq: int, result: str = "") -> tuple[Pipeline, ReaderOptions]:
    """What a task needs to write ranges: the parts for `config`, and how to read.

    `seq`: the plan's entry. `result`: the Avro schema of a transformation's result, where the records are that.
    """
    owner = Owner(config.name, seq, "overwrite" if config.existing_objects == "overwrite" else "fail")
    budget = Budget(config.buffer_memory)
    tagging = stores.tagging(config)
    uploads = Uploads(
        store(stores.of_sink(config)),
        owner,
        config.part_size,
        tagging,
        memory=config.buffer_memory,
        budget=budget,
    )
    pipeline = Pipeline(
        parts.sieve(config, budget, result),
        parts.file_format(config, budget),
        parts.layout(config),
        parts.cut_rules(config),
        uploads.open,
        parts.schema_rules(config),
        _error_policy(config, kafka, uploads),
        **parts.looked_at(config),
        budget=budget,
    )
    return pipeline, ReaderOptions.of(kafka)


def check(config: SinkConfig) -> None:
    """Raise `ConfigError` where the parts do not fit together: what can be known before anything is asked."""
    try:
        parts.sieve(config)
    except ValueError as error:
        raise ConfigError([f"{config.name}: {error}"]) from error


def error_key(config: SinkConfig, tp: TopicPartition, offset: int) -> str:
    """The key of the error object whose first record is at `offset`."""
    name = f"{tp.topic}+{tp.partition}+{offset:0{config.pad_width}d}.jsonl"
    return f"{config.errors.directory}/{tp.topic}/{name}"


def open_store(config: SinkConfig) -> S3Store:
    """The sink's bucket, checked, with the leavings of an earlier process swept.

    Raises:
        StoreUnavailable: the bucket cannot be used, or does not keep two writers apart.
    """
    opened = store(stores.of_sink(config))
    opened.check()
    if config.fencing == "on" and not refuses_overwrites(opened, stores.state_names(config).probe(uuid.uuid4().hex)):
        msg = (
            f"{opened.options.place} overwrites objects although told not to (no conditional writes), so two instances "
            "could not be kept apart; use another store, or set fencing=off and never run two instances"
        )
        raise StoreUnavailable(msg, transient=False)
    return opened


def check_registry(config: SinkConfig) -> None:
    """Raise `RegistryUnavailable` where the converter needs a Schema Registry and it does not answer."""
    if config.value_converter in WITH_REGISTRY:
        Registry.of(config.converter_options, "value.converter").check()


def open_log(config: SinkConfig) -> StateLog:
    """The connector's state log, taken over."""
    log = _log(config)
    log.take_over()
    reach("takeover.appended")
    return log


def sweep(config: SinkConfig, opened: S3Store, topics: list[str]) -> int:
    """Abort the multipart uploads that an earlier process of this connector left; how many there were.

    Prefixes that do not name the topic (`path.template`) are not swept: other connectors may write there.
    """
    prefixes = {prefix for topic in topics if topic in (prefix := parts.layout(config).prefix(topic))}
    prefixes.add(stores.state_names(config).probe(""))
    return sum(abort_leftovers(opened, prefix) for prefix in sorted(prefixes))


def newest_indexes(config: SinkConfig, opened: S3Store, head: Head) -> NewestIndexes:
    """What names the newest indexes; the last commit's are written at once."""
    made = NewestIndexes(opened, config.block_gzip.last_index, config.pad_width)
    if config.block_gzip.last_index:
        last: tuple[Commit, ...] = ()
        names, after = stores.state_names(config), max(head.seq - _NEWEST_ENTRIES, 0)
        for entry in entries(store(stores.of_state(config)), names, after):
            last = entry.commits if any(commit.objects for commit in entry.commits) else last
        made.write(last)
    return made


def read_log(config: SinkConfig) -> StateLog:
    """The connector's state log as it is now; takes nothing over, so nothing may be appended."""
    log = _log(config)
    log.read()
    return log


def read_head(config: SinkConfig) -> Head:
    """What the state log says now; takes nothing over."""
    return read_log(config).head


def state_url(config: SinkConfig) -> str:
    """Where the state log is, for messages."""
    bucket = stores.of_state(config).bucket
    return f"s3://{bucket}/{stores.state_names(config).prefix}"


def _log(config: SinkConfig) -> StateLog:
    writer = Writer(uuid.uuid4().hex, socket.gethostname(), lambda: time.time_ns() // 1_000_000)
    return StateLog(
        config.name, store(stores.of_state(config)), stores.state_names(config), writer, config.checkpoint_entries
    )


def _error_policy(config: SinkConfig, kafka: KafkaSettings, uploads: Uploads) -> ErrorPolicy:
    errors = config.errors
    letters = DeadLetterTopic(kafka, config.name, errors.topic, errors.context_headers) if errors.topic else None

    def open_object(tp: TopicPartition, offset: int) -> tuple[str, ObjectWriter]:
        key = error_key(config, tp, offset)
        return key, uploads.open(key, offset)

    return ErrorPolicy(
        errors.tolerance == "all",
        open_object if errors.directory else None,
        letters,
        report_nulls=letters is not None and errors.report_nulls,
    )
