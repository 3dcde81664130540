"""The configuration file: its keys, its rules, and a commented template."""

from __future__ import annotations

import ast
import inspect
import os
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from streammetrics.core.columns.batch import near
from streammetrics.core.errors import StreamMetricsError, an
from streammetrics.core.loading import load
from streammetrics.core.metric_set import MetricSet
from streammetrics.live.alerts.change import Change
from streammetrics.live.alerts.rule import check_windows, source_of
from streammetrics.live.alerts.rules import Above, Below, BurnRate, Coverage, Drift, Silence
from streammetrics.live.config import DEDUPE
from streammetrics.live.events import DEFAULT, duration, tiers_of
from streammetrics.live.exporting.files import Notice
from streammetrics.live.inputs import inputs_of
from streammetrics.live.journal import open_store
from streammetrics.live.live import Live
from streammetrics.live.service import toml
from streammetrics.live.service.delivery import Delivery, receiver_of, silence_of
from streammetrics.live.service.replicas import ReplicaSettings, replica_settings_of
from streammetrics.live.service.server import Names, PageView, Server, exported_of, server_of
from streammetrics.live.service.toml import ConfigError
from streammetrics.live.spans import spans_of
from streammetrics.live.validation import truth_of
from streammetrics.metrics.specs import SpecError, construct, parse
from streammetrics.slices.bins import column_of, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from streammetrics.core.types import Json, Options
    from streammetrics.live.alerts.rule import Rule
    from streammetrics.live.inputs import Input
    from streammetrics.live.service.toml import Section
    from streammetrics.slices.bins import KeySpec


T = TypeVar("T")

TEMPLATE = """\
# What streammetrics watches. `streammetrics live check` reads it whole, `live serve` runs it.

title = "Live metrics"

[metrics]  # any of `streammetrics metrics`, under names of your own
auc = "ROCAUC"
loss = "LogLoss"
accuracy = "Accuracy(threshold=0.5)"

[columns]  # what events and files call them; those that are called so anyway need no line
y_true = "label"
y_score = "score"
# sample_weight = "weight"
# id = "id"                  # of a prediction, by which its label is found
# time = "time"              # seconds since 1970, or ISO 8601 with a zone
# label_time = "label_time"  # in files of labels; without such a column, "time"
# version = "version"        # of a label: a larger one replaces the others

[live]
store = "live.db"  # survives restarts, shared by workers; beside this file. Without: memory only
tiers = [["1min", "3h"], ["1h", "15d"], ["1d", "400d"]]  # length of a pane, how far back
label_ttl = "1d"       # a label counts that is known so long after its prediction
label_lateness = "1d"  # and may take so much longer to arrive
# by = [["country"], ["age:18:30:50"]]  # slices: columns of events, numbers in bins
# labels = [0, 1]      # the classes of the label; by default 0 and 1 where a score judges two
# types = { country = "text" }  # or "integers", "booleans", "dates"; a number: values a row
# target_range = [0, 100]  # of a regression: other targets are refused
# proxy = "judge"      # column of judgments, which all events but labels have, for estimates
# default_label = 0    # what a label that never came means; without: nothing
# dedupe = "1h"        # an observation that is repeated with its id so long after counts once
# max_pending = 10_000_000
# max_store = "2GB"    # larger: the oldest panes expire early, the finest first
# max_ahead = "10min"  # times further ahead of the clock are refused
# durable = false      # true: every call waits for the disk
# on_invalid = "reject_batch"  # or "dead_letter": the other events of a request are taken
# dead_letter = "refused.jsonl"  # the file for refused events, beside this one

[alerts]  # rules as in Python: Above, Below, BurnRate, Change, Coverage, Drift, Silence
# auc_is_low = 'Below("auc", 0.80, window="1h", min_rows=500)'
# nothing_comes = { rule = 'Silence("10min")', severity = "ticket", for = "5min" }  # in Prometheus
# late = { rule = 'Coverage(0.9)', labels = { team = "ml" }, runbook = "https://wiki.example.org" }

# [deliver.desk]       # who gets changes of alerts; secrets as url_env = "NAME" or url_file
# kind = "webhook"     # or "slack", "pagerduty", "alertmanager"
# url = "https://desk.example.org/hook"
# token_env = "STREAMMETRICS_TOKEN"  # or token_file; for PagerDuty key_env or key_file
# rule = "*"           # the rules that it gets, by name or a list of names
# labels = { severity = "ticket" }  # and by label
# timeout = "10s"      # for an answer
# give_up = "1d"       # later, a change is a dead letter
# dead_letters = "undelivered.jsonl"  # beside this file

# [[silence]]          # changes are recorded and not delivered; without rule = "...": of all
# rule = "nothing_*"   # and labels, as above
# start = 2026-12-01T22:00:00Z
# end = 2026-12-02T06:00:00Z
# weekly = ["sat,sun 00:00-24:00", "mon-fri 22:00-06:00"]  # in UTC
# reason = "maintenance"

# [inputs]             # columns watched without labels; reference = "age.state": a saved state
# age = { type = "number", range = [18, 100] }
# country = { type = "category", categories = ["DE", "FR"] }
# score = "number"     # what the metrics read may be watched too

# [merge]              # without a store: shows the merged states of other services
# replicas = ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]  # of the same [metrics] and [live]
# token_env = "READ_TOKEN"  # or token_file: the token that they accept for reading
# every = "10s"        # between two readings; only states that have changed are sent
# timeout = "30s"      # for an answer

[page]
window = "1h"   # what "now" is: a whole number of panes
every = "5min"  # how far apart the points of a line are
# groups = { Ranking = ["auc"], Decisions = ["accuracy"] }  # of metrics on the page
# references = { "version 1" = "v1.state" }  # saved sets to compare with, beside this file

[prometheus]  # what /metrics has beside values and bounds, at the cost of more time series
# slices = 100       # of each kind at most, those with the most rows
# confidence = true  # confidence intervals
# possible = true    # what the missing labels could do
# inputs = true      # shares and distances of [inputs]

[server]
host = "127.0.0.1"  # another address needs a token
port = 8000         # 0: any free one, which `live serve` prints
# socket = "live.sock"  # a unix socket instead, for its owner and group
# certificate = "cert.pem"  # TLS, with key = "key.pem"
workers = 1         # processes; several need a store
# token_env = "STREAMMETRICS_TOKEN"  # the variable that holds the bearer token
# read_token_env = "READ_TOKEN"  # of a token that only reads; write_token_env: that only sends
# clock = "wall"    # or "events": it is as late as the newest event, for replays
# body = "16MB"     # of a request at most
# queue = 64        # requests with events that wait; more are answered 429
# timeout = "30s"   # that a request may take to arrive
# connections = 1000  # more: those that have waited longest for their client are closed

# For several models in one service, put all tables but [server] into a table of each, such as
# [model.fraud.metrics], [model.fraud.columns] and [model.fraud.live]. Commands then name one as
# live.toml#fraud, events go to /models/fraud/events, and title is a key of [model.fraud].
"""


RULES: dict[str, type[Rule]] = {
    rule.__name__: rule for rule in (Above, Below, BurnRate, Change, Coverage, Drift, Silence)
}


def rule_of(text: str, name: str, folder: str) -> Rule:
    """Return the rule that a text calls; relative file names start at the configuration's folder.

    Raises:
        SpecError: The text is not a call, or the rule or a parameter does not exist.
    """
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise TypeError("no call")  # noqa: TRY301 - reported like invalid Python
        title = call.func.id
        values = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise SpecError(
            f'{text!r}: expected a rule as in Python, such as Below("auc", 0.8, window="1h")'
        ) from None
    cls = RULES.get(title)
    if cls is None:
        raise SpecError(f"no rule {title!r}{near(title, sorted(RULES))}")
    known = inspect.signature(cls.__init__)
    names = [each for each in known.parameters if each != "self"]
    for unknown in (each for each in named if each not in names):
        raise SpecError(f"{title} has no parameter {unknown!r}{near(unknown, names)}")
    try:
        bound = known.bind(None, *values, **{"name": name, **named})
        if isinstance(bound.arguments.get("reference"), str):
            bound.arguments["reference"] = os.path.join(folder, bound.arguments["reference"])
        return cls(*bound.args[1:], **bound.kwargs)
    except (TypeError, ValueError, OSError, StreamMetricsError) as error:
        raise SpecError(f"{title}: {error}") from error


_KEYS = re.compile(  # keys of [live], as errors name them
    r"^by\b|\b(?:default_label|target_range|proxy|types|labels|label_ttl|label_lateness|dedupe|max_ahead|max_store)\b"
)
_TYPES = re.compile(r"types=\{'([^']*)': ('\w+'|\d+)\}")  # advice in Python syntax
_BINS = re.compile(r"sm\.Bins\('([^']*)', \[0\.5\]\)")
_POLICIES = ("reject_batch", "dead_letter")
_ADDRESS = re.compile(r"https?://[^\s<>|]+")
_MODEL = re.compile(r"[A-Za-z0-9_-]+")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = ("alertname", "service", "severity")  # labels that every alert has
_RENAME = "give the column another name"
_OWN = ("id", "time", "label_time", "version")  # columns that belong to events, not to metrics


@dataclass(frozen=True)
class Settings:
    """A validated configuration."""

    path: str
    suite: MetricSet
    names: Names
    options: Options  # arguments of `Live`
    view: PageView
    server: Server
    rules: tuple[Rule, ...]  # alert rules
    delivery: Delivery  # severities and labels of the rules, and who gets their alerts
    letters: str | None = None  # the file for refused events; without it, requests are refused
    merging: ReplicaSettings | None = None  # whose states are shown, in place of events

    def live(self, *, store: bool = True) -> Live:
        """Return the live state that the file describes, opened from its store."""
        options = dict(self.options)
        if not store:
            options["store"] = None
        return Live(self.suite, **options)

    def check_store(self) -> None:
        """Open the store, or make it.

        Raises:
            StreamMetricsError: It cannot be opened, or has another configuration.
        """
        empty, store = self.live(store=False), self.options["store"]
        pipeline = empty._shared.current
        open_store(store, type(empty), pipeline, durable=False, timeout=1.0).close()


def settings(path: str | os.PathLike[str], *, secrets: bool = True) -> Settings:
    """Read a file and validate it completely; nothing is opened or created.

    Args:
        path: The file; ``PATH#NAME`` is one of its models, if it has several.
        secrets: Whether to read the tokens and addresses that it names; only what serves or checks
            needs them.

    Raises:
        ConfigError: The file is invalid; the message says where, and what to write.
    """
    named = os.fspath(path)
    whole, _, name = named.rpartition("#") if not os.path.exists(named) else (named, "", "")
    models = models_of(whole or named, secrets=secrets)
    if name not in models:
        told = near(name, models) if name else f": name one, as {named}#{next(iter(models))}"
        has = f"no model {name!r}" if name else f"has several models, {', '.join(models)}"
        raise ConfigError(f"{whole or named}: {has}{told}")
    return models[name]


def models_of(path: str | os.PathLike[str], *, secrets: bool = True) -> dict[str, Settings]:
    """Read a file and return the settings of each model, by name; of a single one, it is empty.

    Args:
        path: The file.
        secrets: See `settings`.

    Raises:
        ConfigError: See `settings`.
    """
    file = toml.read(os.fspath(path), secrets=secrets)
    listens, tables = file.table("server"), file.named_tables("model")
    server = server_of(listens)
    for name, table in tables.items():
        if not _MODEL.fullmatch(name):
            table.fail("", f"no model can be called {name!r}: take letters, digits, _ and -")
    models = {name: _model(table, name) for name, table in (tables or {"": file}).items()}
    titles, stores = set[str](), set[str | None]()
    for name, found in models.items():
        title, store = found.view.title, found.options["store"]
        if title in titles:
            tables[name].fail("title", f"two models are called {title!r}: give each its own title")
        store = None if store is None else os.path.realpath(store)  # however it is spelled
        if store is not None and store in stores:
            tables[name].table("live").fail("store", "another model has it: give each its own")
        titles.add(title)
        stores.add(store)
    if server.workers > 1 and None in stores:
        listens.fail("workers", "several workers share a store: give [live] store a file")
    file.end()
    return {
        name: replace(found, server=server, view=replace(found.view, models=tuple(tables)))
        for name, found in models.items()
    }


def _model(file: Section, name: str) -> Settings:
    """Return the settings of a model, without those of the server."""
    title = file.take("title", str, name or PageView.title)
    columns = file.table("columns")
    own = {name: columns.take(name, str, name) for name in _OWN}
    inputs = columns.rest()
    suite = _suite(file, columns, inputs)
    names = Names(**own)
    _check_apart(columns, names, suite)
    live = file.table("live")
    letters = _letters(live, name)
    options = _options(live, suite, names)
    watched = file.table("inputs")
    options["inputs"] = _inputs(watched, names)
    view = _view(file.table("page"), title, options, suite)
    exported = exported_of(file.table("prometheus"), view.target_range)
    view = replace(view, exported=exported, model=name)
    empty = _empty(live, watched, suite, options)
    rules, notices = _rules(file.table("alerts"), empty)
    delivery = _delivery(file, notices)
    merging = replica_settings_of(file.table("merge"), options["store"])
    if name:
        file.end()
    return Settings(
        file.file, suite, names, options, view, Server(), rules, delivery, letters, merging
    )


def _inputs(table: Section, names: Names) -> dict[str, Input]:
    """Return the declared inputs, with their references."""

    def made(name: str, told: Json) -> Input:
        if name in {"kind", *vars(names).values()}:
            table.fail(name, f"{name!r} is of the event itself, no input: {_RENAME}")
        if isinstance(told, dict) and "reference" in told:
            if not isinstance(told["reference"], str):
                table.fail(name, 'reference is no file: write reference = "train.state"')
            told = {**told, "reference": table.beside(told["reference"])}
        try:
            return inputs_of({name: told})[0]
        except ValueError as error:
            table.fail(name, str(error).removeprefix("inputs: ").removeprefix(f"{name}: "))

    every = _each(partial(made, name, told) for name, told in table.rest().items())
    return {one.name: one for one in every}


def _empty(table: Section, inputs: Section, suite: MetricSet, options: Options) -> Live:
    """Return a live state without a store; raise if no event could match its parameters."""
    try:
        empty = Live(suite, **{**options, "store": None})
    except (ValueError, TypeError) as error:
        if str(error).startswith("inputs: "):
            inputs.fail("", str(error).removeprefix("inputs: "))
        _fail(table, str(error))
    if misfit := empty._config.declared.misfit():
        if not options["types"]:
            misfit += "; how many numbers a row has is declared as types = { y_score = 3 }"
        table.fail("types", f"no event can match: {misfit}")
    return empty


def _fail(table: Section, why: str) -> NoReturn:
    """Raise with the line of the key that an error of `Live` names, and with its advice in TOML."""
    key = _KEYS.search(why)
    why = why.removeprefix("types: ")
    why = _TYPES.sub(lambda found: f"types = {{ {found[1]} = {found[2]} }}", why)
    table.fail(key[0] if key else "", _BINS.sub(r'by = [["\1:0.5"]]', why))


def _rules(table: Section, empty: Live) -> tuple[tuple[Rule, ...], tuple[Notice, ...]]:
    """Return the alert rules, and how Prometheus forwards each alert."""
    rules = table.rest()
    found = _each(partial(_rule, table, name, told, empty) for name, told in rules.items())
    return tuple(rule for rule, _ in found), tuple(notice for _, notice in found)


def _rule(table: Section, name: str, told: object, empty: Live) -> tuple[Rule, Notice]:
    words, notice = _notice(table, name, told if isinstance(told, dict) else {"rule": told})
    if not isinstance(words, str):
        table.fail(name, f"expected a rule in quotes: {name} = 'Below(\"auc\", 0.8)'")
    try:
        rule = rule_of(words, name, table.beside(""))
        empty.alerts([rule])
        # Metrics may wait for labels later, even if there is none yet.
        of = source_of(rule, empty._queries.pipeline)[1]
        check_windows(empty._config, rule, waits=bool(truth_of(empty._suite)) and of != "inputs")
    except (SpecError, ValueError) as error:
        table.fail(name, str(error))
    return rule, notice._replace(alert=rule.title, says=rule._says())


def _each(made: Iterable[Callable[[], T]]) -> list[T]:
    """Return all results; raise one error with the mistakes of all calls."""
    found: list[T] = []
    mistakes: list[str] = []
    for make in made:
        try:
            found.append(make())
        except ConfigError as error:
            mistakes += error.mistakes
    if mistakes:
        raise ConfigError(*mistakes)
    return found


def _notice(table: Section, name: str, values: Mapping[str, object]) -> tuple[object, Notice]:
    """Return the rule in a table of its own, and how Prometheus forwards its alert."""
    told = {"severity": Notice(name).severity, "for": Notice(name).wait, **values}
    known = ("rule", "severity", "for", "labels", "runbook")
    for key in told:
        if key not in known:
            table.fail(name, f"no such key {key!r}{near(key, known)}")
    severity, wait, runbook = told["severity"], told["for"], told.get("runbook", "")
    if not isinstance(severity, str) or not severity:
        table.fail(name, 'severity is not text: write severity = "page"')
    try:
        duration(wait, "for")  # type: ignore[arg-type]  # duration checks it
    except (ValueError, TypeError):
        table.fail(name, f'for = {wait!r} is not a duration: write "1min"')
    if not isinstance(runbook, str) or (runbook and not _ADDRESS.fullmatch(runbook)):
        table.fail(name, 'runbook is not an address: write runbook = "https://host/path"')
    labels = told.get("labels", {})
    if not isinstance(labels, dict) or not all(isinstance(text, str) for text in labels.values()):
        table.fail(name, 'labels is not a table of texts: write labels = { team = "search" }')
    for label in labels:
        if not _LABEL.fullmatch(label) or label in _RESERVED:
            table.fail(name, f"no label can be called {label!r}: take letters, digits and _")
    notice = Notice(name, "", severity, str(wait), tuple(labels.items()), runbook)
    return told.get("rule"), notice


def _delivery(file: Section, notices: Sequence[Notice]) -> Delivery:
    """Return who gets alerts, and when nobody does."""
    receivers = [
        partial(receiver_of, name, table, notices)
        for name, table in file.named_tables("deliver").items()
    ]
    silences = [partial(silence_of, table, notices) for table in file.tables("silence")]
    made: list[Any] = _each([*receivers, *silences])
    return Delivery(notices, made[: len(receivers)], made[len(receivers) :])


def _suite(file: Section, columns: Section, inputs: Mapping[str, Sequence[str]]) -> MetricSet:
    table = file.table("metrics")
    metrics = {}
    for name, words in table.rest().items():
        if not name:
            table.fail(name, 'expected a name before the =: auc = "ROCAUC"')
        if not isinstance(words, str):
            table.fail(name, f'expected a metric in quotes: {name} = "ROCAUC(max_bins=1024)"')
        try:
            (metric,) = map(construct, parse(words))
        except SpecError as error:
            table.fail(name, str(error))
        except ValueError:
            table.fail(name, f"{words!r} are several metrics: each has a line and a name")
        metrics[name] = metric
    if not metrics:
        table.fail("", 'there is no metric: write [metrics], and below it auc = "ROCAUC"')
    known = {name for metric in metrics.values() for name in metric.inputs} | {"sample_weight"}
    for key, value in inputs.items():
        if key not in known:
            columns.fail(key, f"no metric reads it{near(key, sorted({*known, *_OWN}))}")
        if not isinstance(value, str):
            columns.fail(key, 'expected the name of a column in quotes, as "score"')
    try:
        return MetricSet(metrics, columns=dict(inputs))
    except ValueError as error:
        columns.fail("", str(error))


def _check_apart(columns: Section, names: Names, suite: MetricSet) -> None:
    """Raise if one column of an event would have two meanings."""
    read = {title: name for name, title in suite.columns.items()}
    read |= {suite.columns.get(name, name): name for name in suite.inputs}
    if "kind" in read:
        columns.fail(read["kind"], f"'kind' is reserved for the type of an event: {_RENAME}")
    for key in _OWN:
        name = getattr(names, key)
        if not name:
            columns.fail(key, "expected the name of a column")
        if name == "kind":
            columns.fail(key, f"'kind' is reserved for the type of an event: {_RENAME}")
        if name in read:
            columns.fail(key, f"{name!r} is also what is read as {read[name]}: {_RENAME}")
    if len({names.id, names.time, names.version}) < 3 or names.label_time == names.id:
        columns.fail("id", "id, time and version are columns of their own")


def _options(table: Section, suite: MetricSet, names: Names) -> Options:
    tiers = table.take("tiers", list, DEFAULT)
    try:
        tiers_of(tiers)
    except (ValueError, TypeError) as error:
        table.fail("tiers", str(error))
    options: Options = {"tiers": tiers}
    defaults = {"label_ttl": "1d", "label_lateness": "1d", "dedupe": DEDUPE, "max_ahead": "10min"}
    for key, default in defaults.items():
        options[key] = _duration(table, key, default)
    options["max_pending"] = table.take("max_pending", int, 10_000_000)
    if options["max_pending"] < 1:
        table.fail("max_pending", "expected 1 or more")
    options["default_label"] = _label(table, suite)
    options["store"] = table.output("store")
    options["max_store"] = table.size("max_store", 0) or None
    if options["max_store"] and options["store"] is None:
        table.fail("max_store", "there is no store: remove it, or name one")
    options["by"] = _by(table, names)
    options["durable"] = table.take("durable", bool, False)
    if options["durable"] and options["store"] is None:
        table.fail("durable", "there is no store to write to: remove it, or name one")
    options["labels"] = table.take("labels", list)
    options["types"] = table.table("types").rest()
    options["target_range"] = _range(table)
    options["proxy"] = table.take("proxy", str)
    if options["proxy"] in {"kind", names.id, names.time}:
        table.fail("proxy", f"{options['proxy']!r} is of the event itself: {_RENAME}")
    table.end()
    return options


def _letters(table: Section, name: str) -> str | None:
    """Return the file for refused events, ``None`` if requests with one are refused."""
    own = f"refused-{name}.jsonl" if name else "refused.jsonl"
    policy: str = table.take("on_invalid", str, _POLICIES[0])
    file = table.output("dead_letter", own)
    if policy not in _POLICIES:
        table.fail("on_invalid", f"no policy {policy!r}{near(policy, _POLICIES)}")
    return file if policy == "dead_letter" else None


def _by(table: Section, names: Names) -> list[list[KeySpec]]:
    """Return the columns of each kind of slices."""
    found = table.take("by", list, [])
    if not all(isinstance(spec, list) and all(isinstance(c, str) for c in spec) for spec in found):
        table.fail("by", 'expected lists of columns: [["country"], ["country", "device"]]')
    try:
        kinds = [[column_of(text) for text in spec] for spec in found]
    except ValueError as error:
        table.fail("by", str(error))
    for column in (title_of(column) for spec in kinds for column in spec):
        if column in {"kind", names.id, names.time}:
            table.fail("by", f"{column!r} is of the event itself, no slice: {_RENAME}")
    return kinds


def _label(table: Section, suite: MetricSet) -> object:
    label = table.take("default_label", object)
    if label is not None and not isinstance(label, int | float | str | bool):
        table.fail("default_label", "expected a label: a number, text in quotes, true or false")
    if label is not None and not truth_of(suite):
        table.fail("default_label", "these metrics read no label")
    return label


def _duration(table: Section, key: str, default: str) -> str:
    text: str = table.take(key, str, default)
    try:
        duration(text, key)
    except ValueError:
        table.fail(key, f'{text!r} is not a duration: write "90s", "5min", "1h" or "7d"')
    return text


def _range(table: Section) -> tuple[float, float] | None:
    between = table.take("target_range", list)
    good = between is None or (
        len(between) == 2
        and all(type(end) in {int, float} for end in between)
        and between[0] < between[1]
    )
    if not good:
        table.fail("target_range", "expected the least and the largest target, as [0, 100]")
    return None if between is None else (between[0], between[1])


def _view(table: Section, title: str, options: Options, suite: MetricSet) -> PageView:
    window, every = _duration(table, "window", "1h"), _duration(table, "every", "5min")
    try:
        spans_of(tiers_of(options["tiers"]), window, every, 0, 0, 0)
    except ValueError as error:
        table.fail("every" if str(error).startswith("every") else "window", str(error))
    between = _range(table) or options["target_range"]
    groups, references = _groups(table, suite), _references(table, suite)
    table.end()
    return PageView(title, window, every, between, groups, references)


def _groups(table: Section, suite: MetricSet) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the groups of metrics; each metric is in one of them at most."""
    groups, seen = table.take("groups", dict, {}), set[str]()
    for title, names in groups.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            table.fail("groups", f'expected a list of metrics: {title} = ["{next(iter(suite))}"]')
        for name in names:
            if name not in suite:
                table.fail("groups", f"there is no metric {name!r}{near(name, suite)}")
            if name in seen:
                table.fail("groups", f"{name!r} is named twice: remove one")
            seen.add(name)
    return tuple((title, tuple(names)) for title, names in groups.items())


def _references(table: Section, suite: MetricSet) -> tuple[tuple[str, MetricSet], ...]:
    """Return the saved sets to compare with."""
    found = []
    for title, name in table.take("references", dict, {}).items():
        if not isinstance(name, str):
            table.fail("references", f'expected a file: "{title}" = "v1.state"')
        try:
            saved = load(table.beside(name))
        except (OSError, StreamMetricsError) as error:
            table.fail("references", f"{name!r} cannot be read: {error}")
        if not isinstance(saved, MetricSet):
            told = an(type(saved).__name__)
            table.fail("references", f"{name!r} is {told}, not a MetricSet: save one with these")
        shared = [metric for metric in saved if metric in suite]
        if not shared:
            told = f"{name!r} has none of these metrics, only {', '.join(map(repr, saved))}"
            table.fail("references", told)
        for metric in shared:
            if saved[metric]._key != suite[metric]._key:
                told = f"{metric!r} is {saved[metric]!r} in {name!r}, and {suite[metric]!r} here"
                table.fail("references", f"{told}: save one with the same parameters")
        found.append((title, saved))
    return tuple(found)
