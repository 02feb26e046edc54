"""`penstock consume`: records of a topic as lines."""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.kafka_edge import connection, kafka_failure, topic_partitions
from penstock.cli.options import command, dir_option, worker_option
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from confluent_kafka import Consumer, Message

    from penstock.cli.kafka_edge import Connection

_WAIT_SECONDS = 0.5


@command("consume", example="penstock consume s3_topic --value-format avro --limit 3")
@click.argument("topic")
@click.option(
    "--value-format",
    type=click.Choice(["avro", "json", "string", "bytes"]),
    default="string",
    show_default=True,
    help="How values are shown; bytes as base64.",
)
@click.option("--partition", type=click.IntRange(min=0), help="Only this partition.")
@click.option("--offset", type=click.IntRange(min=0), help="From this offset on; default: the log's start.")
@click.option("--limit", type=click.IntRange(min=1), help="End after that many records.")
@click.option("--follow", is_flag=True, help="Go on at the log's end, until Ctrl-C.")
@click.option("--print-key", is_flag=True, help="With the key in front.")
@click.option("--print-offset", is_flag=True, help="With partition and offset in front.")
@click.option("--print-timestamp", is_flag=True, help="With the record's time in ms in front.")
@click.option("--print-headers", is_flag=True, help="With the headers in front.")
@worker_option
@dir_option
def consume(  # noqa: PLR0913 - one parameter per option
    topic: str,
    value_format: str,
    partition: int | None,
    offset: int | None,
    limit: int | None,
    follow: bool,
    print_key: bool,
    print_offset: bool,
    print_timestamp: bool,
    print_headers: bool,
    worker: Path | None,
    directory: Path,
) -> None:
    """Print the committed records of TOPIC up to its end, one line each."""
    place = connection(worker, directory)
    show = _shower(place, topic, value_format)
    parts: list[Callable[[Message], str]] = []
    if print_timestamp:
        parts.append(lambda m: str(m.timestamp()[1]))
    if print_offset:
        parts.append(lambda m: f"{m.partition()}:{m.offset()}")
    if print_headers:
        parts.append(lambda m: ",".join(f"{_text(each[0])}={_text(each[1])}" for each in list(m.headers() or [])))
    if print_key:
        parts.append(lambda m: _text(m.key()))
    for count, message in enumerate(_messages(place, topic, partition, offset, follow=follow), start=1):
        shown = "null" if message.value() is None else show(message)
        sys.stdout.write("\t".join([*(part(message) for part in parts), shown]) + "\n")
        if count == limit:
            break
    sys.stdout.flush()


def _text(value: bytes | str | None) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def _shower(place: Connection, topic: str, value_format: str) -> Callable[[Message], str]:
    if value_format == "bytes":
        return lambda message: base64.b64encode(message.value() or b"").decode("ascii")
    if value_format != "avro":
        return lambda message: _text(message.value())
    from penstock.cli.registry_edge import avro_reader
    from penstock.formats.read import plain

    read = avro_reader(place, topic)

    def show(message: Message) -> str:
        try:
            value: Any = read(message.value() or b"")
        except (PenstockError, ValueError, EOFError, IndexError) as error:
            msg = f"{topic}-{message.partition()}@{message.offset()}: the value {error}; try --value-format bytes"
            raise PenstockError(msg) from error
        return json.dumps(plain(value), ensure_ascii=False)

    return show


def _messages(
    place: Connection, topic: str, partition: int | None, offset: int | None, *, follow: bool
) -> Iterator[Message]:
    from confluent_kafka import Consumer, KafkaException

    consumer = Consumer(
        {
            **place.kafka,
            "group.id": "penstock-consume",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    try:
        yield from _assigned(consumer, topic, partition, offset, follow=follow)
    except KafkaException as error:
        raise kafka_failure(error, place) from None
    finally:
        consumer.close()


def _assigned(
    consumer: Consumer, topic: str, partition: int | None, offset: int | None, *, follow: bool
) -> Iterator[Message]:
    from confluent_kafka import TopicPartition

    partitions = topic_partitions(consumer, topic)
    if partition is not None and partition in partitions:
        partitions = (partition,)
    elif partition is not None or not partitions:
        msg = f"there is no {topic}" + ("" if partition is None else f" partition {partition}") + "; check the name"
        raise PenstockError(msg)
    marks = {each: consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=15) for each in partitions}
    starts = {each: max(low, offset or 0) for each, (low, _) in marks.items()}
    ends = {each: high for each, (_, high) in marks.items()}
    consumer.assign([TopicPartition(topic, each, start) for each, start in starts.items()])
    while follow or _unread(consumer, topic, starts, ends):
        message = consumer.poll(_WAIT_SECONDS)
        if message is None or message.error() is not None:
            continue
        if follow or (message.offset() or 0) < ends[message.partition() or 0]:
            yield message


def _unread(consumer: Consumer, topic: str, starts: dict[int, int], ends: dict[int, int]) -> bool:
    """Whether a partition is not at the end it had when we began; transaction markers count as read."""
    from confluent_kafka import TopicPartition

    for each in consumer.position([TopicPartition(topic, partition) for partition in starts]):
        at = each.offset if each.offset >= 0 else starts[each.partition]
        if at < ends[each.partition]:
            return True
    return False
