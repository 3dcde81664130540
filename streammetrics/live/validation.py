"""Validation of events: declared types, and consistency with all earlier rows."""

from __future__ import annotations

import datetime
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from streammetrics.core.columns.batch import WEIGHT, near
from streammetrics.core.columns.column import EXACT, distinct
from streammetrics.core.columns.conversion import Column, as_column
from streammetrics.core.columns.labels import flat, one_kind
from streammetrics.core.columns.nested import Nested
from streammetrics.core.columns.objects import Objects
from streammetrics.core.columns.schema import joined_facts, reject, reject_present
from streammetrics.core.columns.scores import ScoredLabels
from streammetrics.core.errors import InvalidBatchError, StateFormatError, an
from streammetrics.live.events import SliceKeys, is_missing
from streammetrics.live.inputs import Inputs
from streammetrics.live.possible.judged import estimator_of, judged_batch
from streammetrics.live.possible.targets import check_range
from streammetrics.live.rows import batch_of, columns_of
from streammetrics.live.spans import metrics_of
from streammetrics.statistics.keys import KeyColumn
from streammetrics.statistics.spans import Tags

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
    from typing import Self

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.columns.schema import Facts, Kind, Rows, Schema
    from streammetrics.core.mergeable import Mergeable
    from streammetrics.core.types import ArrayLike, Arrays, ClassLabel, Document, Json
    from streammetrics.inference.estimated import Estimated
    from streammetrics.live.inputs import Input

    Type = str | int  # one of the names below, or the number of values per row


_BEYOND = 2.0**63  # labels are stored as int64
_TRUTHS = ("y_true", "labels_true", "relevance")


def truth_of(suite: Mergeable) -> str:
    """Return the user's name of the label column, "" if the metrics read no label."""
    renamed: Mapping[str, str] = getattr(suite, "columns", {})
    inputs = suite._plan.required
    return next((renamed.get(name, name) for name in _TRUTHS if name in inputs), "")


def kinds_of(suite: Mergeable) -> dict[str, Kind]:
    """Return the kind of each column, by the user's name."""
    renamed: Mapping[str, str] = getattr(suite, "columns", {})
    found: dict[str, Kind] = {}
    order: tuple[Kind, ...] = ("label", "id", "number")
    for schema in suite._plan.schemas:
        for name, kind in schema.kinds.items():
            title = renamed.get(name, name)
            found[title] = max(kind, found.get(title, kind), key=order.index)
    return {**{n: k for n, k in found.items() if not n.startswith("by/")}, **SliceKeys(suite).kinds}


def as_numbers(column: Column, name: str, kind: Kind) -> Column:
    """Return a column as the join stores it: numbers as floats, labels as integers or strings.

    A number that is missing becomes NaN. The label True becomes 1, and 3.0 becomes 3, so that the
    order of arrival does not matter.

    Raises:
        InvalidBatchError: float64 cannot represent an integer, or a label is invalid.
    """
    values = column.values
    if column.vocabulary is not None:
        return column
    if kind == "number":
        if values.dtype.kind in "iu" and values.size and np.abs(values.astype(float)).max() > EXACT:
            raise InvalidBatchError(
                f"{name} holds integers beyond 2**53, which a row that waits, or is kept by "
                "itself, does not hold: subtract an offset, or observe() without keep_rows"
            )
        numbers = values.astype(np.float64)
        if column.nulls is not None:
            numbers[column.nulls] = np.nan
        return Column(numbers, None, True)
    if values.dtype.kind == "f":
        if (missing := np.isnan(values)).any():
            reject(name, "is missing (NaN or null)", missing)
        if (wrong := (np.rint(values) != values) | (np.abs(values) >= _BEYOND)).any():
            reject(name, "is not a label (an integer, a boolean or a string)", wrong, values)
    if values.dtype.kind in "fb":
        return Column(values.astype(np.int64), column.nulls, True)
    return column


def stand_ins(suite: Mergeable, others: Mapping[str, object]) -> Iterator[Any]:
    """Yield candidates for a label, at least one of which fits if the predictions are valid."""
    for metric in metrics_of(suite).values():
        config = metric.config
        yield from config.get("labels") or ()
        if "pos_label" in config:
            yield 1 if config["pos_label"] is None else config["pos_label"]
    for name, value in others.items():
        column = as_column(value, name)[:1]
        if column.values.ndim == 1 and len(column):
            words = column.vocabulary
            first = (column.values if words is None else words[column.values])[0].item()
            if not is_missing(first):
                yield first
    yield from (1, 0)
    for name, value in others.items():  # a label for each prediction in a row
        values = as_column(value, name).values
        if values.ndim > 1:
            yield np.zeros_like(values[0], np.int64)


_GUESSES = {
    "number": Column(np.array([0.5]), None, True),
    "id": Column(np.array([0]), None, True),
}

_MANY = 1 << 16  # maximum number of labels to remember
_OF_LABELS = frozenset({"labels", "negative label", "columns of labels"})  # names of facts


class Checks:
    """Validates rows of a suite, including consistency with the facts of all earlier rows.

    Args:
        suite: The metrics.
        facts: Returns the facts of all rows in the state, whatever their origin.
        default: The label assumed for missing labels.
        declared: Raises if columns do not match their declaration.
        estimator: The metrics that are estimated, if there are judgments.
        inputs: The declared inputs.
        apart: Whether to check labels alone, not together with an earlier valid prediction.
    """

    def __init__(
        self,
        suite: Mergeable,
        facts: Callable[[], Sequence[Facts]],
        *,
        apart: bool = False,
        default: object = None,
        declared: Callable[[Mapping[str, Column]], None] | None = None,
        estimator: Estimated | None = None,
        inputs: Inputs | None = None,
    ) -> None:
        self._declared, self._estimator, self._inputs = declared, estimator, inputs or Inputs()
        self._suite, self._kinds, self._facts, self._apart = suite, kinds_of(suite), facts, apart
        self._truth, self._default = truth_of(suite), default
        self._plan = suite._plan
        self._feeds = self._plan.start.infos
        keys = SliceKeys(suite)
        self._keys, self._made = keys.kinds, keys.kinds.keys() | keys.titles
        self._example: dict[str, Column | list[object]] = {}  # a valid prediction

    def observed(self, columns: Mapping[str, ArrayLike]) -> bool:
        """Check rows; return whether they may be buffered.

        Raises:
            InvalidBatchError: The rows are invalid, or contradict earlier rows.
        """
        columns = self._of_metrics(columns)
        return self._agreed(*self._read(columns, _length(columns), columns.keys()))

    def _of_metrics(self, columns: Mapping[str, ArrayLike]) -> Mapping[str, ArrayLike]:
        """Return rows without inputs, and without judgments, which are validated as labels."""
        if self._inputs:
            self._inputs.take(columns, _length(columns))
            columns = self._inputs.rest(columns)
        if self._estimator is None:
            return columns
        batch, proxy = judged_batch(self._estimator, columns), self._estimator.proxy
        if self._declared is not None:
            self._declared({proxy: columns_of(batch)[proxy]})
        self._estimator._plan.read(batch)
        return {name: column for name, column in columns.items() if name != proxy}

    @property
    def facts(self) -> tuple[Facts, ...]:
        """The facts common to all validated rows."""
        return tuple([feed.facts for feed in self._feeds])

    @contextmanager
    def forgotten(self) -> Iterator[None]:
        """Forget, at the end, the facts of rows that were checked within."""
        before = self._feeds, self._example
        try:
            yield
        finally:
            self._feeds, self._example = before

    def predicted(self, columns: Mapping[str, ArrayLike]) -> bool:
        """Check rows without labels, using candidate labels; otherwise as `observed`."""
        columns = self._of_metrics(columns)
        n = _length(columns)
        first: InvalidBatchError | None = None
        others = {name: value for name, value in columns.items() if name not in self._made}
        for label in stand_ins(self._suite, others):
            try:
                stood_in = {**columns, self._truth: [label] * n}
                batch, rows = self._read(stood_in, n, columns.keys())
            except InvalidBatchError as error:
                first = first or error
                continue
            self._check_default(np.shape(label))
            waits = self._agreed(batch, tuple(map(self._without_label, self._plan.schemas, rows)))
            if n and not self._apart:
                self._example = {
                    name: _first(value) if name in self._keys else as_column(value, name)[:1]
                    for name, value in columns.items()
                }
            return waits
        assert first is not None
        try:
            raise first
        finally:
            del first  # its traceback references this frame: a reference cycle

    def _check_default(self, several: tuple[int, ...]) -> None:
        if several and self._default is not None:
            raise InvalidBatchError(
                f"labels have {several[0]} values a row, and default_label={self._default!r} is "
                "one: leave it away",
                self._truth,
            )

    def _read(
        self, columns: Mapping[str, object], n: int, given: Set[str]
    ) -> tuple[Batch, tuple[Rows, ...]]:
        """Read n rows; `given` names the columns that the caller passed."""
        batch = batch_of(self._suite, columns)
        if self._declared is not None:
            every = columns_of(batch)
            self._declared(
                {name: every[name] for name in every if name in given or name in self._made}
            )
        rows = self._plan.read(batch)
        if batch.n_rows != n:  # labels (B, T) would count as several rows
            raise InvalidBatchError(
                f"{self._truth} has {batch.n_rows / n:g} values a row: pass one label a row, each "
                "with its time",
                self._truth,
            )
        return batch, rows

    def labelled(self, columns: Mapping[str, object]) -> bool:
        """Check labels without their predictions; otherwise as `observed`."""
        (labels,) = columns.values()
        label = as_column(labels, self._truth)
        several = label.values.shape[1:]  # shape of the labels of a row
        self._check_default(several)
        example: dict[str, Any] = self._example or {
            name: [None] if name in self._keys else _guess(kind, label, several)
            for name, kind in self._kinds.items()
            if name not in {self._truth, WEIGHT}
        }
        same = np.zeros(len(label), np.intp)
        repeated = {
            name: value * len(same) if isinstance(value, list) else value[same]
            for name, value in example.items()
        }
        try:
            rows: Sequence[Rows]
            batch, rows = self._read({**repeated, **columns}, len(label), columns.keys())
        except InvalidBatchError as error:
            if several or self._example:
                raise
            if error.column == self._truth and not self._may_be_classes(label):
                raise
            return False  # the guessed prediction may be wrong: the join checks it later
        if not self._example:
            rows = [_with_facts(read, self._of_labels) for read in rows]
        return self._agreed(batch, rows)

    def _may_be_classes(self, label: Column) -> bool:
        """Return whether labels rejected beside one score per row may fit predictions (n, K)."""
        fields = [f for s in self._plan.schemas for f in s.fields if isinstance(f, ScoredLabels)]
        return bool(fields) and all(field.may_be_classes(label) for field in fields)

    def _agreed(self, batch: Batch, rows: Sequence[Rows]) -> bool:
        """Check rows against the facts of all others; return whether they may be buffered."""
        seen = zip(self._feeds, self._facts(), strict=True)  # including those of other workers
        infos = tuple(
            [feed._replace(facts=joined_facts(feed.facts, facts)) for feed, facts in seen]
        )
        self._feeds = self._plan.agreed(infos, rows)
        whole = all(read.n == batch.n_rows and not read.omitted for read in rows)
        return whole and not self._plan.can_refuse

    @property
    def _of_labels(self) -> frozenset[str]:
        """The names of the facts about labels."""
        return _OF_LABELS | {f"labels of {self._truth}"}

    def _without_label(self, schema: Schema, rows: Rows) -> Rows:
        """Return rows without the facts about the candidate label."""
        dropped = self._of_labels
        inside = [kind for name, kind in schema.kinds.items() if name not in self._made]
        if inside.count("label") > 1:  # other columns hold labels as well
            dropped = dropped - {"labels"}
        return _with_facts(rows, rows.facts.keys() - dropped)


class SeenValues:
    """Known valid values: the range of numbers, and the labels.

    Rows within them add no facts and need no check.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._ends: dict[str, tuple[float, float]] = {}
        self._labels: dict[str, set[ClassLabel]] = {}

    def covers(self, columns: Mapping[str, Column]) -> bool:
        """Return whether all values of rows are known labels or within the known ranges."""
        return all(self._covers(name, column) for name, column in columns.items())

    def _covers(self, name: str, column: Column) -> bool:
        if not _is_plain(column):
            return False
        if self._kinds.get(name, "number") == "number":
            low, high = self._ends.get(name, (1.0, 0.0))
            return bool(low <= column.values.min() and column.values.max() <= high)
        return bool(self._labels.get(name)) and _labels(column) <= self._labels[name]

    def learn(self, columns: Mapping[str, Column]) -> None:
        """Extend the known values by valid rows."""
        for name, column in columns.items():
            if not _is_plain(column):
                continue
            if self._kinds.get(name, "number") == "number":
                low, high = column.values.min(), column.values.max()
                least, most = self._ends.get(name, (low, high))
                self._ends[name] = min(low, least), max(high, most)
            else:
                labels = self._labels.setdefault(name, set())
                labels |= _labels(column)
                if len(labels) > _MANY:  # too many; check all labels from now on
                    labels.clear()


def _length(columns: Mapping[str, Any]) -> int:
    """Return the number of rows."""
    return next((len(column) for column in columns.values() if column is not None), 0)


def _guess(kind: str, label: Column, several: tuple[int, ...]) -> Column:
    """Return a plausible prediction with as many values per row as its label."""
    guess = _GUESSES.get(kind, label[:1])
    if kind == "number" and several:
        return Column(np.full((1, *several), 0.5), None, True)
    return guess


def _is_plain(column: Column) -> bool:
    return column.values.ndim == 1 and column.nulls is None and len(column) > 0


def _labels(column: Column) -> set[ClassLabel]:
    words = column.vocabulary
    return set((np.unique(column.values) if words is None else words).tolist())


def representative_rows(
    columns: Mapping[str, Column], kinds: Mapping[str, str]
) -> Mapping[str, Column]:
    """Return representative rows: one for each label, and the extremes of numbers.

    Valid numbers form an interval, so that checking the smallest and the largest is enough.
    """
    rows = [np.zeros(1, np.intp)]
    for name, column in columns.items():
        values = column.values
        if not _is_plain(column):
            return columns
        if kinds.get(name, "number") == "number":
            rows.append(np.array([values.argmin(), values.argmax()]))
        else:
            rows.append(distinct(values)[1])
    some = np.unique(np.concatenate(rows))
    return {name: column[some] for name, column in columns.items()}


def _with_facts(rows: Rows, names: Set[str]) -> Rows:
    """Return rows with only the given facts."""
    return rows._replace(facts={name: f for name, f in rows.facts.items() if name in names})


def _first(keys: Any) -> list[object]:
    """Return the first key of a column as a list of one Python object."""
    first = keys[:1]
    for name in ("to_pylist", "to_list", "tolist"):  # Arrow; pandas and polars; NumPy
        if hasattr(first, name):
            return list(getattr(first, name)())
    return list(first)


_SAMPLES: dict[str, object] = {
    "text": "a", "integers": 1, "booleans": True, "dates": datetime.date(2000, 1, 1),
}  # fmt: skip
_NUMBERS = (0.5, 1.0, 2.0, 0.0)  # at least one of them is valid in most columns
_MOST = 2**20  # maximum numbers per row, and cells of the example rows
_KEY_TYPES = {"true or false": "booleans"}  # by their names in the facts of slices
_BOTH = {"booleans", "integers"}  # labels and ids may be either: True is 1
_CLASSES = frozenset(
    {"y_true", "y_pred", "sample", "labels", "labels_true", "labels_pred", "true_labels",
     "pred_labels"}
)  # fmt: skip


class Declared:
    """The declared classes of the label, types of columns, and range of targets.

    Args:
        suite: The metrics.
        labels: The classes of the label. Defaults to those that the metrics name; otherwise to 0
            and 1 if a metric judges two classes by one score; otherwise any label of the type is
            valid.
        types: The types of columns: ``"text"``, ``"integers"``, ``"booleans"`` or ``"dates"``, or
            the number of values per row. By default slices and ids are text, classes are integers,
            and all other columns have one number per row. ``"number"`` means one number. It
            declares that all predictions, and observations with ids, have weights.
        target_range: The smallest and the largest target of a regression.
        proxy: The column of judgments, which are declared as the label is.
        inputs: The inputs.

    Raises:
        ValueError: A parameter does not fit the metrics; the message says what to pass.

    Attributes:
        kinds: The kind of each column, by the user's name.
        estimator: The metrics that are estimated with judgments, ``None`` without a proxy.
        inputs: The declared inputs.
        weights: The user's name of the weight column.
        facts: The facts of valid rows for each schema; empty if no example row can be built, e.g.
            for boxes, so that the first rows determine them.
    """

    def __init__(
        self,
        suite: Mergeable,
        labels: Sequence[ClassLabel] | None = None,
        types: Mapping[str, Type] | None = None,
        target_range: tuple[float, float] | None = None,
        proxy: str | None = None,
        inputs: Sequence[Input] = (),
    ) -> None:
        self._suite, self._keys, self.proxy = suite, SliceKeys(suite), proxy
        self.kinds = kinds_of(suite)
        self._truth = truth_of(suite) or self._title("sample")  # the column of classes, if any
        inner = self._keys.inner
        tags = {
            self._title(title)
            for schema in inner._plan.schemas
            for field in schema.fields
            if isinstance(field, Tags)
            for title in field.names
        }
        # Columns of classes, excluding ids, texts and slice keys.
        self._class_columns = ({*map(self._title, _CLASSES)} - tags) & kinds_of(inner).keys()
        self._prepared = {self._title(name): what for name, what in _prepared(inner).items()}
        self.weights = _weights(suite)
        self.estimator: Estimated | None = None
        if proxy is not None:
            self._declare_judgments(proxy)
        self._given = _types(types, {*self.kinds, self.weights})
        if proxy is not None and self._truth in self._given:
            self._given.setdefault(proxy, self._given[self._truth])
        if target_range is not None and self.kinds.get(self._truth) != "number":
            raise ValueError(
                "target_range is for regressions: these metrics do not read a target of numbers"
            )
        check_range(target_range)
        self.target_range = target_range and (float(target_range[0]), float(target_range[1]))
        self.labels, self._ignored = self._classes(labels)
        self._check_types()
        self.inputs = Inputs(inputs, {*self.kinds, self.weights})
        self._check_inputs()
        self.facts = self._facts()
        self._optional = {self._title(name): self._waits(name) for name in suite._plan.optional}

    def _declare_judgments(self, proxy: str) -> None:
        """Declare the column of judgments as the label is."""
        self.estimator = estimator_of(self._keys.inner, proxy)
        if proxy in {*self.kinds, self.weights, "id", "time"}:
            raise ValueError(f"proxy={proxy!r} is also read as another column: rename one of them")
        self.kinds[proxy] = self.kinds[self._truth]
        if self._truth in self._class_columns:
            self._class_columns |= {proxy}

    def _check_inputs(self) -> None:
        """Raise if no prediction can have an input, or a name has two meanings."""
        for name in metrics_of(self._keys.inner):
            if self.inputs.suite is not None and name in self.inputs.suite:
                raise ValueError(f"inputs: {name!r} is also the name of a metric: rename one")
        for name in (one.name for one in self.inputs.every if one.name in self.kinds):
            if name == self._truth and name not in self._keys.kinds:
                raise ValueError(f"inputs: {name!r} is the label, which predictions do not have")
            if isinstance(what := self._type(name), int) and what > 1:
                raise ValueError(f"inputs: {name!r} has {what} numbers a row, and an input has one")

    def described(self) -> Document:
        """Return the declaration for a file, defaults included."""
        types = {name: self._type(name) for name in self.kinds}
        if self._has_weights:
            types[self.weights] = 1
        return {
            "labels": None if self.labels is None else sorted(self.labels),
            "types": dict(sorted(types.items())),
            "target_range": self.target_range and [*map(repr, self.target_range)],
            **({} if self.proxy is None else {"proxy": self.proxy}),
            **({"inputs": self.inputs.described()} if self.inputs else {}),
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Declared) and self.described() == other.described()

    def __hash__(self) -> int:
        return hash(str(self.described()))

    @classmethod
    def read(cls, suite: Mergeable, told: Mapping[str, Json], references: Arrays) -> Self:
        """Return the declaration described in a file, with the references of its inputs.

        Raises:
            StateFormatError: It does not fit the metrics.
        """
        limits = told["target_range"]
        try:
            target_range = limits and tuple(map(float, limits))
            inputs = Inputs.read(told["inputs"], references) if "inputs" in told else ()
            types, proxy = dict(told["types"]), told.get("proxy")
            return cls(suite, told["labels"], types, target_range, proxy, inputs)
        except (TypeError, ValueError) as error:
            raise StateFormatError(f"the state has an invalid declaration: {error}") from error

    @property
    def _has_weights(self) -> bool:
        """Whether predictions have weights; either all have, or none."""
        return self.weights in self._given or WEIGHT in self._renamed

    # --- declaration ---------------------------------------------------------------------------

    @property
    def _renamed(self) -> Mapping[str, str]:
        """The user's names of inputs that the set's `columns` names."""
        renamed: Mapping[str, str] = getattr(self._suite, "columns", {})
        return renamed

    def _title(self, name: str) -> str:
        """Return the user's name of an input of the metrics."""
        return self._renamed.get(name, name)

    def _classes(
        self, given: Sequence[ClassLabel] | None
    ) -> tuple[tuple[ClassLabel, ...] | None, tuple[ClassLabel, ...]]:
        """Return the classes of the label, ``None`` if any are valid, and the ignored ones."""
        schemas = self._keys.inner._plan.schemas
        fields: list[Any] = [
            field for schema in schemas for field in schema.fields if _reads_classes(field)
        ]
        ignored: set[Any] = {getattr(field, "ignore_index", None) for field in fields} - {None}
        judged = [field for field in fields if isinstance(field, ScoredLabels)]
        known = next((labels for field in fields if (labels := _labels_of(field))), None)
        if given is not None:
            if not fields:
                raise ValueError("labels= are classes, and these metrics read no class")
            known = one_kind(tuple(given))
        if known is not None:
            for field in judged:
                _check_judged(field, known)
        width = self._given.get(self._title("y_score"), 1)
        if known is None and judged:
            if isinstance(width, int) and width > 1:
                known = tuple(range(width))
            elif not all(field.matrix for field in judged):
                known = _two_classes(judged[0])
        return known, tuple(ignored)

    def _type(self, name: str) -> Type:
        """Return the type of a column: a name, or the number of values per row."""
        if name in self._given:
            return self._given[name]
        if self.kinds[name] == "number":
            several = self.labels is not None and len(self.labels) > 2
            return len(self.labels or ()) if several and name == self._title("y_score") else 1
        if name not in self._class_columns:
            return self._prepared.get(name, "text")
        return "text" if self._has_words else "integers"

    def _check_types(self) -> None:
        """Raise if a column is declared with a type that its readers cannot read."""
        inside = kinds_of(self._keys.inner)
        for name, kind in self._keys.kinds.items():
            reads_numbers = inside.get(name) == "number"
            if kind == "label" and reads_numbers and self._type(name) not in _BOTH:
                raise ValueError(
                    f"by names {name!r}, from which a metric reads numbers: slice by bins, "
                    f"sm.Bins({name!r}, [0.5]), or declare types={{{name!r}: 'integers'}} if all "
                    "are whole numbers"
                )
            if kind == "number" and name in self._class_columns and self._has_words:
                raise ValueError(
                    f"by has bins of {name!r}, which is text: slice by {name!r} itself"
                )
        for name, what in self._given.items():
            read = self._truth if name == self.proxy else name
            if why := self._unreadable(name, what, inside.get(read)):
                raise ValueError(f"types: {name} is {what!r}, and {why}")

    def _unreadable(self, name: str, what: Type, kind: Kind | None) -> str:
        """Return why a column cannot have the declared type and what to do; "" if it can."""
        if name == self.weights and name not in self.kinds:
            number = f"weights are one number a row: types={{{name!r}: 'number'}}"
            return "" if what == 1 else number
        sliced, is_word = self._keys.kinds.get(name), isinstance(what, str)
        is_class, why = name in self._class_columns, ""
        if sliced == "number" and what != 1:
            why = "bins of it are of one number a row"
        elif sliced == "label" and not is_word:
            why = "slices by it need one value a row"
        elif kind == "number" and is_word and sliced is None:
            why = "a metric reads numbers from it"
        elif kind and kind != "number" and what == "dates":
            why = "a metric reads text or integers from it"
        elif is_class and is_word and self.labels and (what == "text") != self._has_words:
            why = f"the classes are labels={[*self.labels]!r}"
        elif kind and kind != "number" and not is_class and not is_word and what != 1:
            why = "a metric reads one text or integer a row from it"
        return why and f"{why}: leave out {name!r}"

    @property
    def _has_words(self) -> bool:
        """Whether the classes are text."""
        return self.labels is not None and isinstance(self.labels[0], str)

    def _facts(self) -> tuple[Facts, ...]:
        """Return the facts of rows that match the declaration.

        Raises:
            ValueError: Rows match, but none with a target within `target_range`.
        """
        found, _ = self._tried([self._example(number) for number in _NUMBERS])
        if found is None or self.target_range is None or self._type(self._truth) != 1:
            return found or self._no_facts
        low, high = self.target_range
        targets = [low, high, *(min(max(number, low), high) for number in _NUMBERS)]
        rows = [{**self._example(1.0), self._truth: [target]} for target in targets]
        within, errors = self._tried(rows)
        if within is None:
            raise ValueError(f"target_range={self.target_range!r} has no target: {errors[0]}")
        return found

    def misfit(self) -> str:
        """Return why no row can match the declaration, whatever its numbers; "" if one can."""
        fields = [field for schema in self._suite._plan.schemas for field in schema.fields]
        if any(field.nested or field.preparation for field in fields):
            return ""  # nested columns, and texts that a preparation reads, have no example
        found, errors = self._tried([self._example(number) for number in _NUMBERS])
        # An error with a row number is about a value; other values may be valid.
        return next((str(e) for e in errors if e.row is None), "") if found is None else ""

    def _waits(self, name: str) -> bool:
        """Return whether rows that wait have an optional column: all have it, or none."""
        title = self._title(name)
        if (name == WEIGHT and self._has_weights) or name in self._renamed:
            return True
        if title not in self.kinds or title in self._keys.kinds:
            return title in self.kinds
        examples = [*map(self._example, _NUMBERS)]
        if self._tried(examples)[0] is None:
            return False
        # Metrics may refuse rows without it where others have it, or without another one.
        without = [{n: c for n, c in example.items() if n != title} for example in examples]
        return self._tried(without, self.facts)[0] is None

    def _tried(
        self, examples: Iterable[dict[str, Any]], known: Sequence[Facts] = ()
    ) -> tuple[tuple[Facts, ...] | None, list[InvalidBatchError]]:
        """Return the facts of the first valid example, and the errors of those before it."""
        errors = []
        for example in examples:
            checks = Checks(self._suite, lambda: known or self._no_facts, estimator=self.estimator)
            try:
                checks.observed(example)
            except InvalidBatchError as error:
                errors.append(error)
            else:
                return checks.facts, errors
        return None, errors

    @property
    def _no_facts(self) -> tuple[Facts, ...]:
        return tuple({} for _ in self._suite._plan.schemas)

    def _example(self, number: float) -> dict[str, Any]:
        """Return rows that match the declaration, one for each class as far as they fit."""
        types = {name: self._type(name) for name in self.kinds}
        widest = max([what for what in types.values() if isinstance(what, int)], default=1)
        n = min(len(self.labels or (0,)), max(1, _MOST // widest))
        found: dict[str, Any] = {}
        for name, kind in self.kinds.items():
            what = types[name]
            if isinstance(what, int) and what > 1:
                one = np.full(what, 1 / what) if kind == "number" else np.eye(1, what, dtype=int)[0]
                found[name] = np.tile(one, (n, 1))
            elif isinstance(what, int):
                found[name] = [number if kind == "number" else 1] * n
            else:
                classes = self.labels if name in self._class_columns else None
                found[name] = [*(classes or [_SAMPLES[what]] * n)][:n]
        return found | ({self.weights: [1.0] * n} if self._has_weights else {})

    def check_default(self, label: object) -> None:
        """Raise unless `default_label` is a valid label."""
        if label is None:
            return
        amiss = ""
        if self.labels and label not in self.labels:
            amiss = f"{self._truth} is one of {[*self.labels]!r}"
        if self.target_range is not None and isinstance(label, int | float):
            low, high = self.target_range
            if not low <= label <= high:
                amiss = f"target_range is [{low:g}, {high:g}]"
        if amiss:
            raise ValueError(f"default_label={label!r} is not a valid label here: {amiss}")

    # --- events --------------------------------------------------------------------------------

    def check(self, columns: Mapping[str, Column]) -> None:
        """Raise unless columns match the declaration.

        Raises:
            InvalidBatchError: The message names the row, its value and the declaration.
        """
        for name, column in columns.items():
            if not len(column):
                continue
            if isinstance(column, KeyColumn):
                for fact, kind in (column.facts or {}).items():
                    found: Any = _KEY_TYPES.get(kind, kind)
                    self._check_type(fact.removeprefix("by "), found)
            elif name in self.kinds:
                self._check_column(name, _held(name, column))

    def one_a_row(self, column: Column, name: str) -> Column:
        """Return a column (n, 1) as (n,) if rows with one value are valid: both hold the same."""
        return flat(column, name) if column.values.shape[1:] == (1,) and any(self.facts) else column

    def check_optional(self, columns: Collection[str], *, observed: bool = False) -> None:
        """Raise if rows that wait have an undeclared optional column, or lack a declared one.

        Args:
            columns: The names of the columns.
            observed: Whether the rows are observations with ids, and not predictions.
        """
        for name, is_declared in self._optional.items():
            if name in columns and not is_declared:
                how = f"types={{{name!r}: 'number'}}"
                if name != self.weights:
                    how = f"columns={{{name!r}: {name!r}}} of the set"
                raise InvalidBatchError(
                    f"{'observations with ids' if observed else 'predictions'} come without "
                    f"{name!r} here: {how} would declare that all have it",
                    name,
                )
            if is_declared and name not in columns:
                one = "an observation with an id" if observed else "a prediction"
                raise InvalidBatchError(f"{one} has no {name!r}, and all are declared to", name)

    def _check_type(self, name: str, found: Type) -> None:
        declared = self._type(name)
        if found != declared and {found, declared} != _BOTH:
            advice = f"types={{{name!r}: {found!r}}} would declare this"
            if (found, declared) == ("text", "dates"):
                advice = f"as text, a date is written 2000-01-31T00:00:00, and {advice}"
            if self.labels is not None and name in self._class_columns and isinstance(found, str):
                advice = f"declared are labels={[*self.labels]!r}"
            raise InvalidBatchError(
                f"{name} has {_said(found)}, first in row 0, and is declared to have "
                f"{_said(declared)}: {advice}",
                name,
                0,
            )

    def _check_column(self, name: str, column: Column) -> None:
        values, missing = column.values, column.nulls
        if values.dtype.kind == "f" and np.isinf(values).any():
            reject(name, "is infinite", np.isinf(values), values)
        if self.kinds[name] == "number" or isinstance(self._type(name), int) or values.ndim > 1:
            self._check_type(name, 1 if values.ndim == 1 else values.shape[1])
        elif name not in self._keys.kinds:
            flat = column.flat if isinstance(column, Nested) else column
            if len(flat):
                self._check_type(name, "integers" if flat.vocabulary is None else "text")
        if name not in {self._truth, self.proxy} or values.ndim > 1 or isinstance(column, Nested):
            return
        if values.dtype.kind == "f":
            absent = np.isnan(values)
            missing = absent if missing is None else missing | absent
        if self.target_range is not None:
            low, high = self.target_range
            wrong = (values < low) | (values > high)
            what = f"is outside [{low:g}, {high:g}], the declared target_range,"
            reject_present(name, what, wrong, missing, values)
        if self.labels is not None:
            texts = column.vocabulary
            shown = values if texts is None else texts[np.maximum(values, 0)]
            wrong = ~np.isin(shown, np.array([*self.labels, *self._ignored]))
            advice = f"declared are labels={[*self.labels]!r}"
            reject_present(name, "is none of the classes", wrong, missing, shown, advice=advice)


def _reads_classes(field: Any) -> bool:
    return any(field.kinds.get(name) == "label" for name in ("y_true", "sample"))


def _labels_of(field: Any) -> tuple[ClassLabel, ...] | None:
    """Return the classes that a metric's parameters name, if no others are valid."""
    allowed = None if getattr(field, "others", False) else getattr(field, "allowed", None)
    return getattr(field, "labels", None) or allowed


def _check_judged(field: ScoredLabels, classes: tuple[ClassLabel, ...]) -> None:
    """Raise if a score metric cannot judge these classes."""
    if field.matrix or field.labels is not None:
        return
    if len(classes) != 2 and not field.scores.wide:
        raise ValueError(
            f"labels={[*classes]!r}: one score a row judges two classes, not {len(classes)}"
        )
    if len(classes) == 2 and not _names_positive(field.pos_label, classes):
        which = f"pos_label={field.pos_label!r} is not among them"
        if field.pos_label is None:
            which = f"say which is positive, pos_label={classes[-1]!r} or another"
        raise ValueError(f"labels={[*classes]!r}: {which}")


def _names_positive(positive: ClassLabel | None, classes: tuple[ClassLabel, ...]) -> bool:
    """Return whether the positive class is known; of 0, 1 and -1, it is 1 by default."""
    if positive is None:
        return set(classes) in ({0, 1}, {-1, 1})
    return positive in classes


def _two_classes(field: ScoredLabels) -> tuple[ClassLabel, ...]:
    """Return two classes, one of which is positive."""
    positive = field.pos_label
    if positive is None or positive in {0, 1}:
        return (0, 1)
    if positive == -1:
        return (-1, 1)
    other = "other" if isinstance(positive, str) else 0
    raise ValueError(
        f"{field.pair.parameter}={positive!r} is one of two classes: name both, "
        f"labels=[{other!r}, {positive!r}]"
    )


def _weights(suite: Mergeable) -> str:
    """Return the user's name of the weight column."""
    renamed: Mapping[str, str] = getattr(suite, "columns", {})
    return renamed.get(WEIGHT, WEIGHT)


_HELD = "events hold text, numbers, booleans and dates"


def _held(name: str, column: Column) -> Column:
    """Return a column of plain values; raise if it holds objects that no event can hold."""
    if not isinstance(column, Objects):
        return column
    types = (*map(type, _SAMPLES.values()), float, np.generic, type(None))
    for row, item in enumerate(column.items):
        if not isinstance(item, types):
            what = an(type(item).__name__)
            message = f"{name} has {what} in row {row}, and {_HELD}: pass one of these"
            raise InvalidBatchError(message, name, row)
    return as_column(column.items.tolist(), name)


def _prepared(suite: Mergeable) -> dict[str, Type]:
    """Return the types of the columns that metrics prepare, by their annotations.

    Raises:
        ValueError: A preparation takes objects that no event can hold.
    """
    types: dict[object, Type] = {type(sample): name for name, sample in _SAMPLES.items()}
    found: dict[str, Type] = {}
    fields = [field for schema in suite._plan.schemas for field in schema.fields]
    for made in [field.preparation for field in fields if field.preparation]:
        for name, of in made.items.items():
            if isinstance(of, type) and of not in {*types, float, object, Any}:
                raise ValueError(
                    f"{made.title} takes {name} as {an(of.__name__)}, and {_HELD}: take "
                    f"{name}: list[str] and make the object of it, or observe the columns of "
                    f"{made.of.cls.__name__} in a metric without @prepare"
                )
            found[name] = types.get(of, "text")
    return found


def _types(given: Mapping[str, Type] | None, known: set[str]) -> dict[str, Type]:
    """Return the declared types, validated."""
    found: dict[str, Type] = {}
    for name, what in (given or {}).items():
        if name not in known:
            raise ValueError(f"types: no metric or slice reads {name!r}{near(name, sorted(known))}")
        is_width = isinstance(what, int) and what is not True and what > 0
        if isinstance(what, int) and what > _MOST:
            raise ValueError(f"types: {name} has {what} numbers a row, and may have {_MOST:,}")
        if what not in (*_SAMPLES, "number") and not is_width:  # it may be unhashable
            names = ", ".join(map(repr, (*_SAMPLES, "number")))
            raise ValueError(
                f"types: {name} is {what!r}; expected {names}, or how many numbers a row has"
            )
        found[name] = 1 if what == "number" else what
    return found


def _said(what: Type) -> str:
    if isinstance(what, str):
        return what
    return "one value a row" if what == 1 else f"{what} values a row"
