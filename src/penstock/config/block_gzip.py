"""Properties of block-GZIP files, with the names of the connectors that had them first (reference peers A.6, A.8)."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from penstock.config.declare import prop
from penstock.config.kinds import Bool, Choice, Int, Matching, Separator, Text

_prop = functools.partial(prop, shapes=True, origin="Penstock", only_with=("format.class", ("block_gzip",)))
_UTF_8 = Matching(r"(?i)utf-?8", "UTF-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockGzipConfig:
    """Members, records, and the object that names the newest index."""

    block_size: int = _prop(
        "compressed_block_size",
        Int(1),
        default="67108864",
        doc="Uncompressed bytes of a gzip member: it ends before the record that would take it beyond.",
    )
    records: str = _prop(
        "format",
        Choice(("text", "binary")),
        default="text",
        doc="Records behind delimiters, or behind their length in four big-endian bytes.",
    )
    value_delimiter: str = _prop(
        "format.value.delimiter",
        Separator(),
        default="\\n",
        doc="What stands behind each value of text records.",
    )
    value_encoding: str = prop(
        "format.value.encoding", _UTF_8, default="UTF-8", origin="Penstock", doc="Character set of that delimiter."
    )
    delimiter_once: bool = _prop(
        "format.value.delimiter.once",
        Bool(),
        default="false",
        doc="Whether a value that ends with the delimiter gets none.",
    )
    key_delimiter: str = _prop(
        "format.key.delimiter",
        Separator(),
        default="",
        doc="What stands between key and value of text records; without it keys are not written.",
    )
    key_encoding: str = prop(
        "format.key.encoding", _UTF_8, default="UTF-8", origin="Penstock", doc="Character set of that delimiter."
    )
    include_keys: bool = _prop(
        "format.include.keys",
        Bool(),
        default="false",
        doc="Whether binary records have keys.",
    )
    last_index: str = _prop(
        "last.chunk.index.path",
        Text(blank=True),
        default="",
        doc="An object for each topic-partition that always holds the key of its newest index, for readers that expect "
        "it, e.g. `last_chunk_index.{{topic}}-{{partition:padding=5}}.txt`.",
    )

    @property
    def has_keys(self) -> bool:
        """Whether keys are written."""
        return self.include_keys if self.records == "binary" else bool(self.key_delimiter)
