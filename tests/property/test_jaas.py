from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from penstock.kafka.jaas import parse_jaas


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(user=st.text(), password=st.text(), space=st.sampled_from([" ", "\n\t", " /* note */ ", " // note\n"]))
def test_any_user_and_password_come_out_as_they_were_quoted(user: str, password: str, space: str) -> None:
    parts = ["Module", "required", f"username={quoted(user)}", f"password = {quoted(password)}", ";"]
    assert parse_jaas(space.join(parts)).options == {"username": user, "password": password}


@given(st.text(alphabet="aM=;\"'\\/* \n0", max_size=40))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    with contextlib.suppress(ValueError):
        module = parse_jaas(f"Module required {text}")
        assert module.name == "Module"
        assert "a" not in repr(module).removeprefix("LoginModule(name=")
