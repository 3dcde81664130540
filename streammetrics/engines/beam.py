"""Apache Beam: a `CombineFn`, for the whole of a PCollection, for each key and for each window.

Beam combines before it shuffles, merges in any tree, and merges again where it retries; between
workers go states, never rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from streammetrics.core.columns.batch import n_rows
from streammetrics.core.errors import InvalidBatchError, an, needs
from streammetrics.core.metric_set import MetricSet
from streammetrics.engines.shards import blank, located

if TYPE_CHECKING:
    from streammetrics.core.types import Foreign

with needs("apache-beam"):
    import apache_beam as beam

Row: TypeAlias = dict[str, Any]
Accumulator: TypeAlias = tuple[MetricSet, list[Row]]  # the state, and rows not yet in it

_ROWS = 1024  # that wait to go in together, as a batch costs little more than a row


@beam.typehints.with_input_types(Any)
@beam.typehints.with_output_types(MetricSet)
class CombineMetrics(beam.CombineFn):  # type: ignore[misc]  # Beam need not be there
    """Combine rows, or tables of rows, to a filled set of metrics.

    An element is a row or a table:

    - a row is a mapping of scalars, a `beam.Row` or a NamedTuple. A column that may be left out,
      such as the weight, may be there in some rows and not in others. Beside a scalar, a value may
      be a vector, such as the scores of the classes;
    - a table is a mapping of arrays, a pandas or polars DataFrame, an Arrow Table or RecordBatch,
      and so is a mapping of vectors alone: one row of several outputs has arrays of shape (1, d).
      Tables are much faster, as most of what a row costs is Beam's own work for an element.

    Args:
        suite: The metrics, not yet fed; they stay so. A metric of your own must be defined in a
            module that the workers can import.

    Raises:
        IncompatibleMetricsError: The set has already been fed.

    An element that cannot be taken fails its bundle with an InvalidBatchError that shows the row,
    or says which one of the table it is; the runner retries the bundle, or fails the pipeline with
    that message.

    Memory is one state and at most 1 024 rows for each key that a worker combines at the time.

    Example::

        rows | beam.CombineGlobally(CombineMetrics(suite)) | beam.Map(lambda s: s.compute())

        by_country = keyed | beam.CombinePerKey(CombineMetrics(suite))
        by_country | beam.MapTuple(lambda country, s: (country, s.compute())) | beam.Map(print)
    """

    def __init__(self, suite: MetricSet) -> None:
        self._suite = blank(suite)
        self._titles = list(dict.fromkeys(suite._titles.values()))
        self._seen: list[str] | None = None  # the columns of the last row

    def create_accumulator(self) -> Accumulator:
        """Return an empty state."""
        return self._suite.copy(), []

    def add_input(self, mutable_accumulator: Accumulator, element: object) -> Accumulator:
        """Take a row or a table."""
        state, rows = mutable_accumulator
        if hasattr(element, "_asdict"):
            element = element._asdict()
        row = self._row(element) if isinstance(element, Mapping) else None
        if row is None:
            with located(f"{an(type(element).__name__)} of {n_rows(element):,} rows", 0, "table"):
                state.update(element)
        else:
            rows.append(row)
            if len(rows) >= _ROWS:
                _feed(state, rows)
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[Accumulator]) -> Accumulator:
        """Merge states; only the first accumulator changes."""
        first, *others = accumulators
        state, rows = first
        state.merge(*(other for other, _ in others))
        for _, more in others:
            rows.extend(more)
            if len(rows) >= _ROWS:
                _feed(state, rows)
        return first

    def compact(self, accumulator: Accumulator) -> Accumulator:
        """Feed the rows that wait, so that the state alone is shipped."""
        _feed(*accumulator)
        return accumulator

    def extract_output(self, accumulator: Accumulator) -> MetricSet:
        """Return the filled set, which a later pane of the window does not change."""
        _feed(*accumulator)
        return accumulator[0].copy()

    def _row(self, element: Mapping[str, object]) -> Row | None:
        """Return what the metrics take of a row, or nothing where it is a table."""
        row = {title: element[title] for title in self._titles if title in element}
        values = [value for value in row.values() if value is not None]
        if values and all(hasattr(v, "__len__") and not isinstance(v, str) for v in values):
            return None
        names = list(row)
        if names != self._seen:
            self._suite._reads(element)  # or it raises, and says which columns there are
            self._seen = names
        return row


class AsAttempts(beam.DoFn):  # type: ignore[misc]  # Beam need not be there
    """Name the states of windows for a `Ledger`: the window is the shard, its pane the attempt.

    Where late rows come, an accumulating trigger fires a window again, with all of its rows: a
    pane with a larger index, which replaces the earlier ones however often, and in whatever order,
    they arrive. With discarding panes each is a part of the window, and would
    wrongly replace the others.

    An element is a state, or a pair of a key and a state; out come ``(shard, attempt, state)``,
    for ``ledger.add(shard, state, attempt=attempt)``. A shard is ``"START/END"``, in seconds, with
    the key before it where there is one.

    Example::

        states = (
            rows
            | beam.WindowInto(
                FixedWindows(60), trigger=AfterWatermark(late=AfterCount(1)),
                accumulation_mode=AccumulationMode.ACCUMULATING, allowed_lateness=3600)
            | beam.CombineGlobally(CombineMetrics(suite)).without_defaults()
            | beam.ParDo(AsAttempts()))
    """

    def process(
        self,
        element: object,
        window: Foreign = beam.DoFn.WindowParam,
        pane: Foreign = beam.DoFn.PaneInfoParam,
    ) -> Iterable[tuple[str, int, MetricSet]]:
        """Yield the state with its shard and attempt."""
        key, state = element if isinstance(element, tuple) else (None, element)
        start, end = (int(time.micros // 10**6) for time in (window.start, window.end))
        shard = f"{start}/{end}" if key is None else f"{key} {start}/{end}"
        yield shard, pane.index, state


def _feed(state: MetricSet, rows: list[Row]) -> None:
    """Bring rows to the state, those of the same columns together."""
    while rows:
        names = tuple(rows[0])
        alike = [row for row in rows if tuple(row) == names]
        try:
            state.update({name: [row[name] for row in alike] for name in names})
        except InvalidBatchError as error:
            # Where the row lay among those that waited says nothing to the user: show it.
            row, found = alike[error.row or 0], f"in row {error.row}"
            text = str(error).replace(found, f"in {row}", 1)
            more = "" if found in str(error) else f"; in rows such as {row}"
            raise InvalidBatchError(text + more, error.column) from None
        rows[:] = [row for row in rows if tuple(row) != names]
