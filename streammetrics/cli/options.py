"""Options and arguments of the commands: their help, parsing and completion."""

from __future__ import annotations

import inspect
from functools import partial, wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from streammetrics.cli.result import CommandError, blaming
from streammetrics.cli.tasks import TASKS
from streammetrics.core.registry import catalogue
from streammetrics.metrics.specs import SpecError, import_own
from streammetrics.readers.paths import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typer import Context

    from streammetrics.core.types import Foreign

_NAMES = 22  # characters of the left column of a help page
_FEW = 8  # maximum number of options without sections
_BREAKDOWN = "Confidence intervals and slices"
_SECTIONS = ("Arguments", "Options", "Columns", "Files", _BREAKDOWN, "Output")
WIDTH = {"max_content_width": 100}  # characters of a help page


def _write_examples(command: Foreign, ctx: Foreign, formatter: Foreign) -> None:  # noqa: ARG001 - of a method
    """Write the examples of a command verbatim."""
    with formatter.section("Examples"):
        for line in inspect.cleandoc(command.epilog or "").splitlines():
            formatter.write(f"  {line}\n")


class Command(TyperCommand):
    """A command with a sectioned help page; options that are not lists may be given only once.

    Without this check, the last of two values would win silently.
    """

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]  # the context is a subclass
        """Reject an option that is given twice, then parse as usual."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        seen = set[object]()
        for param in order:
            single = not getattr(param, "multiple", True) and not getattr(param, "is_flag", False)
            if param in seen and single:
                ctx.fail(f"Option {param.opts[-1]} is given twice")
            seen.add(param)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Foreign, formatter: Foreign) -> None:
        """Write the arguments, then the options, in sections if they are many."""
        sections: dict[str, list[tuple[str, str]]] = {section: [] for section in _SECTIONS}
        params: list[Foreign] = self.get_params(ctx)
        for param in params:
            section = "Options" if len(params) <= _FEW else getattr(param, "rich_help_panel", None)
            if param.param_type_name == "argument":
                section = "Arguments"
            name = param.get_help_record(ctx)[0].partition(" <")[0]  # without the Python type
            text = f"{param.help} (required)" if param.required else param.help
            sections[section or "Options"].append((f"{name:<{_NAMES}}", text))
        for section, records in sections.items():
            if not records:
                continue
            with formatter.section(section):
                formatter.write_dl(records, col_max=_NAMES)

    format_epilog = _write_examples


class CommandGroup(TyperGroup):
    """A group of commands with a help page that ends with examples."""

    format_epilog = _write_examples


def _option(help: str, *names: str, section: str = "Options", **more: Any) -> Any:  # noqa: A002 - typer's name for it
    return typer.Option(*names, help=help, rich_help_panel=section, **more)


_column = partial(_option, section="Columns", metavar="COLUMN")
_file = partial(_option, section="Files")
_breakdown = partial(_option, section=_BREAKDOWN)
_output = partial(_option, section="Output")


def _completed(incomplete: str, words: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    # A proposal has to start with the typed text, or the shell discards it.
    last = incomplete.rpartition(",")[2]
    return [
        (f"{incomplete}{word[len(last) :]}", text)
        for word, text in words
        if word.lower().startswith(last.lower())
    ]


def _import(modules: list[str] | None) -> None:
    for module in modules or ():
        with blaming("--import", SpecError):
            import_own(module)


Imports = Annotated[
    list[str] | None,
    _option(
        "Module with your own metrics; their states can then be read. Repeatable.",
        "--import",
        metavar="MODULE",
        is_eager=True,
        callback=_import,
    ),
]


def command(app: typer.Typer, name: str | None = None) -> Callable[[Callable[..., object]], object]:
    """Return a decorator that adds a command, which also takes ``--import``.

    The docstring of the function is the help page; its section ``Examples:`` ends it.
    """

    def add(function: Callable[..., object]) -> Callable[..., object]:
        @wraps(function)
        def run(*args: object, imports: object = None, **options: object) -> object:  # noqa: ARG001 - the callback imports
            return function(*args, **options)

        signature = inspect.signature(function, eval_str=True)
        more = inspect.Parameter(
            "imports", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Imports
        )
        parameters = [*signature.parameters.values(), more]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # read by typer
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        about, _, examples = (inspect.getdoc(function) or "").partition("\n\nExamples:\n")
        app.command(name, cls=Command, help=about, epilog=examples)(run)
        return function

    return add


def complete_metrics(incomplete: str) -> list[tuple[str, str]]:
    """Return the metrics that complete the last word of a list, each with its summary."""
    return _completed(incomplete, [(name, summary(cls)) for name, cls in catalogue().items()])


def complete_task(incomplete: str) -> list[str]:
    """Return the tasks that complete a word."""
    return [name for name in TASKS if name.startswith(incomplete)]


def complete_format(incomplete: str) -> list[str]:
    """Return the formats that complete a word."""
    return [name for name in FORMATS if name.startswith(incomplete)]


def summary(cls: type) -> str:
    """Return the first line of a class's docstring."""
    return (cls.__doc__ or "").strip().partition("\n")[0]


def _level(value: float | None) -> float | None:
    if value is not None and not 0 < value < 1:
        raise CommandError(f"--confidence {value:g}: expected a level between 0 and 1, e.g. 0.95")
    return value


Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        help="Files, folders or globs of Parquet, Arrow, CSV, JSON lines or tagged text; - is "
        "standard input.",
    ),
]
Task = Annotated[
    str,
    _option(
        f"What is predicted: {', '.join(TASKS)}.", metavar="TASK", autocompletion=complete_task
    ),
]
Metrics = Annotated[
    list[str] | None,
    _option(
        "Metrics to compute instead of the task's default, e.g. 'F1,FBeta(beta=2),ROCAUC'.",
        metavar="LIST",
        autocompletion=complete_metrics,
    ),
]
Parameters = Annotated[
    list[str] | None,
    _option(
        "A parameter of every metric that has it, e.g. threshold=0.3, average=macro, labels=a,b,c, "
        "pos_label=yes, nan_policy=omit, from_logits=true, max_bins=65536, k=5,10.",
        "-p",
        "--param",
        metavar="NAME=VALUE",
    ),
]
YTrue = Annotated[str | None, _column("True labels or values.")]
YScore = Annotated[
    list[str] | None, _column("Scores; of several classes a list p0,p1,p2 or a glob 'p*'.")
]
Scores = Annotated[
    str | None,
    typer.Option(
        "--scores",
        help="Scores of several classes whose names are in the columns' names, e.g. 'p_*'.",
        rich_help_panel="Columns",
        metavar="PATTERN",
    ),
]
YPred = Annotated[list[str] | None, _column("Predicted labels or values.")]
Weight = Annotated[str | None, _column("Row weights (sample_weight).")]
Counts = Annotated[str | None, _column("How many rows each row stands for, e.g. COUNT(*).")]
Query = Annotated[str | None, _column("Rankings: query ids.")]
Doc = Annotated[str | None, _column("Rankings: document ids.")]
Relevance = Annotated[str | None, _column("Rankings: relevances; null where not judged.")]
Score = Annotated[
    list[str] | None, _column("Rankings: scores; null where not retrieved. Survival: risks.")
]
Columns = Annotated[
    list[str] | None,
    _column(
        "Any other input, e.g. y_low=lower or X='x*'; `streammetrics metrics` lists the inputs of "
        "each task.",
        "-c",
        "--column",
        metavar="INPUT=COLUMN",
    ),
]
Qrels = Annotated[str | None, _file("TREC judgments, with --run, instead of PATH.", metavar="FILE")]
Run = Annotated[list[str] | None, _file("TREC results.", metavar="FILE")]
Annotations = Annotated[
    str | None, _file("COCO annotations, with --results, instead of PATH.", metavar="FILE")
]
ResultsFiles = Annotated[list[str] | None, _file("COCO results.", "--results", metavar="FILE")]
InputFormat = Annotated[
    str | None,
    _file(
        f"Format of files whose names do not end with it: {', '.join(FORMATS)}.",
        metavar="FORMAT",
        autocompletion=complete_format,
    ),
]
Delimiter = Annotated[
    str | None, _file("Delimiter of CSV, e.g. ';' or tab, if it is not detected.", metavar="TEXT")
]
Decimal = Annotated[str | None, _file("Decimal point of CSV: . (default) or ,", metavar="TEXT")]
Where = Annotated[
    str | None,
    _file(
        "Read only rows that fulfil conditions: column OP value [and ...], with = != < <= > >=, "
        'e.g. "country = DE and age >= 18".',
        metavar="TEXT",
    ),
]
Reference = Annotated[
    list[str] | None,
    _file(
        "Drift: files of the reference sample, or a saved state of it; PATH is the current sample.",
        metavar="PATH",
    ),
]
BatchRows = Annotated[int, _file("Rows per batch (1,048,576).", metavar="N", min=1)]
Workers = Annotated[
    int,
    _file(
        "Threads or processes that read (1). The result does not depend on N.", metavar="N", min=1
    ),
]
Preset = Annotated[
    str | None,
    _option(
        "Conventions for rankings: trec_eval (default with --qrels) or sklearn.", metavar="NAME"
    ),
]
PerQuery = Annotated[bool, _option("Rankings: also show the value of each query.", "--per-query")]

Confidence = Annotated[
    float | None,
    _breakdown("Confidence intervals at this level, e.g. 0.95.", metavar="LEVEL", callback=_level),
]
Level = Annotated[
    float, _option("Level of the confidence intervals (0.95).", metavar="LEVEL", callback=_level)
]
Unit = Annotated[
    str | None,
    _breakdown(
        "Sampling unit of the intervals: a column such as user (clustered rows), or none for rows.",
        metavar="COLUMN",
    ),
]
By = Annotated[
    list[str] | None,
    _breakdown(
        "Metrics by slice: a column, several as country,device, bins of numbers as age:18:30:50, "
        "periods as when:day (hour, week, month). Repeat for other slices.",
        metavar="COLUMNS",
    ),
]
ShownMetrics = Annotated[
    list[str] | None, _option("Show only these metrics of the state, by name.", metavar="LIST")
]
ShownBy = Annotated[
    list[str] | None,
    _breakdown(
        "Show only slices by these columns, several as country,device. Repeatable.",
        metavar="COLUMNS",
    ),
]
MinRows = Annotated[int, _breakdown("Hide slices of fewer rows.", metavar="N", min=0)]
Worst = Annotated[
    str | None,
    _breakdown(
        "Rank the slices that are worst by this metric, by confidence limit.", metavar="METRIC"
    ),
]
MaxSlices = Annotated[
    int, _breakdown("Maximal number of slices (10,000); more are an error.", metavar="N", min=1)
]

Json = Annotated[str | None, _output("Write JSON in full precision.", "--json", metavar="FILE|-")]
Csv = Annotated[str | None, _output("Write CSV, one line per number.", "--csv", metavar="FILE|-")]
Markdown = Annotated[str | None, _output("Write Markdown tables.", "--markdown", metavar="FILE|-")]
Save = Annotated[
    str | None,
    _output("Save the state, for `show`, `merge`, `compare`, `report` or Python.", metavar="STATE"),
]
Receipt = Annotated[
    str | None,
    _output(
        "Write what identifies the result: configuration, rows, versions and the state's SHA-256. "
        "`verify` compares it with a saved state.",
        metavar="FILE",
    ),
]
Force = Annotated[bool, _output("Overwrite existing files, but never inputs.", "--force")]
