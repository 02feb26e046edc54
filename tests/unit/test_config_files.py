import pytest

from penstock.config.properties import parse, parse_json, read
from penstock.config.variables import resolve
from penstock.errors import ConfigError


def problems_of(call, *arguments):
    with pytest.raises(ConfigError) as caught:
        call(*arguments)
    return caught.value.problems


def test_a_value_stands_where_its_logical_line_begins():
    text = "# one\r\na=1\r\rb = x\\\n   y\\\n   z\n! two\nc 3\nd\n"
    assert {name: (value.text, value.where) for name, value in parse(text, "f").items()} == {
        "a": ("1", "f:2"),
        "b": ("xyz", "f:4"),
        "c": ("3", "f:8"),
        "d": ("", "f:9"),
    }


def test_every_malformed_line_is_named_and_the_others_are_still_looked_at():
    assert problems_of(parse, "a=\\u12\nb=1\n=x\nc=\\\n \\uzzzz\n", "f") == (
        "f:1: malformed escape `\\u12`; write \\uXXXX with 4 hex digits, or \\\\",
        "f:3: no property name before the separator; write NAME=VALUE",
        "f:4: malformed escape `\\uzzzz`; write \\uXXXX with 4 hex digits, or \\\\",
    )


def test_utf_8_is_read_as_such_and_anything_else_as_latin_1(tmp_path):
    file = tmp_path / "f"
    file.write_bytes("\ufeffa=\u00e9\u4e2d".encode())
    assert read(file)["a"].text == "\u00e9\u4e2d"
    file.write_bytes("a=\u00e9".encode("latin-1"))
    assert read(file)["a"].text == "\u00e9"


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    missing = tmp_path / "none.properties"
    assert problems_of(read, missing) == (f"{missing}: no such file; check the path",)
    assert problems_of(read, tmp_path) == (f"{tmp_path}: is a folder; name a properties file in it",)
    wide = tmp_path / "wide"
    wide.write_text("a=1", encoding="utf-16")
    assert problems_of(read, wide) == (f"{wide}: not a text file (it holds zero bytes); save it as UTF-8",)
    assert problems_of(read, "a\0b")[0].startswith("a\0b: cannot be read: ")


def test_connect_s_json_is_read_in_both_forms(tmp_path):
    file = tmp_path / "sink.json"
    file.write_text('{"name": "s", "config": {"flush.size": 10000000000, "x": 1e3}, "tasks": [], "type": "sink"}')
    nested = read(file)
    assert {name: value.text for name, value in nested.items()} == {
        "flush.size": "10000000000",
        "x": "1e3",
        "name": "s",
    }
    assert nested["flush.size"].where == f"{file}: config.flush.size"
    file.write_text('{"name": "s", "x": false}')
    assert {name: value.text for name, value in read(file).items()} == {"name": "s", "x": "false"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a": 1,\n}', "f:2: not valid JSON"),
        ("[1]", "f: must hold one JSON object, got a list or a bare value"),
        ('{"config": 3}', "f: config must be a JSON object of properties"),
        ('{"config": {"a": null}}', "f: config.a must be a text, a number, true or false, got null"),
        ('{"a": {}}', "f: a must be a text, a number, true or false, got an object"),
        ('{"a": [1]}', "f: a must be a text, a number, true or false, got a list"),
        ('{"config": {}, "flush.size": 3}', "f: unknown member `flush.size` beside config; put properties into config"),
        (
            '{"name": "a", "config": {"name": "b"}}',
            "f: name is `a` beside config but `b` in it; keep one",
        ),
        ("[" * 100_000, "f: not valid JSON: nested too deeply"),
    ],
)
def test_json_that_is_not_a_connector_s_is_one_sentence(text, sentence):
    assert problems_of(parse_json, text, "f")[0].startswith(sentence)


def test_a_name_given_twice_in_json_counts_once_and_is_told():
    twice = parse_json('{"a": "1", "a": "2"}', "f")
    assert twice["a"].text == "2"
    assert twice.warnings == ("f: a: a is given again; its value at f: a is not used",)


def test_missing_variables_are_named_with_line_and_way_out(tmp_path):
    secrets = tmp_path / "s"
    secrets.write_text("k=v\n")
    text = (
        f"a=${{env:NO}} ${{vault:x:y}}\nb=${{file:{secrets}}}\nc=${{file:{secrets}:none}}\n"
        f"d=${{file:{tmp_path}/none:k}}\ne=${{topic}}\n"
    )
    assert problems_of(resolve, parse(text, "f"), {}) == (
        "f:1: ${env:NO}: the environment variable NO is not set; export it",
        "f:1: ${vault:x:y}: unknown kind of variable `vault`; write ${env:NAME} or ${file:PATH:KEY}",
        f"f:2: ${{file:{secrets}}}: needs a path and a key; write ${{file:PATH:KEY}}",
        f"f:3: ${{file:{secrets}:none}}: {secrets} has no property none; add it there",
        f"f:4: ${{file:{tmp_path}/none:k}}: {tmp_path}/none: no such file; check the path",
    )


def test_what_a_variable_gives_is_taken_as_it_is_and_never_shown():
    value = resolve(parse("a=x${env:A}z", "f"), {"A": "${env:B}"})["a"]
    assert value.text == "x${env:B}z"
    assert value.shown == "x${env:A}z"
    assert "env:B" not in repr(value)


def test_a_long_text_is_cut_in_messages():
    shown = parse("a=" + "x" * 1000, "f")["a"].shown
    assert shown == "x" * 120 + "..."
