"""What the values of a connector's topics look like to Spark: found out once, then recorded in the state log.

The same plan must give the same files, so the type of JSON values cannot be looked up anew for each run.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import DataType, StructType, _parse_datatype_json_value

from penstock.errors import ConfigError
from penstock.sources.discovery import shown, together
from penstock.sources.options import KafkaOptions
from penstock.sources.types import Unmergeable, without_nulls
from penstock.transform.view import NOW, SPECIAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.config import SinkConfig
    from penstock.kafka.settings import KafkaSettings

SCHEMA = "transform.schema"
_SAMPLE = 1000


def found_type(config: SinkConfig, kafka: KafkaSettings, recorded: str) -> str:
    """The type as the JSON of a Spark type: what was recorded, and what is there by now; empty while nothing shows it.

    Raises:
        ConfigError: schemas contradict each other.
        UnavailableError: Kafka or the registry does not answer.
    """
    options = as_query(config, kafka)
    types = [without_nulls(each) for each in shown(options)]
    if recorded:
        types.insert(0, _arrow(config, recorded))
    return _merged(config, options, types) if any(each != pa.null() for each in types) else ""


def grown_type(config: SinkConfig, kafka: KafkaSettings, texts: Sequence[str]) -> str:
    """One type for values of several. Raises ConfigError."""
    return _merged(config, as_query(config, kafka), [_arrow(config, text) for text in texts])


def _arrow(config: SinkConfig, text: str) -> pa.DataType:
    return to_arrow_type(parsed(config, text), timezone="UTC")


def _merged(config: SinkConfig, options: KafkaOptions, types: list[pa.DataType]) -> str:
    try:
        return from_arrow_type(together(options, types)).json()
    except Unmergeable as error:
        where = config.places.get(config.transform.name, config.name)
        msg = f"{where}: {config.transform.name}: {error}; give the type of the values as {SCHEMA}"
        raise ConfigError([msg]) from error


def parsed(config: SinkConfig, text: str) -> DataType:
    """The type that a text says.

    Raises:
        ConfigError: it says none, or one with a field whose name the view has for itself.
    """
    where = config.places.get(SCHEMA, config.name)
    try:
        found: DataType = _parse_datatype_json_value(json.loads(text))
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        msg = f"{where}: {SCHEMA} must be the JSON of a Spark type (`schema.json()`): {error}"
        raise ConfigError([msg]) from error
    names = {each.name for each in found} if isinstance(found, StructType) else set()
    clash = sorted(names & {*SPECIAL, NOW})
    if clash:
        msg = (
            f"{where}: {config.transform.name}: the values have a field `{clash[0]}`, which is a name of the view's "
            f"own; give their type without it as {SCHEMA}"
        )
        raise ConfigError([msg])
    return found


def as_query(config: SinkConfig, kafka: KafkaSettings) -> KafkaOptions:
    """The connector as a query of `penstock.kafka`."""
    return KafkaOptions(
        kafka,
        config.topics or (),
        config.topics_regex,
        (),
        None,
        None,
        "error",
        fail_on_data_loss=False,
        headers=False,
        min_partitions=0,
        max_records=None,
        max_offsets=None,
        min_offsets=0,
        max_delay_ms=0,
        converter=config.value_converter,
        converter_options=config.converter_options,
        value_schema="",
        sample_records=_SAMPLE,
        tolerant=True,
    )
