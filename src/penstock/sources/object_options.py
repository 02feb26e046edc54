"""The options of `penstock`: which connector's objects, how to reach its store, as of when."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock import stores
from penstock.config.declare import Property
from penstock.config.kinds import LONG_MAX, Bool, Choice, Int, S3Url, Text
from penstock.config.load import load_sink
from penstock.config.properties import Value, of_mapping, read
from penstock.config.reading import Findings, read_value
from penstock.config.variables import resolve
from penstock.errors import ConfigError
from penstock.pipeline import state_url
from penstock.statelog.names import Names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.config import SinkConfig
    from penstock.store.options import StoreOptions

FORMAT = "penstock"
View = Literal["value", "keys", "headers", "errors"]

OPTIONS = (
    Property(
        name="path",
        kind=S3Url(),
        origin="Penstock",
        doc="The connector's state: `s3://BUCKET/_penstock/NAME`. What `load(...)` takes.",
    ),
    Property(
        name="connector",
        kind=Text(),
        origin="Penstock",
        doc="In its place, the connector's file on the driver, which also says how to reach the store.",
    ),
    Property(
        name="asOfEntry",
        kind=Int(1, LONG_MAX),
        origin="Penstock",
        doc="Read what was committed up to that entry of the state log; all there is without it.",
    ),
    Property(
        name="view",
        kind=Choice(("value", "keys", "headers", "errors")),
        default="value",
        origin="Penstock",
        doc="Read the objects of values, or those of keys, headers or refused records.",
    ),
    Property(
        name="details",
        kind=Bool(),
        default="false",
        origin="Penstock",
        doc="Whether there are columns for offsets, times and encoded partition of the object as well.",
    ),
)
_OWN = {each.name: each for each in OPTIONS}
_OF_STORE = ("s3.", "aws.", "store.", "state.")
_KEPT = ("name", "http.proxy", "https.proxy")
# What a connector must say and a reader need not know.
_FILLED = {
    "connector.class": "s3",
    "storage.class": "s3",
    "topics": "any",
    "format.class": "json",
    "value.converter": "json",
    "value.converter.schemas.enable": "false",
    "flush.size": "1",
}
_PLACE = f"{FORMAT}: "


@dataclass(frozen=True, slots=True)
class ObjectOptions:
    """What is read. `data`, `state`: the stores of objects and of the log; their reprs show no secret."""

    data: StoreOptions
    state: StoreOptions
    names: Names
    url: str
    as_of: int | None
    view: View
    details: bool


def parse(options: Mapping[str, str]) -> ObjectOptions:
    """Read the options; a connector's own properties about its store are options as well.

    Raises:
        ConfigError: with every mistake there is.
    """
    findings = Findings()
    names = {name.lower(): name for name in _OWN}
    given = {names.get(name.lower(), name): text for name, text in options.items()}
    own = {name: Value(text, FORMAT) for name, text in given.items() if name in _OWN}
    parsed = {name: read_value(declared, own, FORMAT, findings) for name, declared in _OWN.items()}
    if ("path" in own) == ("connector" in own) and ("path" in own or "name" not in given):
        findings.problem(None, f"{FORMAT}: give either a path, s3://BUCKET/_penstock/NAME, or a connector's file")
    for name in given:
        if name not in _OWN and not _is_of_store(name):
            near = difflib.get_close_matches(name, [*_OWN, *_KEPT], n=1, cutoff=0.6)
            advice = f"did you mean `{near[0]}`?" if near else "docs/spark.md lists all"
            findings.problem(name, f"{FORMAT}: unknown option `{name}`; {advice}")
    config = None
    try:
        if not findings.problems:
            config = _config(given, parsed["path"], parsed["connector"])
    except ConfigError as error:
        for problem in error.problems:
            findings.problem(None, problem)
    if config is None:
        raise ConfigError(findings.sentences(given))
    return of_sink(config, parsed["asOfEntry"], parsed["view"], details=parsed["details"])


def of_sink(
    config: SinkConfig, as_of: int | None = None, view: View = "value", *, details: bool = False
) -> ObjectOptions:
    """The objects of a connector."""
    state, url = stores.of_state(config), state_url(config)
    prefix = url.removeprefix(f"s3://{state.bucket}/")
    return ObjectOptions(stores.of_sink(config), state, Names(prefix), url, as_of, view, details)


def of_store(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a connector that are options here: those about its store."""
    return {name: text for name, text in properties.items() if _is_of_store(name)}


def _is_of_store(name: str) -> bool:
    return name.startswith(_OF_STORE) or name in _KEPT


def _config(given: Mapping[str, str], path: str | None, file: str | None) -> SinkConfig:
    """What a connector's file would make of it; only what it says of its store is looked at."""
    properties = of_store(given)
    place = FORMAT
    if file is not None:
        found = resolve(read(Path(file)), os.environ)
        place = found.file
        properties = of_store({name: value.text for name, value in found.items()}) | properties
    elif path is not None:
        prefix, _, name = path.removesuffix("/").rpartition("/")
        if prefix in ("s3:/", "s3://") or not name:
            msg = f"{FORMAT}: path must be s3://BUCKET/_penstock/NAME, got `{path}`"
            raise ConfigError([msg])
        bucket = prefix.removeprefix("s3://").partition("/")[0]
        properties = {"s3.bucket.name": bucket, **properties, "name": name, "state.url": prefix}
    return load_sink(resolve(of_mapping({**_FILLED, **properties}, place), os.environ), None)
