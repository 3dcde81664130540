"""What was asked for on the command line, checked for sense and made a set of metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streammetrics.cli.errors import CommandError
from streammetrics.cli.specs import at_each, construct, parse
from streammetrics.cli.tasks import TASKS, WEIGHT, Task, flag
from streammetrics.core.by_name.elsewhere import ELSEWHERE
from streammetrics.core.columns.naming import near
from streammetrics.core.metric_set import MetricSet
from streammetrics.core.registry import catalogue
from streammetrics.metrics.ranking.base import ranking_preset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streammetrics.core.metric import Metric
    from streammetrics.core.types import Options
    from streammetrics.metrics.specs import Spec

_AHEAD = ("k", "preset")  # options that are no parameter of every metric, but become some


@dataclass(frozen=True)
class Plan:
    """A task with its columns and metrics chosen."""

    task: str
    asked: Mapping[str, str]  # for each input, what the user wrote
    options: Options  # those set for all metrics at once
    suite: MetricSet


def plan(
    name: str,
    columns: Mapping[str, str],
    options: Options,
    metrics: Sequence[Spec] | None,
    besides: Sequence[Spec] = (),
) -> Plan:
    """Choose what to compute.

    Args:
        name: The task.
        columns: For each input that was given, the columns.
        options: Parameters that were given, for all metrics that take them.
        metrics: What was asked for; ``None``: the task's default for these inputs.
        besides: What comes before the default.

    Raises:
        CommandError: What was given contradicts itself or does not suffice.
    """
    task = _task(name)
    _check_given(name, task, columns, options)
    asked, chosen = dict(columns), {**task.parameters, **options}
    if task.argmax and "y_score" in asked:
        asked.setdefault(task.argmax, asked["y_score"])
    if "threshold" in task.options and "y_pred" not in asked:
        chosen.setdefault("threshold", 0.5)
    parameters = {**_preset(chosen), **chosen}
    if parameters.get("ties") == "doc" and "doc" not in asked:
        raise CommandError("ties are broken by document, which needs --doc; or choose other --ties")
    if metrics:
        specs = at_each(metrics, options["k"], strict=True) if "k" in options else metrics
    else:
        depths = chosen.get("k", ())
        specs = [*besides, *at_each(_defaults(task, asked, chosen), depths, strict=False)]
    shared = {key: value for key, value in parameters.items() if key not in _AHEAD}
    built = construct(specs, shared, strict=options.keys() & shared.keys())
    read = _read(built, asked)
    for key in columns:
        is_argmax = key == "y_score" and task.argmax in read - columns.keys()
        if key not in read and not is_argmax:
            raise CommandError(
                f"{flag(key)} is read by none of the metrics ({', '.join(built)}): leave it "
                "out, or ask for one that reads it with --metrics"
            )
    if metrics and "k" not in options:
        chosen.pop("k", None)
    asked = {key: text for key, text in asked.items() if key in read}
    # A set takes a table's weights only where they are named, be it by the name they have.
    renamed = {key: text for key, text in asked.items() if key != text or key == WEIGHT}
    return Plan(name, asked, chosen, MetricSet(built, columns=renamed))


def _task(name: str) -> Task:
    if name not in TASKS:
        raise CommandError(f"no task {name!r}{near(name, TASKS)}")
    return TASKS[name]


def _check_given(name: str, task: Task, columns: Mapping[str, str], options: Options) -> None:
    foreign = [
        *(c for c in columns if c not in task.inputs),
        *(o for o in options if o not in task.options),
    ]
    if foreign:
        raise CommandError(f"{flag(foreign[0])} is not for --task {name}")
    missing = [flag(key) for key in task.required if key not in columns]
    if missing:
        raise CommandError(f"--task {name} needs {' and '.join(missing)}")
    for group in task.either:
        given = [key for key in group if key in columns]
        rest = [flag(key) for key in group if key not in columns]
        if given and rest:
            raise CommandError(f"{flag(given[0])} needs {' and '.join(rest)} beside it")
    if not any(set(group) <= columns.keys() for group in task.either):
        groups = " or ".join(" and ".join(map(flag, group)) for group in task.either)
        raise CommandError(f"--task {name} needs {groups}{task.instead}")
    if "threshold" in options and "y_pred" in columns:
        raise CommandError(
            "--threshold makes labels of scores, but --y-pred has the labels: give one of them"
        )


def _preset(options: Options) -> dict[str, object]:
    if "preset" not in options:
        return {}
    try:
        return ranking_preset(options["preset"])
    except ValueError as error:
        raise CommandError(f"--preset {options['preset']}: {error}") from None


def _defaults(task: Task, asked: Mapping[str, str], options: Options) -> list[Spec]:
    cut = "threshold" in options  # scores make labels
    return [
        spec
        for key, names in task.defaults.items()
        if key in asked or (key == "y_pred" and cut)
        for spec in parse(names)
    ]


def _read(built: Mapping[str, Metric], asked: Mapping[str, str]) -> set[str]:
    """Return the inputs that the metrics read; raise where one that is needed was not given."""
    read = {WEIGHT}
    for title, metric in built.items():
        schemas = [statistic.schema for statistic in metric.statistics()]
        optional = frozenset().union(*(schema.optional for schema in schemas))
        missing = [flag(i) for i in metric.inputs if i not in asked and i not in optional]
        if missing:
            told = _of_the_same_name(metric, asked)
            raise CommandError(f"{title} needs {' and '.join(missing)}{told}")
        read.update(metric.inputs)
    return read


def _of_the_same_name(metric: Metric, asked: Mapping[str, str]) -> str:
    """Return which metric of the given columns is called elsewhere what this one is, as AP is."""
    shared = [names.split(", ") for names in ELSEWHERE.values()]
    names = {name for each in shared if type(metric).__name__ in each for name in each}
    known = catalogue()
    made = [
        known[name]()
        for name in sorted(names & known.keys())
        if not any(parameter.required for parameter in known[name]._parameters.values())
    ]
    fits = [repr(type(other).__name__) for other in made if {*other.inputs} <= {*asked}]
    return f"; did you mean {' or '.join(fits)}?" if fits else ""
