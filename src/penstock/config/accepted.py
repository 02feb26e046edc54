"""Properties of Kafka Connect that are accepted and do nothing here, each with the reason.

They may stand in connector and worker files, so that existing ones run unchanged. A name that ends in `*` stands for
every name with that beginning. docs/compatibility.md lists all of them (a test compares).
"""

from __future__ import annotations

from types import MappingProxyType

_CLUSTER = "Penstock has no Connect cluster"
_REST = "settings of Connect's REST server"
_PLUGINS = "there are no Java plugins"
_OFFSETS = "positions live in the state log in S3"
_METRICS = "metrics of a JVM"
_BUFFERS = "buffers always grow with their content"
_RETRIES = "an outage is waited for as long as it lasts, with pauses that double from 1 s to 30 s"
_CLIENTS = "applies to clients that Connect makes for itself; here only the consumer's settings count"
_TOPICS = "properties of source connectors"
_HIVE = "the S3 connector never used it"
_CACHE = "schemas are cached without a limit that matters"
_READS = "a sink reads schemas and never registers one"
_LICENSE = "there is no licence to check"

ACCEPTED = MappingProxyType(
    {
        "access.control.*": _REST,
        "admin.*": _CLIENTS,
        "config.action.reload": "variables are read at start",
        "config.providers": "`${env:NAME}` and `${file:PATH:KEY}` always work",
        "config.providers.*": "`${env:NAME}` and `${file:PATH:KEY}` always work",
        "config.storage.*": _CLUSTER,
        "confluent.*": _LICENSE,
        "connect.protocol": _CLUSTER,
        "connections.max.idle.ms": _CLIENTS,
        "connector.client.config.override.policy": "`consumer.override.*` is always allowed",
        "connector.plugin.version": _PLUGINS,
        "default.api.timeout.ms": _CLIENTS,
        "enable.conditional.writes": "every object is written with a condition, whatever is said here",
        "errors.retry.delay.max.ms": _RETRIES,
        "errors.retry.timeout": _RETRIES,
        "exactly.once.source.support": _TOPICS,
        "exactly.once.support": _TOPICS,
        "group.id": _CLUSTER + "; the consumer group that shows positions is connect-NAME",
        "header.converter": "headers are stored as texts",
        "header.converter.*": "options of the header converter",
        "heartbeat.interval.ms": _CLUSTER,
        "hive.*": _HIVE,
        "inter.worker.*": _CLUSTER,
        "internal.*": "Connect's own storage format",
        "listeners": _REST,
        "listeners.*": _REST,
        "max.files.scan.limit": "the state log knows which objects exist; nothing is searched for",
        "max.write.duration.ms": "there is no consumer group to be thrown out of",
        "metadata.max.age.ms": _CLIENTS,
        "metadata.recovery.*": _CLIENTS,
        "metric.reporters": _METRICS,
        "metrics.*": _METRICS,
        "offset.*": _OFFSETS,
        "offsets.storage.topic": _TOPICS,
        "plugin.discovery": _PLUGINS,
        "plugin.path": _PLUGINS,
        "predicates.*": "only read where `predicates` names them, and that is refused",
        "producer.*": "only dead letters are produced, over the connection of the consumer",
        "rebalance.timeout.ms": _CLUSTER,
        "receive.buffer.bytes": _CLIENTS,
        "reconnect.backoff.*": _CLIENTS,
        "response.http.headers.config": _REST,
        "rest.*": _REST,
        "retry.backoff.ms": _RETRIES,
        "retry.backoff.max.ms": _RETRIES,
        "s3.elastic.buffer.enable": _BUFFERS,
        "s3.elastic.buffer.init.capacity": _BUFFERS,
        "scheduled.rebalance.max.delay.ms": _CLUSTER,
        "schema.cache.size": _CACHE,
        "schema.generator.class": "was only used for Hive",
        "schemas.cache.config": _CACHE,
        "schemas.cache.size": _CACHE,
        "security.providers": "there is no JVM that talks to Kafka",
        "send.buffer.bytes": _CLIENTS,
        "session.timeout.ms": _CLUSTER,
        "shutdown.timeout.ms": "the connector does not use it either",
        "socket.connection.setup.timeout.*": _CLIENTS,
        "status.storage.*": _CLUSTER,
        "task.shutdown.graceful.timeout.ms": "a stop waits for the cycle; a second signal ends it at once",
        "tasks.max.enforce": "the number of tasks never exceeds tasks.max",
        "topic.creation.*": _TOPICS,
        "topic.tracking.*": _CLUSTER,
        "transforms.*": "only read where `transforms` names them, and that is refused",
        "worker.*": _CLUSTER,
    }
)

CONVERTER_OPTIONS = MappingProxyType(
    {
        "auto.register.schemas": _READS,
        "connect.meta.data": "the sink's own connect.meta.data counts",
        "converter.type": "known from the property's name",
        "decimal.format": "used by sources only",
        "enhanced.avro.schema.support": "the sink's own enhanced.avro.schema.support counts",
        "id.compatibility.strict": _READS,
        "json.default.property.inclusion": _READS,
        "json.indent.output": _READS,
        "json.oneof.for.nullables": _READS,
        "json.schema.spec.version": _READS,
        "json.write.dates.iso8601": _READS,
        "key.subject.name.strategy": _READS,
        "plugin.version": _PLUGINS,
        "latest.compatibility.strict": _READS,
        "max.schemas.per.subject": _CACHE,
        "normalize.schemas": _READS,
        "object.additional.properties": _READS,
        "reference.lookup.only": _READS,
        "reference.subject.name.strategy": _READS,
        "replace.null.with.default": "values without schemas have no defaults",
        "schemas.cache.config": _CACHE,
        "schemas.cache.size": _CACHE,
        "skip.known.types": _READS,
        "value.subject.name.strategy": _READS,
    }
)


def is_accepted(name: str) -> bool:
    """Whether a property is one of Kafka Connect's that do nothing here."""
    return name in ACCEPTED or any(
        pattern.endswith("*") and name.startswith(pattern[:-1]) and len(name) >= len(pattern) for pattern in ACCEPTED
    )
