"""docs/configuration.md, made from the declarations: `python -m penstock.config.reference > docs/configuration.md`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock.config.classes import CONVERTERS as CONVERTER_CLASSES
from penstock.config.classes import CREDENTIALS, FORMATS, PARTITIONERS
from penstock.config.declare import declarations, text_of
from penstock.config.options import OPTIONS, PREFIX, WITH_REGISTRY
from penstock.config.sink import SinkConfig
from penstock.kafka.properties import HARMLESS, PLAIN_PROPERTIES, REFUSED, SECURITY_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.config.declare import Property

_HEAD = """# Configuration

Generated from the declarations in `src/penstock/config/` by `python -m penstock.config.reference`; do not edit.

A connector's file is Java `.properties` text or Connect's JSON. `${env:NAME}` and `${file:PATH:KEY}` are replaced.
Names of formats, converters and partitioners are Confluent's Java class names, or the short names given here. A worker
file has `bootstrap.servers` and no `connector.class`; its value converter is used where a connector names none, and so
are its `spark.*` properties. An unknown name is an error. What Kafka Connect knows and Penstock has no use for is
accepted; [compatibility.md](compatibility.md) lists it.

Properties marked with * shape files: the state log records them, and a plan that a crash left open is finished with
the values that it was made with.
"""
_NOT_YET = """Accepted with the values that change nothing, refused with any other until they are supported.
Where the last column names another property ("With ..."), this one has no effect without it, as in the connector, and
a warning says so.
"""


def render() -> str:
    """The whole page."""
    every = tuple(declarations(SinkConfig).values())
    parts = [
        _HEAD,
        "## Properties of the connector\n",
        *_table(each for each in every if each.origin != "Penstock"),
        "## Penstock's own\n",
        *_table(each for each in every if each.origin == "Penstock"),
        "What begins with `partitioner.option.` is for a partitioner of your own ([layouts.md](layouts.md)).\n",
        "`transform.tables.NAME`* is a path, or a table of Spark's catalog, to join with ([spark.md](spark.md)).\n",
        "## Options of the value converter\n",
        "Behind `value.converter.`, and behind `key.converter.` where keys are stored. Those of the registry are for "
        + _names(WITH_REGISTRY)
        + ".\n",
        *(line for kind, options in OPTIONS.items() for line in (f"### `{kind}`\n", *_table(options, PREFIX))),
        "## Names of classes\n",
        *_classes({**FORMATS, **CONVERTER_CLASSES, **PARTITIONERS, **CREDENTIALS}),
        "## Spark\n",
        "`spark.*` is passed to Spark as it is; `spark.master` for a cluster.\n",
        "## Kafka's client\n",
        "In the worker file as they are or behind `consumer.`, in the connector's file behind `consumer.override.`.\n",
        "Honoured: " + _names([*(each.name for each in PLAIN_PROPERTIES), *SECURITY_PROPERTIES]) + "\n",
        "Accepted without effect: " + _names(HARMLESS) + "\n",
        "Refused, because they could not be honoured: " + _names(REFUSED) + "\n",
    ]
    return "\n".join(parts).rstrip() + "\n"


def _table(properties: Iterable[Property], prefix: str = "") -> list[str]:
    lines = ["| property | type | default | valid | |", "|---|---|---|---|---|"]
    for each in properties:
        default = "required" if each.required else f"`{each.default}`" if each.default else ""
        name = f"`{prefix}{each.name}`" + ("*" if each.shapes else "")
        also = "".join(f" Also spelt `{prefix}{alias}`." for alias in each.aliases)
        cells = (name, each.kind.label, default, _valid(each), f"{each.doc}{_with(each)}{also}")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, ""]


def _valid(each: Property) -> str:
    if each.supported is None:
        return each.kind.rule
    return f"{each.supported_words} so far" if each.supported_words else "none so far"


def _with(each: Property) -> str:
    if each.only_with is None:
        return ""
    other, values = each.only_with
    return f" With {other}=" + " or ".join(f"`{text_of(value)}`" for value in values) + "."


def _classes(names: Mapping[str, str]) -> list[str]:
    rows = [f"| `{short}` | `{name}` |" for name, short in names.items() if name != short]
    return ["| short name | Java class |", "|---|---|", *rows, ""]


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(set(names))) + "."


if __name__ == "__main__":
    sys.stdout.write(render())
