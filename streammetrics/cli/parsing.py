"""How the command line is parsed: an option is given once, completed by Tab, refused by a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from streammetrics.cli.errors import CommandError
from streammetrics.cli.tasks import TASKS
from streammetrics.core.registry import catalogue
from streammetrics.readers.paths import FORMATS

if TYPE_CHECKING:
    from typer import Context


class Once(TyperCommand):
    """A command whose options, but for lists, are given once: the last does not win quietly."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]  # the context is a subclass
        """Parse as ever, after refusing what is given twice."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        seen: set[Any] = set()
        for param in order:
            single = not getattr(param, "multiple", True) and not getattr(param, "is_flag", False)
            if param in seen and single:
                ctx.fail(f"Option {param.opts[-1]} is given twice")
            seen.add(param)
        return super().parse_args(ctx, args)


def option(text: str, *names: str, **more: Any) -> object:
    """Return an option with its help."""
    return typer.Option(*names, help=text, **more)


def _completed_list(incomplete: str, words: list[tuple[str, str]]) -> list[tuple[str, str]]:
    # What was typed stays, also its case: else the shell takes none of them.
    last = incomplete.rpartition(",")[2]
    return [
        (f"{incomplete}{word[len(last) :]}", text)
        for word, text in words
        if word.lower().startswith(last.lower())
    ]


def complete_metrics(incomplete: str) -> list[tuple[str, str]]:
    """Return the metrics that the last word of a list may become, each with its summary."""
    return _completed_list(incomplete, [(n, summary(cls)) for n, cls in catalogue().items()])


def complete_task(incomplete: str) -> list[str]:
    """Return the tasks that begin so."""
    return [name for name in TASKS if name.startswith(incomplete)]


def complete_format(incomplete: str) -> list[str]:
    """Return the formats that begin so."""
    return [name for name in FORMATS if name.startswith(incomplete)]


def refuse_format(value: str | None) -> None:
    """Raise where `--format` was typed, which could be that of either side."""
    if value is not None:
        raise CommandError(
            "--format could be that of the files or of the results: --input-format "
            f"{value if value in FORMATS else 'csv'} names that of files; results are printed with "
            "--json -, --csv - or --markdown -"
        )


def share(value: float | None) -> float | None:
    """Return the level of limits, or raise where it is no share."""
    if value is not None and not 0 < value < 1:
        raise CommandError(f"--confidence {value:g}: expected a share such as 0.95")
    return value


def summary(cls: type) -> str:
    """Return the first sentence of a class's documentation."""
    return (cls.__doc__ or "").strip().partition("\n")[0]
