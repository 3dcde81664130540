"""The commands, and how a command ends: its output, a one-line error, and an exit code."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import signal
import sys
import sysconfig
import textwrap
import threading
import traceback
from functools import cache
from typing import TYPE_CHECKING, Annotated

import typer
from typer.main import get_command

from streammetrics._command import INTERRUPTED, IS_COMMAND, was_stopped
from streammetrics.cli import options as typed
from streammetrics.cli.evaluate import evaluate
from streammetrics.cli.live_consume import live
from streammetrics.cli.result import MISTAKE, CommandError, CommandResult, say
from streammetrics.cli.states import compare_states, gate, merge, show_state, verify, write_report
from streammetrics.cli.tasks import TASKS
from streammetrics.core.columns.batch import near
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.kernels.active import kernels
from streammetrics.core.registry import VERSION, catalogue, metric_names, public
from streammetrics.metrics.specs import known_as
from streammetrics.show.formats import console

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Foreign


app = typer.Typer(
    cls=typed.CommandGroup,
    help="Exact metrics of prediction files of any size.",
    rich_markup_mode=None,
    context_settings=typed.WIDTH,
    epilog="""
    streammetrics evaluate data.csv --task binary --y-true label --y-score score
    streammetrics metrics --task ranking
    streammetrics evaluate --help
    """,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streammetrics {VERSION}, {kernels()}")
        raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Exact metrics of prediction files of any size."""


def list_metrics(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="METRIC",
            help="Metrics to document: parameters, formula, example.",
            autocompletion=typed.complete_metrics,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help=f"Only the metrics of one task: {', '.join(TASKS)}.",
            metavar="TASK",
            autocompletion=typed.complete_task,
        ),
    ] = None,
) -> CommandResult:
    """List metrics and inputs by task. With names: document these metrics.

    Examples:
        streammetrics metrics
        streammetrics metrics --task forecasting
        streammetrics metrics FBeta ROCAUC
    """
    if task is not None and task not in TASKS:
        raise CommandError(f"no task {task!r}{near(task, TASKS)}")
    if names:
        return CommandResult("".join(_documented(known_as(name, catalogue())) for name in names))
    width, parts = console().width, []
    for heading, rooms in _headings(task).items():
        found = {name: cls for name, cls in catalogue().items() if _room(cls) in rooms}
        wide = max(map(len, found))
        lines = [f"  {name:<{wide}}  {typed.summary(cls)}" for name, cls in sorted(found.items())]
        shown = [line if len(line) <= width else f"{line[: width - 1].rstrip()}…" for line in lines]
        parts.append("\n".join([textwrap.fill(heading, width), *shown, ""]))
    return CommandResult("\n".join(parts))


# Packages of the metrics of a task, unless the package has the task's name.
_ROOMS = {
    **dict.fromkeys(("binary", "multiclass", "multilabel"), ("classification", "scores")),
    **dict.fromkeys(("boxes", "masks"), ("detection",)),
    "spans": ("text",),
}


def _headings(task: str | None) -> dict[str, tuple[str, ...]]:
    """Return the packages under each heading; tasks with the same metrics share one."""
    tasks: dict[tuple[str, ...], list[str]] = {}
    for name in TASKS:
        tasks.setdefault(_ROOMS.get(name, (name,)), []).append(name)
    found = {}
    for rooms, names in tasks.items():
        if task is None or task in names:
            inputs = dict.fromkeys(each for name in names for each in TASKS[name].inputs)
            found[f"--task {'|'.join(names)}, inputs {', '.join(inputs)}:"] = rooms
    if task is None:
        read = {room for rooms in tasks for room in rooms}
        found["from Python:"] = tuple({*map(_room, catalogue().values())} - read)
    return found


def _room(cls: type[Metric]) -> str:
    return cls.__module__.split(".")[2]


def _documented(name: str) -> str:
    """Return the signature and the docstring of a metric."""
    cls = catalogue()[name]
    parameters = ", ".join(
        p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        for p in inspect.signature(cls).parameters.values()
    )
    return f"{name}({parameters})\n\n{inspect.getdoc(cls)}\n\n"


_COMMANDS: dict[str, Callable[..., CommandResult]] = {
    "evaluate": evaluate,
    "metrics": list_metrics,
    "merge": merge,
    "show": show_state,
    "report": write_report,
    "compare": compare_states,
    "verify": verify,
    "gate": gate,
}
for _name, _function in _COMMANDS.items():
    typed.command(app, _name)(_function)
app.add_typer(live, name="live")


DEFECT = 70  # EX_SOFTWARE of sysexits.h
BROKEN_PIPE = 141  # 128 plus the number of SIGPIPE

_TRACEBACK = "STREAMMETRICS_TRACEBACK"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run a command; every error is one line on standard error."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if sys.stdout is None:
        sys.stdout = _Closed()
    try:
        result = _run(words or ["--help"])
        _print(result.text)
        if result.finish is not None:
            _finish(result.finish)
        if result.error:
            say(f"error: {result.error}")
    except SystemExit as leaving:
        # The parser exits this way after a completion, and on a broken pipe.
        codes = {0: 0, 1: BROKEN_PIPE}
        if leaving.code not in codes:
            raise
        return codes[leaving.code]
    except BrokenPipeError:
        return BROKEN_PIPE
    except Exception as error:
        if was_stopped():
            raise KeyboardInterrupt from error
        return _failed(error, words)
    return result.code


def _finish(finish: Callable[[], None]) -> None:
    """Do what cannot be undone; a signal no longer stops the command."""
    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        finish()
    finally:
        for one, handler in before.items():
            if not IS_COMMAND:  # otherwise the process ends next
                signal.signal(one, handler)


class _Closed(io.TextIOBase):
    """Closed standard output; without this, the parser would drop its output silently."""

    def write(self, text: str) -> int:
        if text:
            raise CommandError("standard output is closed")
        return 0


@cache
def _parser() -> Foreign:
    return get_command(app)  # takes about 40 ms


def _run(words: list[str]) -> CommandResult:
    ended = _parser().main(args=words, prog_name="streammetrics", standalone_mode=False)
    if ended == INTERRUPTED:  # the parser returns this for a KeyboardInterrupt
        raise KeyboardInterrupt
    return ended if isinstance(ended, CommandResult) else CommandResult()


def _failed(error: Exception, words: Sequence[str]) -> int:
    message = getattr(error, "format_message", None)  # errors of the parser have it
    if message is not None:
        return _mistake(_of_parser(error, message(), words))
    match error:
        case StreamMetricsError() | ImportError():
            for line in getattr(error, "mistakes", (str(error),)):
                _mistake(line)
            return MISTAKE
        case MemoryError():
            return _mistake("not enough memory: try fewer --workers or a smaller --param max_bins")
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return _mistake(f"{where}{error.strerror or error}")
    if os.environ.get(_TRACEBACK):
        raise error
    if (own := _own_frame(error)) is not None:
        return _mistake(f"{own.filename}, line {own.lineno}: {type(error).__name__}: {error}")
    frame = traceback.extract_tb(error.__traceback__)[-1]
    say(
        f"error: a bug in streammetrics: {type(error).__name__}: {error} "
        f"({os.path.basename(frame.filename)}, line {frame.lineno}); {_TRACEBACK}=1 shows more"
    )
    return DEFECT


def _own_frame(error: Exception) -> traceback.FrameSummary | None:
    """Return the frame of a user's module that raised an error; None if the package did."""
    libraries = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(_PACKAGE):
            return None
        if os.path.isabs(frame.filename) and not frame.filename.startswith(libraries):
            return frame
    return None


def _of_parser(error: Foreign, message: str, words: Sequence[str]) -> str:
    near = getattr(error, "possibilities", None)
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else _command(words)
    typed = getattr(error, "option_name", None) if path.endswith("evaluate") else None
    if typed and (instead := _as_value(typed)):
        message = f"{error.message}; write {instead}"
    elif near:
        message = f"{error.message}; did you mean {' or '.join(near)}?"
    if "Missing option '--task'" in message:
        message = f"{message.rstrip('.')}: one of {', '.join(TASKS)}"
    for word in words:
        if word.startswith("-") and os.path.exists(word):  # a file that looks like an option
            message = f"{message.rstrip('.')}; for the file {word} write ./{word}"
    return f"{message.rstrip('.')}; see {path} --help"


def _as_value(option: str) -> str:
    """Return how to pass a parameter or an input that was written as an option of its own."""
    name = option.lstrip("-").replace("-", "_")
    if any(name in public(metric)._parameters for metric in metric_names()):
        return f"--param {name}=VALUE"
    if any(name in task.inputs for task in TASKS.values()):
        return f"--column {name}=COLUMN"
    return ""


def _command(words: Sequence[str]) -> str:
    """Return the command in the arguments, which the parser's error does not name."""
    path, command = "streammetrics", _parser()
    for word in words:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        path += f" {word}"
    return path


def _mistake(message: str) -> int:
    say(f"error: {message}")
    return MISTAKE


def _print(text: str) -> None:
    """Write to standard output, and flush it."""
    try:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError as error:  # the terminal lacks a character
            sys.stdout.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
        sys.stdout.flush()
    except OSError as error:
        _forget_output()
        if isinstance(error, BrokenPipeError):
            raise
        raise CommandError(f"standard output: {error.strerror}") from error


def _forget_output() -> None:
    """Redirect standard output to null, so that the interpreter does not fail at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
