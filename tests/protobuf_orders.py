"""A Protobuf schema with a bit of everything, a message of it, and a little one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.message_factory import GetMessageClass

from penstock.converters.protobuf_files import protobuf_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MONEY = 'syntax = "proto3"; package shop; message Money { string currency = 1; int64 units = 2; }'
ORDER = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
import "common/money.proto";
message Order {
  map<string, int32> counts = 20;
  message Line { string sku = 1; uint32 n = 2; optional int32 discount = 3; }
  message Note { string text = 1; }
  string id = 1;
  repeated Line lines = 3;
  Line main = 4;
  oneof pay { string card = 5; Money cash = 6; }
  google.protobuf.Timestamp at = 8;
  google.protobuf.StringValue note = 9;
  google.type.Date day = 10;
  google.type.TimeOfDay time = 24;
  confluent.type.Decimal price = 11 [(confluent.field_meta) = {
    params: [{key: "scale", value: "2"}, {key: "precision", value: "9"}]}];
  map<int32, Line> by_number = 12;
  enum Kind { A = 0; B = 1; ALSO_B = 1; option allow_alias = true; }
  Kind kind = 13;
  bytes raw = 18;
  Order parent = 19;
  uint64 big = 21;
  int32 small = 22 [(confluent.field_meta) = {params: [{key: "connect.type", value: "int8"}]}];
  float f = 25;
}
message Other { int32 x = 1; }
"""
LITTLE = """syntax = "proto3"; package p;
message M { int32 a = 1; optional string b = 2; N n = 3; message N { sint32 c = 7; } }"""


def types(text: str, references: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """The classes of a schema's messages, by name."""
    compiled = protobuf_file(text, references or {})
    return lambda name: GetMessageClass(compiled.pool.FindMessageTypeByName(name))


def full() -> dict[str, Any]:
    """The fields of an order, each with a value of its own."""
    return {
        "counts": {"b": 1, "a": 2},
        "id": "i",
        "lines": [{"sku": "s", "n": 2**32 - 1}],
        "card": "c",
        "at": {"seconds": -1, "nanos": 7_000_001},
        "note": {"value": ""},
        "day": {"year": 1970, "month": 1, "day": 3},
        "time": {"hours": 1, "nanos": 999_999_999},
        "price": {"value": (-1234).to_bytes(2, "big", signed=True), "scale": 2, "precision": 9},
        "by_number": {3: {"sku": "q", "discount": 0}, -1: {}},
        "kind": 1,
        "raw": b"\x01\xff",
        "parent": {"id": "p"},
        "big": 2**64 - 1,
        "small": 200,
        "f": 0.1,
    }
