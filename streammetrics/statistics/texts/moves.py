"""Edits of words where a block of them may be moved at once, searched for as tercom does.

Which moves make a sentence like its reference with the fewest edits is a hard problem, so the
number is that of a search: the move that saves most edits is made, again and again. What is tried,
which of equal moves is taken, and when the search ends, is as in sacrebleu.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streammetrics.statistics.texts.base import TextCounts
from streammetrics.statistics.texts.tokens import tercom

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from streammetrics.core.types import Places

    Costs = NDArray[np.int32]

_BESIDE = 25  # words on either side of the diagonal between which edits are looked for
_LONGEST = 10  # words in a block
_FARTHEST = 50  # words from a block to where it is in the reference
_MOST = 1000  # moves that are tried of a sentence
_NEVER = 1 << 30


class MoveCounts(TextCounts):
    """Moves and edits that make predictions their references, and the words of these."""

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    @property
    def size(self) -> int:
        """Two."""
        return 2

    def countable(self, rows: int, *counts: int) -> bool:  # noqa: ARG002 - any two numbers
        """Whether there are such texts, as there are of any numbers."""
        return True

    def counted(self, reference: str, prediction: str) -> list[int]:
        """Return the counts of one row."""
        true, said = (self._words(text) for text in (reference, prediction))
        codes = {word: code for code, word in enumerate({*true, *said})}
        return [edits([codes[w] for w in said], [codes[w] for w in true]), len(true)]

    def _words(self, text: str) -> list[str]:
        return tercom(
            text if self.case_sensitive else text.lower(),
            normalized=self.normalized,
            punctuated=not self.no_punct,
            asian=self.asian_support,
        )


def edits(said: list[int], true: list[int]) -> int:
    """Return how many moves and edits make one list of words the other."""
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
    """The edits of a sentence: where either text is wrong, and how far words of the first go.

    `ends` says how many words of the sentence are used up by the first words of the reference.
    """

    cost: int
    said_wrong: list[bool]
    true_wrong: list[bool]
    ends: list[int]


class _Move(NamedTuple):
    """A block of a sentence, and the word before which it is put."""

    start: int
    length: int
    target: int


def _moves(said: list[int], true: list[int], now: _Alignment, most: int) -> Iterator[_Move]:
    """Yield blocks that are wrong where they are and right elsewhere, until there are `most`."""
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
    """Return how many words two lists have in common from their start."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _after(said: list[int], move: _Move) -> list[int]:
    """Return the words after a move."""
    start, length, target = move
    rest = said[:start] + said[start + length :]
    place = target if target <= start + length else target - length
    return rest[:place] + said[start : start + length] + rest[place:]


def _distances(sentences: list[list[int]], true: list[int]) -> list[int]:
    """Return the number of edits of sentences of one length."""
    last: deque[tuple[int, Costs]] = deque(_rows(np.array(sentences), np.array(true)), maxlen=1)
    found: list[int] = last[0][1][:, -1].tolist()
    return found


def _rows(said: Places, true: Places) -> Iterator[tuple[int, Costs]]:
    """Yield what the first words of each sentence (c, n) cost, none of them first.

    Costs are (c, w) of the first `low` words of the reference, of one more, and so on.
    """
    count, words = said.shape
    share = true.size / max(words, 1)
    beside = math.ceil(share / 2 + _BESIDE) if share / 2 > _BESIDE else _BESIDE
    middles = [math.floor(row * share) for row in range(words + 1)]
    lows = [max(0, middle - beside) for middle in middles]
    highs = [min(true.size, middle + beside - 1) + 1 for middle in middles[:-1]]
    highs.append(true.size + 1)
    ramp = np.arange(true.size + 1, dtype=np.int32)
    # The column before the first, and those that no row has reached yet, lead nowhere.
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
    """Return the edits; words are rather replaced than left out, rather left out than put in."""
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
