"""Object keys: the only place that renders and parses them.

`<topics.dir>/<topic>/<encoded partition>/<topic>+<kafka partition>+<start offset><extension>` (seed 001, "S3 Object
Names"; reference s3-sink-connector 2.4). The start offset is that of the first record in this object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.model import TopicPartition

VARIABLE = re.compile(r"\{\{\s*([^{}:]*?)\s*(?::\s*([^{}]*?)\s*)?\}\}")
"""A variable of `path.template`: its name, and what stands behind its colon."""
PADDING = re.compile(r"padding=(true|false|[0-9]|1[0-9])")
"""What may stand behind the colon of `partition` and `start_offset`."""
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def escaped(text: str) -> str:
    """A text from records as it may stand in a key: it neither leaves its place nor breaks a listing.

    Segments `.` and `..`, control characters, and what XML or UTF-8 cannot hold are percent-encoded; all else stays.
    """
    if "." in text:
        text = "/".join("%2E" * len(part) if part in (".", "..") else part for part in text.split("/"))
    return _UNUSABLE.sub(_percent, text)


def _percent(match: re.Match[str]) -> str:
    code = ord(match[0])
    raw = bytes([code]) if code < 0x80 else match[0].encode("utf-8", "surrogatepass")  # noqa: PLR2004 - ASCII
    return "".join(f"%{byte:02X}" for byte in raw)


@dataclass(frozen=True, slots=True)
class Layout:
    """How keys are put together: `topics.dir`, the two delimiters, the width of the offset, the format's extension.

    `template`: `path.template`, which stands for everything but the extension; encoded partitions are then templates
    with only topic, partition and start offset left to fill in.
    """

    topics_dir: str = "topics"
    directory_delim: str = "/"
    file_delim: str = "+"
    pad_width: int = 10
    extension: str = ".bin"
    template: str = ""

    def prefix(self, topic: str) -> str:
        """What every key of a topic begins with; an empty `topics.dir` drops its segment and delimiter.

        With a template it may be empty, and other connectors may write there as well.
        """
        if self.template:
            text = VARIABLE.sub(lambda m: topic if m[1] == "topic" else m[0], self.template)
            return text.partition("{{")[0]
        root = f"{self.topics_dir}{self.directory_delim}" if self.topics_dir else ""
        return f"{root}{topic}{self.directory_delim}"

    def key(self, tp: TopicPartition, encoded_partition: str, start: int) -> str:
        """The key of the object of `encoded_partition` whose first record is at `start`."""
        if self.template:
            return filled(escaped(encoded_partition), tp, self.pad_width, start) + self.extension
        name = self.file_delim.join((tp.topic, str(tp.partition), f"{start:0{self.pad_width}d}"))
        return f"{self.prefix(tp.topic)}{escaped(encoded_partition)}{self.directory_delim}{name}{self.extension}"

    def parse(self, key: str) -> ParsedKey | None:
        """The parts of a key that `key` rendered, or None when it is none of this layout's.

        The encoded partition may hold delimiters itself, and so may the topic hold the file delimiter: the file name is
        read from its end and must agree with the directory.
        """
        directory, _, name = key.rpartition(self.directory_delim)
        if not name.endswith(self.extension):
            return None
        stem = name[: len(name) - len(self.extension)]
        parts = stem.rsplit(self.file_delim, 2)
        if len(parts) != 3 or not (parts[1].isdecimal() and parts[2].isdecimal()):  # noqa: PLR2004 - topic, partition, offset
            return None
        topic, partition, start = parts[0], int(parts[1]), int(parts[2])
        prefix = self.prefix(topic)
        if not f"{directory}{self.directory_delim}".startswith(prefix):
            return None
        parsed = ParsedKey(TopicPartition(topic, partition), directory[len(prefix) :], start)
        return parsed if self.key(parsed.tp, parsed.encoded_partition, start) == key else None


@dataclass(frozen=True, slots=True)
class ParsedKey:
    """What a key says: which object of which topic-partition."""

    tp: TopicPartition
    encoded_partition: str
    start: int


def filled(template: str, tp: TopicPartition, pad_width: int, start: int = 0) -> str:
    """A template with topic, partition and start offset filled in."""
    values = {"topic": tp.topic, "partition": str(tp.partition), "start_offset": str(start)}

    def value(match: re.Match[str]) -> str:
        padding = (match[2] or "").removeprefix("padding=")
        width = pad_width if padding == "true" else int(padding) if padding.isdigit() else 0
        return values[match[1]].zfill(width)

    return VARIABLE.sub(value, template)
