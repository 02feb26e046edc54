import io

import javaproperties
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.properties import parse

# Lone surrogates have no text form in a file; the empty name is refused.
CHARACTERS = st.characters(exclude_categories=["Cs"])
NAMES = st.text(CHARACTERS, min_size=1)
TEXTS = st.text(CHARACTERS)


@given(st.dictionaries(NAMES, TEXTS), st.sampled_from(["=", ":", " ", " = "]), st.booleans())
def test_what_javaproperties_writes_is_read_back_in_order(entries, separator, ascii_only):
    written = "".join(
        javaproperties.join_key_value(name, text, separator=separator, ensure_ascii=ascii_only) + "\n"
        for name, text in entries.items()
    )
    read = parse(written, "f")
    assert {name: value.text for name, value in read.items()} == entries
    assert [value.where for value in read.values()] == [f"f:{line + 1}" for line in range(len(entries))]


PIECES = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "=",
            ":",
            " ",
            "\t",
            "\f",
            "\\",
            "\n",
            "\r",
            "\r\n",
            "#",
            "!",
            "\\\n  ",
            "\\u0041",
            "\\t",
            "é",
            "x=y\n",
        ]
    )
)


@given(PIECES.map(lambda pieces: "k=v\n" + "".join(pieces) + "\nlast=1"))
def test_any_text_means_what_it_means_to_javaproperties(text):
    expected = javaproperties.load(io.StringIO(text, newline=""))
    if "" in expected:
        return
    read = parse(text, "f")
    assert {name: value.text for name, value in read.items()} == expected
    for value in read.values():
        start = int(value.where.rpartition(":")[2])
        assert 1 <= start <= len(text.splitlines())
