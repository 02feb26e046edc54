"""ISO-8601 texts; the answers were compared with joda-time's own parser."""

import pytest

from penstock.extractors.iso import parse_text
from penstock.partitioners.zones import Zone

BERLIN = Zone.parse("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2836", 2836),
        ("-5", -5),
        ("2884-12-22T02:59:59.316z", 28873853999316),
        ("1563-10T08,955z", -12820086162000),
        ("1395-W13-3T19z", -18137970000000),
        ("0691-04T02:57.97z", -40353541321800),
        ("1211T03z", -23951710800000),
        ("T11:06.35z", 39981000),
        ("T02:35:35.164z", 9335164),
        ("2024-05-31T16:08:37.171Z", 1717171717171),
        ("2024-05-31T18:08:37.171+0200", 1717171717171),
        ("2024-05-31", 1717106400000),
        ("2024-152", 1717106400000),
        ("2024-W22-5", 1717106400000),
        ("", None),
        ("T", None),
        ("TZ", None),
        ("T+02:00", None),
        ("2024-05-31T24:00", None),
        ("2023-02-29", None),
        ("2024-W54", None),
        ("2024-05-31 16:08", None),
        ("2024-05-31T16:08+2", None),
        ("99999999999999999999", None),
    ],
)
def test_texts(text, expected):
    assert parse_text(text, BERLIN) == expected
