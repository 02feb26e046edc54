"""The worker's REST API: the paths and shapes of Kafka Connect's, on loopback. Secrets are masked in every answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from flask import Flask, jsonify, request

from penstock.config.declare import declarations
from penstock.config.secret import HIDDEN, without_logins
from penstock.config.sink import SinkConfig
from penstock.errors import ConfigError, PenstockError
from penstock.worker.host import BusyError, UnknownConnectorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flask import Response

    from penstock.worker.host import Host, Hosted

_DECLARED = frozenset(each.name for each in declarations(SinkConfig).values() if each.secret)
_SECRET = re.compile(
    r"password|secret|user\.info|jaas|token|ssl\.keystore\.key|customer\.key|license|^spark\..*access\.?key",
    re.IGNORECASE,
)
_VARIABLES = re.compile(r"(\$\{[^}]*\})+")
_STATUS = ((UnknownConnectorError, 404), (ConfigError, 400), (BusyError, 409))


def make_app(host: Host, version: str) -> Flask:
    """The application."""
    app = Flask("penstock.worker")
    app.config["TRUSTED_HOSTS"] = ["127.0.0.1", "localhost"]  # no web page may reach it under a name of its own
    app.json.sort_keys = False  # type: ignore[attr-defined] # of Flask's own provider

    @app.errorhandler(PenstockError)
    def failed(error: PenstockError) -> tuple[Response, int]:
        code = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
        return jsonify(error_code=code, message=str(error)), code

    @app.get("/")
    def root() -> dict[str, str]:
        return {"version": version, "commit": "penstock", "kafka_cluster_id": ""}

    @app.get("/connectors")
    def names() -> Response:
        return jsonify(host.names())

    @app.post("/connectors")
    def load() -> tuple[dict[str, Any], int]:
        body = request.get_json()
        return _described(host.load(str(body["name"]), _texts(body["config"]))), 201

    _add_connector(app, host)
    return app


def _add_connector(app: Flask, host: Host) -> None:
    """The paths of one connector."""

    @app.get("/connectors/<name>")
    def described(name: str) -> dict[str, Any]:
        return _described(host.get(name))

    @app.delete("/connectors/<name>")
    def unload(name: str) -> tuple[str, int]:
        host.unload(name)
        return "", 204

    @app.get("/connectors/<name>/status")
    def status(name: str) -> dict[str, Any]:
        hosted = host.get(name)
        connector = {"state": hosted.state, "worker_id": "local"}
        if hosted.error is not None:
            connector["trace"] = hosted.error
        return {"name": name, "connector": connector, "tasks": [], "type": "sink"}

    @app.post("/connectors/<name>/flush")
    def flush(name: str) -> dict[str, Any]:
        done = host.flush(name)
        return {"name": name, "records": done.records, "objects": done.objects, "bytes": done.bytes}

    @app.get("/connectors/<name>/positions")
    def positions(name: str) -> dict[str, Any]:
        return _positions(host.get(name))


def _described(hosted: Hosted) -> dict[str, Any]:
    return {"name": hosted.saved.name, "config": masked(hosted.saved.config), "tasks": []}


def masked(config: Mapping[str, str]) -> dict[str, str]:
    """A configuration that may be shown."""
    return {
        name: HIDDEN if _is_secret(name) and not _VARIABLES.fullmatch(text) else without_logins(text)
        for name, text in config.items()
    }


def _is_secret(name: str) -> bool:
    return name in _DECLARED or _SECRET.search(name) is not None


def _texts(config: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value).lower() if isinstance(value, bool) else str(value) for name, value in config.items()}


def _positions(hosted: Hosted) -> dict[str, Any]:
    found = hosted.sink.status()
    rows = [
        {
            "topic": each.tp.topic,
            "partition": each.tp.partition,
            "position": each.position,
            "log_end": each.log_end,
            "lag": each.lag,
            "last_object": each.last_object,
            "last_error": each.last_error,
        }
        for each in found.partitions
    ]
    return {"name": hosted.saved.name, "state": hosted.state, "error": hosted.error, "partitions": rows}
