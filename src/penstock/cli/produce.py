"""`penstock produce`: lines from stdin into a topic."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.kafka_edge import connection, kafka_failure, topic_partitions
from penstock.cli.lines import BINARY, Binary, Format, LineRules, avro, json_text, string
from penstock.cli.options import command, dir_option, worker_option
from penstock.errors import PenstockError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from confluent_kafka import KafkaError, Message, Producer

    from penstock.cli.kafka_edge import Connection

FORMATS = ("avro", "json", "string", "bytes")


@dataclass(frozen=True, slots=True)
class Envelope:
    """What every record of one run gets besides its value."""

    topic: str
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


@dataclass(slots=True)
class Delivery:
    """What the broker has said so far. `failure`: the first line that it did not take, with its reason."""

    written: int = 0
    failure: tuple[int, str] | None = None
    waiting: int = field(default=0)

    def report(self, line: int, error: KafkaError | None, _message: Message) -> None:
        """Take librdkafka's delivery report of the record that came from `line`."""
        self.waiting -= 1
        if error is None:
            self.written += 1
        elif self.failure is None:
            self.failure = (line, error.str())


def _header(
    _context: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, bytes], ...]:
    headers = []
    for text in values:
        name, equals, value = text.partition("=")
        if not (name and equals):
            msg = f"must be NAME=VALUE, got `{text}`"
            raise click.BadParameter(msg)
        headers.append((name, value.encode()))
    return tuple(headers)


def _schema_text(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """The text itself, or with a leading @ that of a file."""
    if value is None or not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{value[1:]}: cannot be read: {getattr(error, 'strerror', None) or error}"
        raise click.BadParameter(msg, param=option) from None


@command(
    "produce",
    example="""echo '{"f1": "value1"}' | penstock produce s3_topic --value-format avro \\
    --value-schema '{"type":"record","name":"myrecord","fields":[{"name":"f1","type":"string"}]}'""",
)
@click.argument("topic")
@click.option("--value-format", type=click.Choice(FORMATS), default="string", show_default=True, help="What a line is.")
@click.option(
    "--value-schema", callback=_schema_text, metavar="TEXT|@FILE", help="Avro schema; default: TOPIC's latest."
)
@click.option("--key-format", type=click.Choice(FORMATS), default="string", show_default=True, help="What a key is.")
@click.option("--key-schema", callback=_schema_text, metavar="TEXT|@FILE", help="Avro schema of keys.")
@click.option("--key-separator", metavar="TEXT", help="Lines are KEY, this text, VALUE.")
@click.option("--key", metavar="TEXT", help="The same key for every record.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", callback=_header, help="Header; repeatable.")
@click.option("--partition", type=click.IntRange(min=0), help="Partition; default: by key.")
@click.option(
    "--timestamp", type=click.IntRange(min=0), metavar="MS", help="Record time, ms since 1970 UTC; default: now."
)
@click.option("--null-marker", metavar="TEXT", help="A key or value that is this text is null.")
@click.option("--hex", "binary", flag_value="hex", help="The format bytes is written in hexadecimal.")
@click.option("--base64", "binary", flag_value="base64", help="The format bytes is written in base64.")
@worker_option
@dir_option
def produce(  # noqa: PLR0913 - one parameter per option
    topic: str,
    value_format: Format,
    value_schema: str | None,
    key_format: Format,
    key_schema: str | None,
    key_separator: str | None,
    key: str | None,
    headers: tuple[tuple[str, bytes], ...],
    partition: int | None,
    timestamp: int | None,
    null_marker: str | None,
    binary: Binary | None,
    worker: Path | None,
    directory: Path,
) -> None:
    """Write lines from stdin to TOPIC, one record each, and wait until the broker has them all.

    Avro lines are JSON: plain, or with Avro's JSON encoding of unions. The schema is registered under TOPIC-value.
    """
    _check_usage(key, key_separator, {"value": (value_format, value_schema), "key": (key_format, key_schema)}, binary)
    rules = LineRules(_bytes(key_separator), _bytes(null_marker))
    place = connection(worker, directory)
    make = partial(_encoder, place, topic, binary=binary or "raw")
    encode_value = make(value_format, value_schema, "value")
    has_keys = key is not None or key_separator is not None
    encode_key = make(key_format, key_schema, "key") if has_keys else None
    constant = _constant_key(key, encode_key)
    envelope = Envelope(topic, constant, headers, partition, timestamp)
    blank_is_nothing = value_format in {"avro", "json"}
    lines = _lines(sys.stdin.buffer, keep_return=value_format == "bytes", skip_blank=blank_is_nothing)
    written = _produce(place, envelope, rules, encode_key, encode_value, lines)
    click.echo(f"{written} record{'' if written == 1 else 's'} written to {topic}", err=True)


def _check_usage(
    key: str | None, separator: str | None, schemas: dict[str, tuple[Format, str | None]], binary: Binary | None
) -> None:
    if key is not None and separator is not None:
        msg = "--key gives every record the same key, --key-separator reads it from the line: use one of them"
        raise UsageError(msg)
    if separator == "":
        msg = "--key-separator must not be empty"
        raise UsageError(msg)
    for part, (form, schema) in schemas.items():
        if schema is not None and form != "avro":
            msg = f"--{part}-schema belongs to --{part}-format avro, got --{part}-format `{form}`"
            raise UsageError(msg)
    if binary is not None and all(form != "bytes" for form, _ in schemas.values()):
        msg = f"--{binary} belongs to --value-format bytes or --key-format bytes"
        raise UsageError(msg)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _constant_key(key: str | None, encode: Callable[[bytes], bytes | None] | None) -> bytes | None:
    if key is None or encode is None:
        return None
    try:
        return encode(key.encode())
    except ValueError as error:
        msg = f"--key {error}"
        raise UsageError(msg) from None


def _encoder(
    place: Connection, topic: str, form: Format, schema: str | None, part: str, *, binary: Binary
) -> Callable[[bytes], bytes | None]:
    if form == "avro":
        from penstock.cli.registry_edge import avro_writer

        return avro(*avro_writer(place, topic, part, schema))
    return {"json": json_text, "string": string, "bytes": BINARY[binary]}[form]


def _lines(stream: Iterable[bytes], *, keep_return: bool, skip_blank: bool) -> Iterable[tuple[int, bytes]]:
    for number, line in enumerate(stream, start=1):
        text = line.removesuffix(b"\n")
        text = text if keep_return else text.removesuffix(b"\r")
        if text.strip() or not skip_blank:
            yield number, text


def _produce(
    place: Connection,
    envelope: Envelope,
    rules: LineRules,
    encode_key: Callable[[bytes], bytes | None] | None,
    encode_value: Callable[[bytes], bytes | None],
    lines: Iterable[tuple[int, bytes]],
) -> int:
    """How many records the broker has taken. Raises PenstockError at the first line that it or an encoder refuses."""
    from confluent_kafka import Producer

    producer = Producer(
        {**place.kafka, "enable.idempotence": True, "linger.ms": 20, "message.max.bytes": 1_000_000_000}
    )
    _check_partition(producer, place, envelope)
    delivery = Delivery()
    refused: tuple[int, str] | None = None
    for number, text in lines:
        try:
            key, value = _record(text, rules, encode_key, encode_value)
        except ValueError as error:
            refused = (number, str(error))
            break
        refused = _send(producer, envelope, delivery, number, key if envelope.key is None else envelope.key, value)
        if refused or delivery.failure:
            break
    while delivery.waiting:
        producer.poll(0.2)
    refused = delivery.failure or refused
    if refused:
        msg = f"line {refused[0]}: {refused[1]} ({delivery.written} records were written to {envelope.topic})"
        raise PenstockError(msg)
    return delivery.written


def _record(
    text: bytes,
    rules: LineRules,
    encode_key: Callable[[bytes], bytes | None] | None,
    encode_value: Callable[[bytes], bytes | None],
) -> tuple[bytes | None, bytes | None]:
    key, value = rules.split(text)
    return (
        None if key is None or encode_key is None else encode_key(key),
        None if value is None else encode_value(value),
    )


def _send(
    producer: Producer, envelope: Envelope, delivery: Delivery, line: int, key: bytes | None, value: bytes | None
) -> tuple[int, str] | None:
    """Hand a record to librdkafka, waiting while its queue is full. What it refuses at once, or None."""
    from confluent_kafka import KafkaException

    place: dict[str, Any] = {}
    if envelope.partition is not None:
        place["partition"] = envelope.partition
    if envelope.timestamp is not None:
        place["timestamp"] = envelope.timestamp
    while True:
        try:
            producer.produce(
                envelope.topic,
                value=value,
                key=key,
                headers=list(envelope.headers),
                on_delivery=partial(delivery.report, line),
                **place,
            )
        except BufferError:
            producer.poll(0.1)
        except KafkaException as error:
            return line, error.args[0].str()
        else:
            delivery.waiting += 1
            producer.poll(0)
            return None


def _check_partition(producer: Producer, place: Connection, envelope: Envelope) -> None:
    """Fail early and in words where the broker is away, or the topic is not there and may not be made."""
    from confluent_kafka import KafkaException

    try:
        partitions = topic_partitions(producer, envelope.topic, create=True)
    except KafkaException as error:
        raise kafka_failure(error, place) from None
    if envelope.partition is not None and partitions and envelope.partition not in partitions:
        msg = f"{envelope.topic} has partitions 0 to {max(partitions)}, got --partition `{envelope.partition}`"
        raise PenstockError(msg)
