"""Statistics of texts: edits, shifts, n-grams and answers."""

from __future__ import annotations

import math
import re
import string
import unicodedata
from abc import abstractmethod
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, takewhile
from operator import le
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streammetrics.core.arithmetic.exact import ExactSum
from streammetrics.core.columns.column import unique
from streammetrics.core.columns.labels import Labels
from streammetrics.core.columns.schema import Condition, Schema
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.counting import counts_of, packed
from streammetrics.core.errors import InvalidBatchError, StateFormatError
from streammetrics.core.fields.keyed import coded_labels
from streammetrics.core.fields.sums import Sum
from streammetrics.core.fields.weights import Counts
from streammetrics.core.statistic import Statistic
from streammetrics.statistics.sums import RowSum

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from streammetrics.core.columns.batch import Batch
    from streammetrics.core.counting import GroupCodes
    from streammetrics.core.types import Array, Bools, Columns, Floats, Foreign, Places, ReadColumn

    Costs = NDArray[np.int32]
    Grams = Counter[tuple[str, ...] | str]


REFERENCE, PREDICTION = "reference", "prediction"


def text_columns(references: int) -> tuple[str, ...]:
    """Return the names of so many references and of a prediction."""
    more = (f"{REFERENCE}_{place}" for place in range(2, references + 1))
    return (REFERENCE, *more, PREDICTION)


@dataclass(frozen=True)
class Texts(Condition):
    """Condition that both columns hold text."""

    references: int

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Raise if a column holds no text."""
        for name in text_columns(self.references):
            if batch.n_rows and batch.column(name).vocabulary is None:
                raise InvalidBatchError(f"{batch.title(name)} holds no text: pass strings")


@dataclass(frozen=True)
class Installed(Condition):
    """Condition that rapidfuzz is installed, without which rows could not be counted later."""

    def check(self, batch: Batch, missing: Bools | None) -> None:
        """Raise if it is missing."""
        _levenshtein()


def text_schema(*, references: int, nan_policy: str, unweighted: str = "") -> Schema:
    """Return the schema of references and a prediction."""
    names = text_columns(references)
    fields = tuple(Labels(name, fact=f"labels of {name}") for name in names)
    return Schema(fields, nan_policy, unweighted, (Texts(references),))


def distinct_rows(columns: Columns) -> tuple[list[tuple[list[str], str]], Places]:
    """Return the distinct rows of references and predictions, and the place of each row."""
    rows: list[tuple[str, ...]] = [()]
    places = np.zeros(len(columns[0].values), np.int64)
    for column in columns:
        codes, texts = coded_labels(column)
        keys, places = unique(packed((len(rows), len(texts)), places, codes))
        pairs = [divmod(key, len(texts)) for key in keys.tolist()]
        rows = [(*rows[row], str(texts[text])) for row, text in pairs]
    return [(references, prediction) for *references, prediction in rows], places


class TextCounts(Statistic):
    """Sums over rows of several integers computed from the texts, and of their products."""

    nan_policy: NanPolicy = "raise"
    references: int = 1

    counts = Counts(lambda of: (1 + of.size,))  # number of rows, then the sum of each integer
    products = Sum(lambda of: (of.size * (of.size + 1) // 2,))  # ordered as `numpy.triu_indices`

    @property
    def schema(self) -> Schema:
        """References and a prediction."""
        count, policy = self.references, self.nan_policy
        return text_schema(references=count, nan_policy=policy, unweighted="metrics of texts")

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of integers a row."""

    def check_fields(self) -> None:
        """Check that counts and products are consistent with the number of rows."""
        rows, *counts = self.counts.tolist()
        if not (self.countable(rows, *counts) if rows else not any(counts)):
            raise StateFormatError(f"{counts} are not the counts of {rows} rows")
        products = self.moments()
        # A sum of squares of integers is at least their sum, and at least the squared sum / rows.
        squares = [products[i][i] for i in range(self.size)]
        fits = all(s >= n and rows * s >= n * n for s, n in zip(squares, counts, strict=True))
        if not fits or any(p < 0 or p.denominator > 1 for row in products for p in row):
            raise StateFormatError(f"the products of {counts} are not those of {rows} rows")
        if not rows and any(squares):
            raise StateFormatError("there are products of no rows")

    @abstractmethod
    def countable(self, rows: int, *counts: int) -> bool:
        """Whether `rows` rows of texts, at least one, can have these counts."""

    @abstractmethod
    def counted(self, references: Sequence[str], prediction: str) -> list[int]:
        """Return the integers of one row."""

    def update(self, *columns: object, weight: Floats | None) -> None:
        """Add the integers of the rows."""
        rows, places = distinct_rows(columns)
        times = counts_of((len(rows),), places)
        each = np.array([self.counted(*row) for row in rows], np.int64)
        each = each.reshape(len(rows), self.size)
        total = np.append(times.sum(), times @ each)
        self.counts = type(self).counts.plus(self.counts, total)
        products = (each * times[:, None]).T @ each
        self.products += ExactSum.counts(products[np.triu_indices(self.size)])

    def moments(self) -> list[list[Fraction]]:
        """Return the sums over rows of the products of every two integers."""
        table = [[Fraction(0)] * self.size for _ in range(self.size)]
        places = zip(*(side.tolist() for side in np.triu_indices(self.size)), strict=True)
        for at, (i, j) in enumerate(places):
            table[i][j] = table[j][i] = self.products[at].fraction()
        return table


class TextScores(RowSum):
    """The sum of a number from 0 to 1 computed from the texts of each row."""

    nan_policy: NanPolicy = "raise"
    references: int = 1

    @property
    def schema(self) -> Schema:
        """References and a prediction."""
        return text_schema(references=self.references, nan_policy=self.nan_policy)

    @abstractmethod
    def score(self, references: Sequence[str], prediction: str) -> float:
        """Return a number from 0 to 1."""

    def lift(
        self, columns: Columns, weight: Array | None, group: GroupCodes | None = None
    ) -> dict[str, object]:
        """Return the sums of rows."""
        return super().lift((self.scores(columns),), weight, group)

    def scores(self, columns: Columns) -> Floats:
        """Return the number of each row, (n,); texts that recur together are compared once."""
        rows, places = distinct_rows(columns)
        return np.array([self.score(*row) for row in rows], np.float64)[places]

    def numbers(self, *columns: ReadColumn) -> Floats:
        """Return the scores that `lift` has computed for the rows."""
        values: Floats = columns[0]
        return values.copy()


_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
# mteval-v13a: punctuation marks are separate tokens, except periods and commas between digits.
_APART = str.maketrans({mark: f" {mark} " for mark in ' !"#$%&()*+/:;<=>?@[\\]^_`{|}~'})
_MARKS = (
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
# tercom removes punctuation, and splits Chinese and Japanese text into single characters.
_PUNCTUATION = str.maketrans("", "", '.,?:;!"()')
_WIDE_MARKS = (
    "\u3001\u3002\u3008-\u3011\u3014-\u301f\u30fb\uff01\uff02\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f"
    "\uff61-\uff65"
)
_WIDE = re.compile(f"[{_WIDE_MARKS}]")
_IDEOGRAPHS = re.compile(
    f"([{_WIDE_MARKS}\u2e80-\u2eff\u31c0-\u31ef\u3200-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f])"
)
# The reference program of the extended edit distance separates marks, then rejoins some of them.
_STOPS = re.compile(r"([.!?,])")
_JOINED = (
    (re.compile(r"\s+"), " "),
    (re.compile(r"(\d) ([.,]) (\d)"), r"\1\2\3"),
    (re.compile(r"(Dr|Jr|Prof|Rev|Gen|Mr|Mt|Mrs|Ms) ."), r"\1."),
)
_SHORT = (("e . g .", "e.g."), ("i . e .", "i.e."), ("U . S .", "U.S."))


def mteval(text: str) -> list[str]:
    """Return the tokens of mteval-v13a."""
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "")
    return _marked(_set_apart(text)).split()


def tercom(text: str, *, normalized: bool, punctuated: bool, asian: bool) -> list[str]:
    """Return tokens as sacrebleu's tercom tokenizer does; without options, split at whitespace."""
    text = text.rstrip()
    if normalized:
        text = _set_apart(text.replace("\n-", "")).replace("'s ", " 's ")
        text = _marked(text)
        if asian:
            text = _IDEOGRAPHS.sub(r" \1 ", text)
    if not punctuated:
        text = text.translate(_PUNCTUATION)
        if asian:
            text = _WIDE.sub("", text)
    return text.split()


def _set_apart(text: str) -> str:
    """Return one line of text with spaces around marks that are always tokens."""
    text = text.replace("\n", " ")
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return f" {text} ".translate(_APART)


def _marked(text: str) -> str:
    """Return text with spaces around marks that are tokens depending on adjacent characters."""
    if "." in text or "," in text or "-" in text:
        for mark, apart in _MARKS:
            text = mark.sub(apart, text)
    return text


def english(text: str) -> str:
    """Return text with a space before each punctuation mark, and one at both ends."""
    text = _STOPS.sub(r" \1", text.rstrip())
    for found, instead in _JOINED:
        text = found.sub(instead, text)
    for found_text, instead in _SHORT:
        text = text.replace(found_text, instead)
    return f" {text} "


def compatible(text: str) -> str:
    """Return text with compatible characters unified (NFKC), as for Japanese."""
    return unicodedata.normalize("NFKC", text.rstrip())


class BleuCounts(TextCounts):
    """Lengths of predictions and references, and matching and total n-grams of each order."""

    order: int = 4
    tokenize: Literal["13a", "none"] = "13a"
    lowercase: bool = False

    @property
    def size(self) -> int:
        """Two lengths, and two counts for each order."""
        return 2 + 2 * self.order

    def countable(self, rows: int, *counts: int) -> bool:
        """Whether counts decrease with the order, and matches do not exceed totals."""
        predicted, referred, *grams = counts
        matches, totals = grams[: self.order], grams[self.order :]
        shortest = totals[0] == predicted and (matches[0] <= referred or self.references > 1)
        longer = all(n <= m for some in (matches, totals) for m, n in pairwise(some))
        return shortest and longer and all(map(le, matches, totals))

    def counted(self, references: Sequence[str], prediction: str) -> list[int]:
        """Return the counts of one row, with the length of the reference of the nearest length."""
        *true, pred = (self._tokens(text) for text in (*references, prediction))
        matches, totals = [], []
        for n in range(1, self.order + 1):
            mine, others = grams(pred, n), grams(true[0], n)
            for more in true[1:]:
                others |= grams(more, n)
            matches.append(common(mine, others))
            totals.append(max(len(pred) - n + 1, 0))
        _, length = min((abs(len(each) - len(pred)), len(each)) for each in true)
        return [len(pred), length, *matches, *totals]

    def _tokens(self, text: str) -> list[str]:
        text = text.lower() if self.lowercase else text
        return mteval(text) if self.tokenize == "13a" else text.split()


def grams(items: Sequence[str], n: int) -> Grams:
    """Return the number of occurrences of each n-gram of words, or of characters for a string."""
    if isinstance(items, str):
        return Counter(items[at : at + n] for at in range(len(items) - n + 1))
    return Counter(zip(*[items[at:] for at in range(n)], strict=False))


def common(one: Grams, other: Grams) -> int:
    """Return the size of the multiset intersection."""
    return sum([min(one[item], other[item]) for item in one.keys() & other.keys()])


_PUNCTUATED = set(string.punctuation)


def punctuated(text: str) -> Iterator[str]:
    """Yield the words of a text, with a final or else an initial punctuation mark split off."""
    for word in text.split():
        if len(word) > 1 and word[-1] in _PUNCTUATED:
            yield from (word[:-1], word[-1])
        elif len(word) > 1 and word[0] in _PUNCTUATED:
            yield from (word[0], word[1:])
        else:
            yield word


def chrf_score(counts: Sequence[float], for_recall: float, for_precision: float) -> float:
    """Return the F score of `ChrfCounts`, from 0 to 100, with weights of recall and precision."""
    orders = zip(counts[::3], counts[1::3], counts[2::3], strict=True)
    known = [each for each in orders if each[0] and each[1]]
    precision = recall = 0.0
    for predicted, referred, match in known:
        precision += match / predicted
        recall += match / referred
    if not precision + recall:
        return 0.0
    precision, recall = precision / len(known), recall / len(known)
    score = (for_recall + for_precision) * precision * recall
    return 100 * (score / (for_recall * precision + for_precision * recall))


class ChrfCounts(TextCounts):
    """N-grams of characters and words: in predictions, in references, and in both.

    With several references, only the one with the best score counts; `weights` are those of recall
    and precision.
    """

    order: int = 6
    word_order: int = 0
    whitespace: bool = False
    lowercase: bool = False
    weights: Any = None

    @property
    def size(self) -> int:
        """Three counts for each order."""
        return 3 * (self.order + self.word_order)

    def countable(self, rows: int, *counts: int) -> bool:
        """Whether common n-grams do not outnumber those of either text."""
        predicted, referred, both = counts[::3], counts[1::3], counts[2::3]
        return all(map(le, both, predicted)) and all(map(le, both, referred))

    def counted(self, references: Sequence[str], prediction: str) -> list[int]:
        """Return the counts of one row."""
        *others, mine = (list(self._grams(text)) for text in (*references, prediction))
        found = [self._against(true, mine) for true in others]
        return max(found, key=self._score) if len(found) > 1 else found[0]

    def _grams(self, text: str) -> Iterator[Grams]:
        text = text.lower() if self.lowercase else text
        letters = text if self.whitespace else "".join(text.split())
        yield from (grams(letters, n) for n in range(1, self.order + 1))
        words = list(punctuated(text)) if self.word_order else []
        yield from (grams(words, n) for n in range(1, self.word_order + 1))

    def _against(self, true: list[Grams], pred: list[Grams]) -> list[int]:
        found: list[int] = []
        for mine, others in zip(pred, true, strict=True):
            total = sum(mine.values()) if others else 0
            found += [total, sum(others.values()), common(mine, others)]
        return found

    def _score(self, counts: list[int]) -> float:
        return chrf_score(counts, *self.weights)


class EditCounts(TextCounts):
    """Hits, substitutions, deletions and insertions of minimal edits, summed over rows."""

    of: Literal["words", "characters"]
    stripped: bool = True  # whether white space at both ends of a text is left out

    @property
    def schema(self) -> Schema:
        """A reference and a prediction, which only rapidfuzz compares."""
        found = super().schema
        with suppress(ImportError):  # before rows come: a signal handler cannot re-enter an import
            _levenshtein()
        return replace(found, conditions=(*found.conditions, Installed()))

    @property
    def size(self) -> int:
        """Four: hits, substitutions, deletions and insertions."""
        return 4

    def countable(self, rows: int, *counts: int) -> bool:
        """Return True: texts may have any length, including zero."""
        return True

    def counted(self, references: Sequence[str], prediction: str) -> list[int]:
        """Return the edits of one row."""
        (reference,) = references
        true, pred = map(self._pieces, (reference, prediction))
        tags = Counter(edit.tag for edit in _levenshtein().editops(true, pred))
        replaced, left_out, put_in = (tags[tag] for tag in ("replace", "delete", "insert"))
        return [len(true) - replaced - left_out, replaced, left_out, put_in]

    def _pieces(self, text: str) -> Sequence[str]:
        """Return the words or characters of a text."""
        if self.of == "words":
            return text.split()
        return text.strip() if self.stripped else text


def _levenshtein() -> Foreign:
    try:
        from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - an optional dependency
    except ImportError:
        raise ImportError(
            "edits are found by rapidfuzz: pip install 'streammetrics[text]'"
        ) from None
    return Levenshtein


class JumpScores(TextScores):
    """The extended edit distance of a reference and a prediction, normalized to at most 1."""

    language: Literal["en", "ja"]
    alpha: float
    rho: float
    deletion: float
    insertion: float

    def score(self, references: Sequence[str], prediction: str) -> float:
        """Return the distance, at most 1."""
        (reference,) = references
        alike = english if self.language == "en" else compatible
        true, said = alike(reference), alike(prediction)
        # Number of times that the cheapest path visits each position, minus one.
        visits = [-1] * (len(said) + 1)
        row = [0.0] + [1.0] * len(said)
        for letter in true:
            row = self._row(row, said, letter)
            least = min(row)
            visits[row.index(least)] += 1
            if letter == " ":
                jump = self.alpha + least
                row = [cost if cost < jump else jump for cost in row]
        again = self.rho * sum(abs(times) for times in visits)
        longest = len(true) + again
        return min(1.0, (row[-1] + again) / longest) if longest else 1.0

    def _row(self, row: list[float], said: str, letter: str) -> list[float]:
        """Return the costs of the next reference character at each position of `said`.

        Sums are rounded one by one: the position of the cheapest path depends on their last bits.
        """
        deletion, insertion = self.deletion, self.insertion
        cost = row[0] + 1.0
        costs = [cost]
        for before, above, other in zip(row[:-1], row[1:], said, strict=True):
            cost += deletion
            way = before if other == letter else before + 1.0
            if way < cost:  # noqa: PLR1730 - a call of min would double the time of the loop
                cost = way
            way = above + insertion
            if way < cost:  # noqa: PLR1730 - as above
                cost = way
            costs.append(cost)
        return costs


_BESIDE = 25  # beam width: words on either side of the diagonal in which edits are searched
_LONGEST = 10  # maximum length of a block, in words
_FARTHEST = 50  # maximum distance of a block to its place in the reference, in words
_MOST = 1000  # maximum number of shifts tried for a sentence
_NEVER = 1 << 30


class MoveCounts(TextCounts):
    """Shifts plus edits that turn predictions into their references, and reference lengths.

    With several references, the fewest edits count, and the words of all references.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    @property
    def size(self) -> int:
        """Two: the number of shifts and edits, and of reference words."""
        return 2

    def countable(self, rows: int, *counts: int) -> bool:
        """Return True: texts may have any length, and any number of edits."""
        return True

    def counted(self, references: Sequence[str], prediction: str) -> list[int]:
        """Return the counts of one row."""
        *true, said = (self._words(text) for text in (*references, prediction))
        codes = {word: code for code, word in enumerate({*said}.union(*true))}
        each = [edits([codes[w] for w in said], [codes[w] for w in one]) for one in true]
        return [min(each), sum(map(len, true))]

    def _words(self, text: str) -> list[str]:
        return tercom(
            text if self.case_sensitive else text.lower(),
            normalized=self.normalized,
            punctuated=not self.no_punct,
            asian=self.asian_support,
        )


def edits(said: list[int], true: list[int]) -> int:
    """Return the number of shifts and edits that turn one list of words into the other."""
    moved = tried = 0
    while True:
        alignment = _aligned(said, true)
        moves = list(_moves(said, true, alignment, _MOST - tried)) if alignment.cost else []
        tried += len(moves)
        if not moves or tried >= _MOST:
            return moved + alignment.cost
        results = [_after(said, move) for move in moves]
        costs = _distances(results, true)
        best = max(
            range(len(moves)),
            key=lambda at: (-costs[at], moves[at].length, -moves[at].start, -moves[at].target),
        )
        if costs[best] >= alignment.cost:
            return moved + alignment.cost
        said, moved = results[best], moved + 1


class _Alignment(NamedTuple):
    """The edits of a sentence: their number, and which words of either text are wrong.

    ``ends[j]`` is the number of words of the sentence aligned with the first j reference words.
    """

    cost: int
    said_wrong: list[bool]
    true_wrong: list[bool]
    ends: list[int]


class _Move(NamedTuple):
    """A block of a sentence, and the place of the word before which it is inserted."""

    start: int
    length: int
    target: int


def _moves(said: list[int], true: list[int], now: _Alignment, most: int) -> Iterator[_Move]:
    """Yield up to about `most` shifts of blocks that are wrong in place and match elsewhere."""
    places: dict[int, list[int]] = {}
    for at, word in enumerate(true):
        places.setdefault(word, []).append(at)
    found = 0
    for start, word in enumerate(said):
        if not any(now.said_wrong[start : start + _LONGEST]):
            continue
        for at in places.get(word, ()):
            if abs(at - start) > _FARTHEST:
                continue
            for length in range(
                1, _same(said[start : start + _LONGEST], true[at : at + _LONGEST]) + 1
            ):
                if (
                    any(now.said_wrong[start : start + length])
                    and any(now.true_wrong[at : at + length])
                    and not start < now.ends[at + 1] <= start + length
                ):
                    targets = sorted({*now.ends[at : at + length + 1]})
                    yield from (_Move(start, length, target) for target in targets)
                    found += len(targets)
                    if found >= most:
                        return


def _same(one: list[int], other: list[int]) -> int:
    """Return the length of the common prefix of two lists of words."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _after(said: list[int], move: _Move) -> list[int]:
    """Return the words after a shift."""
    start, length, target = move
    rest = said[:start] + said[start + length :]
    place = target if target <= start + length else target - length
    return rest[:place] + said[start : start + length] + rest[place:]


def _distances(sentences: list[list[int]], true: list[int]) -> list[int]:
    """Return the number of edits of each of several sentences of the same length."""
    last: deque[tuple[int, Costs]] = deque(_rows(np.array(sentences), np.array(true)), maxlen=1)
    found: list[int] = last[0][1][:, -1].tolist()
    return found


def _rows(said: Places, true: Places) -> Iterator[tuple[int, Costs]]:
    """Yield the edit costs after 0, 1, ... words of each sentence (c, n).

    Each item is `low` and the costs (c, w) of the first `low`, ``low + 1``, ... reference words.
    """
    count, words = said.shape
    share = true.size / max(words, 1)
    beside = math.ceil(share / 2 + _BESIDE) if share / 2 > _BESIDE else _BESIDE
    middles = [math.floor(row * share) for row in range(words + 1)]
    lows = [max(0, middle - beside) for middle in middles]
    highs = [min(true.size, middle + beside - 1) + 1 for middle in middles[:-1]]
    highs.append(true.size + 1)
    ramp = np.arange(true.size + 1, dtype=np.int32)
    # Cells before the first column, and cells that no row has reached yet, cost infinity.
    costs = np.full((count, true.size + 2), _NEVER, np.int32)
    costs[:, 1 : highs[min(words, 1)] + 1] = ramp[: highs[min(words, 1)]]
    yield 0, ramp[None]
    for row in range(1, words + 1):
        low, high = lows[row], highs[row]
        here = costs[:, low + 1 : high + 1] + 1
        replaced = costs[:, low:high].copy()
        replaced[:, low == 0 :] += said[:, row - 1, None] != true[max(low - 1, 0) : high - 1]
        np.minimum(here, replaced, out=here)
        here -= ramp[: high - low]
        np.minimum.accumulate(here, axis=1, out=here)
        here += ramp[: high - low]
        costs[:, low + 1 : high + 1] = here
        costs[:, lows[row - 1] : low + 1] = _NEVER
        yield low, here


def _aligned(said: list[int], true: list[int]) -> _Alignment:
    """Return the alignment; substitutions are preferred to deletions, and these to insertions."""
    rows = [(low, costs[0].tolist()) for low, costs in _rows(np.array([said]), np.array(true))]

    def cost(row: int, place: int) -> int:
        low, costs = rows[row]
        return costs[place - low] if low <= place < low + len(costs) else _NEVER

    i, j = len(said), len(true)
    said_wrong, true_wrong, ends = [True] * i, [True] * j, [0] * (j + 1)
    while i or j:
        here = cost(i, j)
        if i and j and cost(i - 1, j - 1) + (said[i - 1] != true[j - 1]) == here:
            ends[j] = i
            i, j = i - 1, j - 1
            said_wrong[i] = true_wrong[j] = said[i] != true[j]
        elif i and cost(i - 1, j) + 1 == here:
            i -= 1
        else:
            ends[j] = i
            j -= 1
    return _Alignment(cost(len(said), len(true)), said_wrong, true_wrong, ends)


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ANSWER_MARKS = str.maketrans("", "", string.punctuation)
_OTHERS = re.compile(r"[^a-z0-9]+")


class AnswerAgreement(TextScores):
    """Agreement of answers normalized as in SQuAD: exact match, or F1 of their tokens."""

    of: Literal["whole", "tokens"]

    def score(self, references: Sequence[str], prediction: str) -> float:
        """Return the exact match (0 or 1), or the F1 of the tokens."""
        (reference,) = references
        true, pred = _answer(reference), _answer(prediction)
        if self.of == "whole" or not true or not pred:
            return float(true == pred)
        return _f1(common(Counter(true), Counter(pred)), len(true), len(pred))


def _answer(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_ANSWER_MARKS)).split()


class RougeAgreement(TextScores):
    """The agreement of n-grams of words, or with ``n=0`` of the longest common subsequence.

    With several references, the one with the best F1 counts. With `lines`, each line of a text is a
    sentence (ROUGE-Lsum).
    """

    n: int
    of: Literal["f1", "precision", "recall"] = "f1"
    lines: bool = False

    def score(self, references: Sequence[str], prediction: str) -> float:
        """Return the F1, the precision or the recall."""
        found = [self._sides(reference, prediction) for reference in references]
        both, true, pred = max(found, key=lambda sides: _f1(*sides))
        if self.of == "f1" or not both:
            return _f1(both, true, pred)
        return both / (pred if self.of == "precision" else true)

    def _sides(self, reference: str, prediction: str) -> tuple[int, int, int]:
        """Return the size of the common part, of the reference and of the prediction."""
        if self.lines:
            lines = (
                [_rouge_words(line) for line in t.split("\n")] for t in (reference, prediction)
            )
            return _common_lines(*lines)
        true, pred = _rouge_words(reference), _rouge_words(prediction)
        if not self.n:
            return _common(true, pred), len(true), len(pred)
        first, second = (grams(words, self.n) for words in (true, pred))
        return common(first, second), sum(first.values()), sum(second.values())


def _rouge_words(text: str) -> list[str]:
    return _OTHERS.sub(" ", text.lower()).split()


def _common(one: list[str], other: list[str]) -> int:
    """Return the length of the longest common subsequence."""
    lengths = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for place, mine in enumerate(other, 1):
            above = lengths[place]
            lengths[place] = before + 1 if word == mine else max(above, lengths[place - 1])
            before = above
    return lengths[-1]


def _lengths(one: list[str], other: list[str]) -> list[list[int]]:
    """Return the lengths of the longest common subsequences of the first words of both."""
    rows = [[0] * (len(other) + 1)]
    for word in one:
        above, row = rows[-1], [0]
        for place, mine in enumerate(other):
            row.append(above[place] + 1 if word == mine else max(above[place + 1], row[place]))
        rows.append(row)
    return rows


def _common_lines(true: list[list[str]], pred: list[list[str]]) -> tuple[int, int, int]:
    """Return the number of common words over all lines, and the words of both texts.

    A word counts at most as often as it occurs in either text (rouge-score's ``rougeLsum``).
    """
    every = [Counter(word for line in lines for word in line) for lines in (true, pred)]
    sizes = [sum(counts.values()) for counts in every]
    left, both = every[0] & every[1], 0
    for line in true:
        for place in sorted({place for other in pred for place in _matched(line, other)}):
            found = left[line[place]] > 0
            both += found
            left[line[place]] -= found
    return both, sizes[0], sizes[1]


def _matched(one: list[str], other: list[str]) -> Iterator[int]:
    """Yield the places of the words of `one` in the longest common subsequence."""
    rows, i, j = _lengths(one, other), len(one), len(other)
    while i and j:
        if one[i - 1] == other[j - 1]:
            i, j = i - 1, j - 1
            yield i
        elif rows[i][j - 1] > rows[i - 1][j]:
            j -= 1
        else:
            i -= 1


def _f1(both: int, true: int, pred: int) -> float:
    if not both:
        return 0.0
    precision, recall = both / pred, both / true
    return 2 * precision * recall / (precision + recall)
