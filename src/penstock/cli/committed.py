"""Which connector's objects a command means: `NAME` in the embedded stack, or a connector's file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def source_options(name: str, connector: Path | None, directory: Path) -> Mapping[str, str]:
    """The options of the format `penstock` for a connector.

    `name`: its name, or its file, which the stack completes as it does when the file is run; it may have run in the
    foreground. `connector`: a file that says all by itself; `name` counts in place of its own.

    Raises:
        UsageError: nothing says where it is.
    """
    from penstock.config.load import store_of_stack
    from penstock.config.properties import read
    from penstock.dev import stack
    from penstock.sources.object_options import of_store
    from penstock.worker import saved

    if connector is not None:
        return {"connector": str(connector.absolute()), "name": name}
    info = stack.load_info(directory)
    if Path(name).is_file():
        missing = {} if info is None else store_of_stack(read(Path(name)), info.as_json())
        return {**missing, "connector": str(Path(name).absolute())}
    if info is None:
        msg = f"nothing says where `{name}` is: give its file with --connector, or run `penstock start`"
        raise UsageError(msg)
    loaded = {each.name: each.config for each in saved.read_all(directory / "worker" / "connectors")}
    return {**of_store(info.as_json()), **of_store(loaded.get(name, {})), "name": name}
