"""A Schema Registry for development: Confluent's REST paths, answers and error codes over `RegistryStore`.

Run it with `python -m penstock.dev.registry_server --port PORT --data FILE`; it listens on loopback only.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import click
import waitress
from flask import Blueprint, Flask, Response, current_app, jsonify, request
from werkzeug.exceptions import HTTPException

from penstock.dev.registry_store import SCHEMA_TYPES, RegistryError, RegistryStore, Schema, Version

_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_STORE = "penstock.store"

routes = Blueprint("registry", __name__)


def application(store: RegistryStore) -> Flask:
    """The registry as a WSGI application."""
    app = Flask("penstock-registry")
    app.config[_STORE] = store
    app.register_blueprint(routes)
    return app


@routes.errorhandler(RegistryError)
def _refusal(error: RegistryError) -> tuple[Response, int]:
    return jsonify(error_code=error.code, message=str(error)), error.status


@routes.app_errorhandler(HTTPException)
def _http_error(error: HTTPException) -> tuple[Response, int]:
    status = error.code or 500
    return jsonify(error_code=status, message=f"HTTP {status} {error.name}"), status


@routes.after_app_request
def _content_type(response: Response) -> Response:
    response.content_type = _CONTENT_TYPE
    return response


@routes.get("/")
def _root() -> Response:
    return jsonify({})


@routes.get("/subjects")
def _subjects() -> Response:
    return jsonify(_store().subjects(deleted=_flag("deleted")))


@routes.post("/subjects/<path:subject>")
def _lookup(subject: str) -> Response:
    return jsonify(_version_json(_store().find(subject, _schema(), deleted=_flag("deleted"))))


@routes.delete("/subjects/<path:subject>")
def _delete_subject(subject: str) -> Response:
    return jsonify(_store().delete(subject, None, permanent=_flag("permanent")))


@routes.get("/subjects/<path:subject>/versions")
def _versions(subject: str) -> Response:
    return jsonify(_store().numbers(subject, deleted=_flag("deleted")))


@routes.post("/subjects/<path:subject>/versions")
def _register(subject: str) -> Response:
    return jsonify(_version_json(_store().register(subject, _schema())))


@routes.get("/subjects/<path:subject>/versions/<which>")
def _version(subject: str, which: str) -> Response:
    return jsonify(_version_json(_store().version(subject, which, deleted=_flag("deleted"))))


@routes.get("/subjects/<path:subject>/versions/<which>/schema")
def _version_text(subject: str, which: str) -> Response:
    return Response(_store().version(subject, which, deleted=_flag("deleted")).schema.text)


@routes.delete("/subjects/<path:subject>/versions/<which>")
def _delete_version(subject: str, which: str) -> Response:
    return jsonify(_store().delete(subject, which, permanent=_flag("permanent"))[0])


@routes.get("/schemas/types")
def _types() -> Response:
    return jsonify(SCHEMA_TYPES)


@routes.get("/schemas/ids/<int:schema_id>")
def _schema_by_id(schema_id: int) -> Response:
    return jsonify(_schema_json(_store().schema(schema_id)))


@routes.get("/schemas/ids/<int:schema_id>/schema")
def _schema_text(schema_id: int) -> Response:
    return Response(_store().schema(schema_id).text)


@routes.get("/schemas/ids/<int:schema_id>/versions")
def _uses(schema_id: int) -> Response:
    return jsonify([{"subject": subject, "version": number} for subject, number in _store().uses(schema_id)])


@routes.get("/schemas/ids/<int:schema_id>/subjects")
def _using_subjects(schema_id: int) -> Response:
    return jsonify(list(dict.fromkeys(subject for subject, _ in _store().uses(schema_id))))


@routes.get("/config")
@routes.get("/config/<path:subject>")
def _config(subject: str | None = None) -> Response:
    return jsonify(compatibilityLevel=_store().level(subject, or_global=_flag("defaultToGlobal")))


@routes.put("/config")
@routes.put("/config/<path:subject>")
def _set_config(subject: str | None = None) -> Response:
    level = _body().get("compatibility")
    _store().set_level(subject, str(level).upper())
    return jsonify(compatibility=str(level).upper())


@routes.delete("/config")
@routes.delete("/config/<path:subject>")
def _delete_config(subject: str | None = None) -> Response:
    before = _store().level(subject, or_global=False)
    _store().set_level(subject, None)
    return jsonify(before)


@routes.get("/mode")
@routes.get("/mode/<path:subject>")
def _mode(subject: str | None = None) -> Response:
    del subject  # Every subject can be read and written here.
    return jsonify(mode="READWRITE")


@routes.post("/compatibility/subjects/<path:subject>/versions")
def _compatible_with_all(subject: str) -> Response:
    store = _store()
    return _verdict(subject, [store.version(subject, str(number)) for number in store.numbers(subject)])


@routes.post("/compatibility/subjects/<path:subject>/versions/<which>")
def _compatible(subject: str, which: str) -> Response:
    return _verdict(subject, [_store().version(subject, which)])


def _verdict(subject: str, earlier: list[Version]) -> Response:
    problems = _store().problems(subject, _schema(), earlier)
    messages = {"messages": problems} if _flag("verbose") else {}
    return jsonify(is_compatible=not problems, **messages)


def _store() -> RegistryStore:
    store: RegistryStore = current_app.config[_STORE]
    return store


def _flag(name: str) -> bool:
    return request.args.get(name, "").lower() == "true"


def _body() -> dict[str, Any]:
    body = request.get_json(force=True, silent=True)
    if not isinstance(body, dict):
        raise RegistryError(400, 400, "the body must be a JSON object")
    return body


def _schema() -> Schema:
    body = _body()
    text, references = body.get("schema"), body.get("references") or []
    if not isinstance(text, str) or not text.strip():
        raise RegistryError(422, 42201, "Empty schema")
    if not all(isinstance(each, dict) and {"name", "subject", "version"} <= each.keys() for each in references):
        raise RegistryError(422, 42201, "each reference needs a name, a subject and a version")
    return Schema(text, str(body.get("schemaType") or "AVRO").upper(), tuple(references))


def _schema_json(schema: Schema) -> dict[str, Any]:
    shown: dict[str, Any] = {"schema": schema.text}
    if schema.kind != "AVRO":
        shown["schemaType"] = schema.kind
    if schema.references:
        shown["references"] = list(schema.references)
    return shown


def _version_json(version: Version) -> dict[str, Any]:
    identity = {"subject": version.subject, "id": version.schema_id, "version": version.number}
    return {**identity, **_schema_json(version.schema)}


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), required=True, help="Loopback port to listen on.")
@click.option("--data", type=click.Path(path_type=Path, dir_okay=False), required=True, help="File that keeps all.")
def main(port: int, data: Path) -> None:
    """Serve a Schema Registry for development.

    Example: python -m penstock.dev.registry_server --port 8081 --data schemas.jsonl
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    waitress.serve(application(RegistryStore(data)), host="127.0.0.1", port=port, threads=4)


if __name__ == "__main__":
    main()
