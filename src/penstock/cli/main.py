"""`penstock`: the commands, and the one place where an error becomes words and an exit code."""

from __future__ import annotations

import sys
import traceback

import click

from penstock.cli.complete import complete
from penstock.cli.connectors import flush, load, log, status, unload
from penstock.cli.consume import consume
from penstock.cli.objects import cat, ls
from penstock.cli.options import Session
from penstock.cli.package import package
from penstock.cli.produce import produce
from penstock.cli.query import sql
from penstock.cli.read import read
from penstock.cli.restore import restore
from penstock.cli.run import run, validate
from penstock.cli.stack import destroy, start, stop
from penstock.cli.state import state
from penstock.cli.trying import try_
from penstock.cli.verify import verify
from penstock.errors import PenstockError

_INTERRUPTED = 130


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog="\b\nExample:\n  penstock start\n  penstock run etc/quickstart-s3.properties --until-done",
)
@click.version_option(package_name="penstock")
def cli() -> None:
    """Kafka topics to S3 objects, exactly once, on Spark."""


COMMANDS = (
    start,
    stop,
    destroy,
    status,
    run,
    validate,
    try_,
    load,
    unload,
    flush,
    log,
    produce,
    consume,
    ls,
    cat,
    read,
    verify,
    state,
    complete,
    restore,
    sql,
    package,
)
for each in COMMANDS:
    cli.add_command(each)


def main(arguments: list[str] | None = None) -> int:
    """Run a command. Ends the process with 0, 1 failed, 2 usage, or 3 taken over by another instance."""
    session = Session()
    try:
        cli.main(arguments, standalone_mode=False, obj=session)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except PenstockError as error:
        if session.verbose:
            traceback.print_exc()
        click.echo(f"error: {error}" if "\n" not in str(error) else str(error), err=True)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        code = _INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except click.exceptions.Exit as ended:
        code = ended.exit_code
    else:
        code = 0
    sys.exit(code)


if __name__ == "__main__":
    main()
