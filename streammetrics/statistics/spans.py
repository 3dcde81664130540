"""Tagged sentences: counts of spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from streammetrics.core.columns.column import concatenate
from streammetrics.core.columns.schema import Schema
from streammetrics.core.columns.scores import PairedLists, reject_values
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.fields.tables import GroupedCells, PairTable
from streammetrics.core.fields.weights import WeightedCount
from streammetrics.core.statistic import Statistic

if TYPE_CHECKING:
    from streammetrics.core.columns.nested import Nested
    from streammetrics.core.types import Array, Bools, Floats, Ints, Places, ReadColumn


Scheme: TypeAlias = Literal["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU"]

_EACH = "the tags of a sentence"
_OUTSIDE = "O"


class _Rules(NamedTuple):
    """Pairs of adjacent prefixes with a condition on their types: = equal, ! different, ? any.

    A span starts between the prefixes of `start`, continues between those of `inside`, and may end
    between those of `end`; "*" matches any prefix.
    """

    prefixes: str
    start: str
    inside: str
    end: str


# As in seqeval.
_RULES: dict[str, _Rules] = {
    "IOB1": _Rules("IOB", "OI? II! BI? IB= BB=", "BI= II=", "II! IO? IB? BO? BI! BB="),
    "IOB2": _Rules("IOB", "*B?", "BI= II=", "IO? II! IB? BO? BI! BB?"),
    "IOE1": _Rules("IOE", "OI? II! EI? EE=", "II= IE=", "II! IO? IE! EI= EE="),
    "IOE2": _Rules("IOE", "OI? OE? EI? EE? II! IE!", "IE= II=", "E*?"),
    "IOBES": _Rules("IOBES", "*B? *S?", "BI= BE= II= IE=", "S*? E*?"),
    "BILOU": _Rules("BILOU", "*B? *U?", "BI= BL= II= IL=", "U*? L*?"),
}


@dataclass(frozen=True)
class Tags(PairedLists):
    """True and predicted tags of the tokens of sentences, of a tagging scheme if one is given."""

    scheme: Scheme | None = None
    suffix: bool = False

    nested = (("y_true", _EACH), ("y_pred", _EACH))
    unequal = "needs one tag for each of {true}"

    def check(self, title: str, column: Nested, missing: Bools | None) -> None:
        """Raise if a value is not a tag, or not one of the scheme."""
        texts = column.flat.vocabulary
        if texts is None:
            if len(column.flat):
                raise InvalidBatchError(
                    f"{title} does not hold text; a tag is a string, such as 'B-PER'"
                )
            return
        at = -1 if self.suffix else 0
        allowed = None if self.scheme is None else _RULES[self.scheme].prefixes
        bad = np.array([not t or (allowed and t[at] not in allowed) for t in texts.tolist()], bool)
        what = "has an empty tag"
        if self.scheme is not None:
            what = f"has a tag that is not of the scheme {self.scheme} ({', '.join(allowed or '')})"
        reject_values(title, what, bad[column.flat.values], column, missing)


class Spans(NamedTuple):
    """Spans: start and end positions among all tokens, and an index of the type."""

    starts: Places
    ends: Places
    types: Places


def spans_of(
    columns: tuple[Nested, Nested], scheme: Scheme | None, *, suffix: bool
) -> tuple[Spans, Spans, list[str]]:
    """Return the true spans, the predicted spans, and the sorted types.

    Without a scheme, spans are those of the CoNLL evaluation: a span starts or ends at a change of
    type, and at a tag that can only start or end one, regardless of adjacent tags.
    """
    flat = concatenate([column.flat for column in columns])
    texts = [] if flat.vocabulary is None else flat.vocabulary.tolist()
    prefixes, types = zip(*[_parts(t, scheme, suffix) for t in [*texts, _OUTSIDE]], strict=True)
    names = sorted(set(types))
    kinds = np.searchsorted(names, types)
    # An outside tag is inserted after every sentence.
    size, lengths = len(columns[0].flat), columns[0].values
    breaks = np.cumsum(lengths + 1) - 1
    found = []
    for codes in (flat.values[:size], flat.values[size:]):
        tags = np.full(size + lengths.size, len(texts), np.intp)
        tags[np.delete(np.arange(tags.size), breaks)] = codes
        find = _by_change if scheme is None else _Finder(_RULES[scheme])
        found.append(find(np.array(prefixes)[tags], kinds[tags]))
    return found[0], found[1], names


def _parts(tag: str, scheme: Scheme | None, suffix: bool) -> tuple[str, str]:
    """Return the prefix and the type of a tag, as seqeval does."""
    prefix, rest = (tag[-1], tag[:-1]) if suffix else (tag[0], tag[1:])
    if scheme is not None:
        return prefix, rest.strip("-") or "_"
    named = rest.rsplit("-", maxsplit=1)[0] if suffix else rest.split("-", maxsplit=1)[-1]
    return prefix, named or "_"


def _before(values: Array, first: object) -> Array:
    """Return the previous value of each element, `first` for the first one."""
    return np.concatenate([np.array([first], values.dtype), values[:-1]])


def _by_change(prefixes: Array, types: Places) -> Spans:
    before, kind = _before(prefixes, _OUTSIDE), _before(types, -1)
    is_in = [np.isin(each, list("O."), invert=True) for each in (before, prefixes)]
    changed = kind != types
    start = np.isin(prefixes, list("BS")) | (is_in[1] & changed)
    start |= np.isin(before, list("ESO")) & np.isin(prefixes, list("EI"))
    end = np.isin(before, list("ES")) | (is_in[0] & changed)
    end |= np.isin(before, list("BI")) & np.isin(prefixes, list("BSO"))
    ends = np.flatnonzero(end)
    first = np.maximum.accumulate(np.where(start, np.arange(start.size), 0))
    return Spans(first[ends - 1], ends, types[ends - 1])


class _Finder:
    """Finds the spans of a tagging scheme by its rules."""

    def __init__(self, rules: _Rules) -> None:
        self._rules = rules

    def __call__(self, prefixes: Array, types: Places) -> Spans:
        before, same = _before(prefixes, _OUTSIDE), _before(types, -1) == types
        start, inside, end = (_follows(pairs, before, prefixes, same) for pairs in self._rules[1:])
        # A run is a tag and those that continue it. A span goes from the first start to the end of
        # a run.
        runs = np.cumsum(~inside) - 1
        places = np.flatnonzero(start)
        _, first = np.unique(runs[places], return_index=True)
        starts = places[first]
        ends = np.append(np.flatnonzero(~inside), prefixes.size)[runs[starts] + 1]
        kept = end[np.minimum(ends, prefixes.size - 1)] & (ends < prefixes.size)
        return Spans(starts[kept], ends[kept], types[starts[kept]])


def _follows(pairs: str, before: Array, after: Array, same: Bools) -> Bools:
    """Return where the previous and the current prefix match one of the pairs."""
    found = np.zeros(after.size, np.bool_)
    for pair in pairs.split():
        one, other, types = tuple(pair)
        match = np.ones(after.size, np.bool_) if types == "?" else same == (types == "=")
        match &= (before == one) | (one == "*")
        found |= match & ((after == other) | (other == "*"))
    return found


_KINDS = 3  # true spans, predicted spans, and spans that are both


class SpanCounts(Statistic):
    """Counts of the spans of each type: true, predicted, and both (correct)."""

    scheme: Scheme | None = None
    suffix: bool = False
    nan_policy: NanPolicy = "raise"

    counts = PairTable(whole=True, of="spans")

    @property
    def schema(self) -> Schema:
        """The tags of sentences."""
        return Schema((Tags(self.scheme, self.suffix),), self.nan_policy, "metrics of spans")

    def update(self, *columns: ReadColumn, weight: Floats | None) -> None:
        """Count the spans of sentences."""
        true, pred, names = spans_of((columns[0], columns[1]), self.scheme, suffix=self.suffix)
        # Spans of one side never share an end.
        _, first, second = np.intersect1d(
            true.ends, pred.ends, assume_unique=True, return_indices=True
        )
        both = (true.starts[first] == pred.starts[second]) & (
            true.types[first] == pred.types[second]
        )
        types = np.concatenate([true.types, pred.types, true.types[first[both]]])
        sizes = [true.types.size, pred.types.size, int(both.sum())]
        kinds = np.repeat(np.arange(_KINDS), sizes)
        counts = np.bincount(types * _KINDS + kinds)
        found = np.flatnonzero(counts)
        amount = WeightedCount.of_counts(counts[found])
        pairs = GroupedCells(np.array(names), np.arange(_KINDS), found, amount)
        self.counts = type(self).counts.plus(self.counts, pairs.narrowed())

    def table(self) -> tuple[list[str], Ints]:
        """Return the types and their counts (n, 3)."""
        held = self.counts
        rows, columns = held.places
        table = np.zeros((len(held.row_labels), _KINDS), np.int64)
        table[rows, held.column_labels[columns]] = held.amount.counts
        return [str(name) for name in held.row_labels.tolist()], table

    def check_fields(self) -> None:
        """Check that correct spans do not outnumber true or predicted ones."""
        kinds, types = self.counts.column_labels, self.counts.row_labels
        if kinds.dtype != np.int64 or (kinds.size and not 0 <= kinds[0] <= kinds[-1] < _KINDS):
            raise StateFormatError("something else than spans is counted")
        if types.size and types.dtype.kind != "U":
            raise StateFormatError("the types of spans are not text")
        _, table = self.table()
        if (table[:, 2] > table[:, :2].min(axis=1)).any():
            raise StateFormatError("more spans are right than there are")
