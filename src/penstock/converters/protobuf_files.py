"""Protobuf schemas as a Schema Registry keeps them: texts, or serialized descriptors in base64, made to descriptors."""

from __future__ import annotations

import base64
import binascii
import functools
import importlib.util
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from penstock.converters.connect_schema import SchemaMistake

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from google.protobuf.descriptor_pb2 import DescriptorProto

_SHOWN = 300
_META = """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
  repeated Rule rules = 4;
}
message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"""
_DECIMAL = """syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
"""
_BUILT_IN = {"confluent/meta.proto": _META, "confluent/type/decimal.proto": _DECIMAL}


@dataclass(frozen=True, slots=True)
class ProtobufFile:
    """A registered schema. `pool`: with all its imports. `requires`: whether a message can lack a required field."""

    pool: DescriptorPool
    file: Any
    requires: bool


def protobuf_file(text: str, imports: Mapping[str, str]) -> ProtobufFile:
    """A registered schema, compiled.

    `imports`: path -> schema of what the registry keeps as references. Google's and Confluent's own files are known.

    Raises:
        SchemaMistake: it does not compile.
    """
    files = _files(text, imports)
    pool = DescriptorPool()
    try:
        for each in files:
            pool.AddSerializedFile(each.SerializeToString())
        requires = any(_requires(file.message_type) for file in files if not file.name.startswith("google/protobuf/"))
        return ProtobufFile(pool, pool.FindFileByName(files[-1].name), requires)
    except (TypeError, KeyError) as error:
        msg = f"it cannot be used as a Protobuf schema ({error})"
        raise SchemaMistake(msg) from error


def _requires(messages: Iterable[DescriptorProto]) -> bool:
    return any(
        any(each.label == FieldDescriptor.LABEL_REQUIRED for each in message.field) or _requires(message.nested_type)
        for message in messages
    )


def _files(text: str, imports: Mapping[str, str]) -> tuple[FileDescriptorProto, ...]:
    """All files, each behind those that it imports; the registered one comes last."""
    main = _serialized(text)
    texts = {name: each for name, each in imports.items() if _serialized(each) is None}
    if main is None:
        return _compiled(text, texts)
    known = {name: made for name, each in imports.items() if (made := _serialized(each)) is not None}
    ordered: dict[str, FileDescriptorProto] = {}
    wanted: dict[str, None] = {}

    def visit(names: Any) -> None:  # noqa: ANN401 - a repeated field
        for name in names:
            if name not in known:
                wanted[name] = None
            elif name not in ordered:
                visit(known[name].dependency)
                ordered[name] = known[name]
                ordered[name].name = name

    visit(main.dependency)
    stub = 'syntax = "proto3";' + "".join(f'import "{name}";' for name in wanted)
    return (*(_compiled(stub, texts)[:-1] if wanted else ()), *ordered.values(), main)


def _serialized(text: str) -> FileDescriptorProto | None:
    """What a text of base64 holds; None where it is a schema's source."""
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text.strip(), validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None


def _compiled(text: str, imports: Mapping[str, str]) -> tuple[FileDescriptorProto, ...]:
    """What protoc makes of a source; the file of `text` comes last."""
    return _protoc(text, tuple(imports.items()))


@functools.lru_cache(maxsize=128)
def _protoc(text: str, sources: tuple[tuple[str, str], ...]) -> tuple[FileDescriptorProto, ...]:
    """Kept, because it starts a process: converters of values and keys, and jobs, ask for the same schemas."""
    imports = dict(sources)
    main = "schema.proto"
    while main in imports:
        main = f"_{main}"
    with tempfile.TemporaryDirectory(prefix="penstock-protobuf-") as name:
        place = Path(name)
        for path, source in {**_BUILT_IN, **imports, main: text}.items():
            if path.startswith("/") or ".." in Path(path).parts:
                msg = f"it refers to `{path}`, which is no path of an import"
                raise SchemaMistake(msg)
            target = place / "files" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source, encoding="utf-8")
        made = place / "made"
        _run_protoc(place / "files", made, main)
        return tuple(FileDescriptorSet.FromString(made.read_bytes()).file)


def _run_protoc(files: Path, made: Path, main: str) -> None:
    common = importlib.util.find_spec("google.type.date_pb2")
    places = [Path(), *([Path(common.origin).parents[2]] if common is not None and common.origin else [])]
    options = [*(f"-I{place}" for place in places), "--include_imports", f"--descriptor_set_out={made}"]
    done = subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", *options, main],
        capture_output=True,
        text=True,
        check=False,
        cwd=files,
    )
    if done.returncode:
        said = " ".join(line for line in done.stderr.split("\n") if "warning:" not in line).strip()
        msg = f"it is no Protobuf schema that protoc compiles ({said[:_SHOWN]})"
        raise SchemaMistake(msg)
