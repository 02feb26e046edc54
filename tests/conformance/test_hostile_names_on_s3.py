"""Records whose fields try to name objects elsewhere, through a real broker and S3 server."""

import pytest

from connecting import Rec

pytestmark = pytest.mark.stack

HOSTILE = [
    "../../../evil",
    "..",
    ".",
    "/etc",
    "a//b",
    "a\nb",
    "nul\x00",
    "\x7f\x9f",
    "\ufffe",
    "x" * 500,
    "%2E%2E",
    "",
    "é",
]


def test_every_record_is_under_its_topic_whatever_its_field_says(connect, s3, bucket):
    records = [Rec({"n": n, "f": value}) for n, value in enumerate(HOSTILE)]
    properties = {"partitioner.class": "FieldPartitioner", "partition.field.name": "f", "topics.dir": "deep/down"}
    outcome = connect(records, {**properties, "flush.size": str(len(HOSTILE))})
    assert outcome.faults == []
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    data = [key for key in keys if not key.startswith(f"_penstock/{bucket}/")]
    assert len(data) == len(HOSTILE) - 1  # `..` and `%2E%2E` share an object
    assert all(key.startswith("deep/down/topic-") and "/f=" in key for key in data)
    assert not any({".", ".."} & set(key.split("/")) for key in data)
    found = {row["n"]: row["f"] for rows in outcome.objects.values() for row in rows}
    assert found == dict(enumerate(HOSTILE))
