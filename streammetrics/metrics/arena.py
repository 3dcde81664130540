"""Arenas: the strengths of players from matches of two of them."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

import numpy as np

from streammetrics.core.confidence import check_level
from streammetrics.core.constraints import NanPolicy
from streammetrics.core.floating import own_arithmetic
from streammetrics.core.metric import Metric
from streammetrics.core.results.values import Interval, LabelledArray
from streammetrics.metrics.families import Family
from streammetrics.statistics.matches import MatchTable

if TYPE_CHECKING:
    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import Array, ArrayLike, Bools, Floats, Ints


_STEPS = 1000  # of Newton's method, which mostly needs fewer than ten
_BALANCED = 1e-9  # of the sum of absolute scores; larger sums are not those of a maximum
_SHOWN = 5  # players that a message names


class MatchOutcomes(NamedTuple):
    """The distinct outcomes: winner and loser or, of the last ones, the players of a tie."""

    players: Array  # labels, sorted
    first: Ints
    second: Ints
    tied: Bools
    amount: Floats  # all divided by one power of two
    squares: Floats  # sums of squared weights, divided by the square of it

    @classmethod
    def of(cls, table: MatchTable) -> MatchOutcomes:
        """Return the outcomes of a table."""
        every = table.wins, table.draws
        rows = [pairs.row_labels[pairs.places[0]] for pairs in every if pairs.codes.size]
        columns = [pairs.column_labels[pairs.places[1]] for pairs in every if pairs.codes.size]
        labels = np.concatenate([*rows, *columns]) if rows else np.empty(0, np.int64)
        players, places = np.unique(labels, return_inverse=True)
        first, second = places.reshape(2, -1)
        tied = np.repeat([False, True], [pairs.codes.size for pairs in every])
        sums = [pairs.amount.exact() for pairs in every]
        squares = [pairs.amount.squared() or pairs.amount.exact() for pairs in every]
        whole, unit = (sums[0].sum() + sums[1].sum()).integers()
        power = unit + int(whole).bit_length()
        amount = np.concatenate([each.to_float(-power) for each in sums])
        squared = np.concatenate([each.to_float(-2 * power) for each in squares])
        return cls(players, first, second, tied, amount, squared)

    def no_maximum(self) -> str:
        """Return why the likelihood has no maximum; empty if it has one.

        It has none if strengths, and with ties the logarithm of their parameter, can move in some
        direction that makes no outcome less likely. Without a change of the parameter, that is so
        unless all players are connected by wins in both directions, where a tie counts as both.
        With it, a direction has a distance of at least 2 for every win and at most 2 for every tie.
        """
        size, tied = len(self.players), self.tied
        if not size:
            return "there are no matches"
        heads = np.concatenate([self.first, self.second[tied]])
        tails = np.concatenate([self.second, self.first[tied]])
        for sides in ((tails, heads), (heads, tails)):
            reached = _reached(size, *sides)
            if not reached.all():
                top = reached if sides[0] is tails else ~reached
                ties = " or tied with" * bool(tied.any())
                return f"{self._named(top)} never lost to{ties} {self._named(~top)}"
        apart = self._apart() if tied.any() else None
        if apart is None:
            return ""
        top = apart == apart.max()
        if top.all():
            return f"all matches of {self._named(top)} are ties"
        return (
            f"the more {self._named(top)} are above {self._named(~top)} and the more frequent ties "
            "are, the likelier are these matches"
        )

    def _apart(self) -> Floats | None:
        """Return places that are 2 apart for each win and within 2 for each tie, if there are."""
        size, tied = len(self.players), self.tied
        winner, loser = self.first[~tied], self.second[~tied]
        if np.isin(winner * size + loser, loser * size + winner).any():
            return None
        one, two = self.first[tied], self.second[tied]
        ends = np.concatenate([loser, one, two])
        starts = np.concatenate([winner, two, one])
        steps = np.repeat([-2.0, 2.0], [loser.size, 2 * one.size])
        places = np.zeros(size)
        for _ in range(size):
            before = places.copy()
            np.minimum.at(places, ends, before[starts] + steps)
            if (places == before).all():
                return places
        return None

    def _named(self, which: Bools) -> str:
        names = [repr(player) for player in self.players[which].tolist()]
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        return ", ".join(names[:_SHOWN]) + more


class StrengthFit(NamedTuple):
    """The maximum of the likelihood: strengths with mean 0, and nu, which is 0 without ties."""

    outcomes: MatchOutcomes
    strengths: Floats
    nu: float

    @classmethod
    def of(cls, table: MatchTable) -> StrengthFit:
        """Return the maximum; nan where there is none, or float64 cannot tell where it is."""
        outcomes = MatchOutcomes.of(table)
        nothing = cls(outcomes, np.full(len(outcomes.players), math.nan), math.nan)
        if outcomes.no_maximum():
            return nothing
        try:
            with np.errstate(all="ignore"):
                fit = cls._maximum(outcomes)
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):  # weights are too far apart
            return nothing
        return fit if fit._is_maximum() else nothing

    @classmethod
    def _maximum(cls, outcomes: MatchOutcomes) -> StrengthFit:
        size, ties = len(outcomes.players), outcomes.amount[outcomes.tied].sum()
        start = np.zeros(size + 1)
        wins = outcomes.amount.sum() - ties
        start[size] = math.log(2 * ties / wins) if ties else -math.inf
        fit = cls._at(outcomes, start)
        free = fit._free()
        for _ in range(_STEPS):
            scores, information = fit._derivatives()
            step = np.zeros(size + 1)
            step[free] = np.linalg.solve(information[np.ix_(free, free)], scores[free])
            before, likelihood = fit, fit._likelihood()
            scale = 1.0
            while True:
                fit = cls._at(outcomes, start + scale * step)
                if scale < 1e-3 or fit._likelihood() >= likelihood - 1e-12 * abs(likelihood):
                    break
                scale /= 2
            start = start + scale * step
            start[:size] -= start[:size].mean()
            if np.abs(step).max() < 1e-13 * (1 + np.abs(before.strengths).max()):
                break
        return cls._at(outcomes, start)

    @classmethod
    def _at(cls, outcomes: MatchOutcomes, parameters: Floats) -> StrengthFit:
        return cls(outcomes, parameters[:-1], math.exp(parameters[-1]))

    def _is_maximum(self) -> bool:
        """Whether the scores of each parameter cancel; not where weights underflow."""
        if not (self.outcomes.amount.all() and np.isfinite(self.strengths).all()):
            return False
        score, of_ties = self._terms()
        first, second, _ = self._probabilities()
        size = np.where(self.outcomes.tied, (first + second) / 2, score)  # before ties cancel
        sums = self._summed(score, of_ties, sign=-1)
        sizes = self._summed(size, np.abs(of_ties), sign=1)
        return bool((np.abs(sums) <= _BALANCED * sizes).all())

    def _free(self) -> Ints:
        """Return the places of the parameters to fit: all strengths but one, and log nu."""
        last = [len(self.strengths)] * bool(self.outcomes.tied.any())
        return np.array([*range(1, len(self.strengths)), *last], np.intp)

    def _probabilities(self) -> tuple[Floats, Floats, Floats]:
        """Return those of a win of the first, of the second, and of a tie, for each outcome."""
        half = (self.strengths[self.outcomes.first] - self.strengths[self.outcomes.second]) / 2
        first, second = np.exp(half - np.abs(half)), np.exp(-half - np.abs(half))
        tie = self.nu * np.exp(-np.abs(half))
        total = first + second + tie
        return first / total, second / total, tie / total

    def _likelihood(self) -> float:
        half = (self.strengths[self.outcomes.first] - self.strengths[self.outcomes.second]) / 2
        rest = np.exp(-2 * np.abs(half)) + self.nu * np.exp(-np.abs(half))
        logs = np.where(self.outcomes.tied, np.log(self.nu), half) - np.abs(half) - np.log1p(rest)
        return math.fsum(self.outcomes.amount * logs)

    def _terms(self) -> tuple[Floats, Floats]:
        """Return the scores of a row of each outcome: of the first player, and of log nu.

        The score of the second player is the negative of that of the first.
        """
        first, second, tie = self._probabilities()
        tied = self.outcomes.tied
        score = np.where(tied, (second - first) / 2, second + tie / 2)
        return score, np.where(tied, first + second, -tie)

    def _summed(self, score: Floats, of_ties: Floats, *, sign: int) -> Floats:
        """Return the sums over outcomes, of each player and log nu; `sign` of second players."""
        amount, sums = self.outcomes.amount, np.zeros(len(self.strengths) + 1)
        np.add.at(sums, self.outcomes.first, amount * score)
        np.add.at(sums, self.outcomes.second, sign * amount * score)
        sums[-1] = math.fsum(amount * of_ties)
        return sums

    def _scattered(self, players: Floats, both: Floats, ties: Floats) -> Floats:
        """Return the matrix of sums over outcomes, each of two players and log nu."""
        size = len(self.strengths)
        matrix = np.zeros((size + 1, size + 1))
        first, second = self.outcomes.first, self.outcomes.second
        for one, two, sign in (
            (first, first, 1), (second, second, 1), (first, second, -1), (second, first, -1),
        ):  # fmt: skip
            np.add.at(matrix, (one, two), sign * players)
        for side, sign in ((first, 1), (second, -1)):
            np.add.at(matrix, (side, np.full(side.size, size)), sign * both)
        matrix[size, :size] = matrix[:size, size]
        matrix[size, size] = ties.sum()
        return matrix

    def _derivatives(self) -> tuple[Floats, Floats]:
        """Return the gradient and the information, without subtractions that cancel."""
        amount, gradient = self.outcomes.amount, self._summed(*self._terms(), sign=-1)
        first, second, tie = self._probabilities()
        spread = first * second + tie * (first + second) / 4  # the variance of a row's score
        both, ties = tie * (second - first) / 2, tie * (first + second)
        return gradient, self._scattered(amount * spread, amount * both, amount * ties)

    def labelled(self, offset: Floats | float = 0.0) -> LabelledArray:
        """Return the strengths, plus an offset, by player."""
        return LabelledArray.of(self.strengths + offset, self.outcomes.players.tolist(), "player")

    def errors(self) -> Floats:
        """Return the standard errors of all differences of strengths."""
        covariance = self.covariance()
        variance = covariance.diagonal()
        return np.sqrt(np.maximum(np.add.outer(variance, variance) - 2 * covariance, 0.0))

    def covariance(self) -> Floats:
        """Return the sandwich covariance of the strengths."""
        size = len(self.strengths)
        if np.isnan(self.strengths).any() or not size or not self.outcomes.squares.all():
            return np.full((size, size), math.nan)
        score, of_ties = self._terms()
        squares = self.outcomes.squares
        meat = self._scattered(squares * score**2, squares * score * of_ties, squares * of_ties**2)
        _, information = self._derivatives()
        free, covariance = self._free(), np.zeros((size + 1, size + 1))
        try:
            inverse = np.linalg.inv(information[np.ix_(free, free)])
        except np.linalg.LinAlgError:  # weights are too far apart
            return np.full((size, size), math.nan)
        covariance[np.ix_(free, free)] = inverse @ meat[np.ix_(free, free)] @ inverse
        centred = np.eye(size) - 1 / size
        return centred @ covariance[:size, :size] @ centred


def _reached(size: int, tails: Ints, heads: Ints) -> Bools:
    """Return which nodes of a graph the first one reaches."""
    seen = np.zeros(size, np.bool_)
    seen[0] = True
    while not seen[more := heads[seen[tails]]].all():
        seen[more] = True
    return seen


class BradleyTerry(Metric[LabelledArray]):
    """Strengths of players from matches of two: Bradley-Terry, with ties by Davidson's model.

    Formula: P(a wins) = π_a / s, P(tie) = nu √(π_a π_b) / s, with s = π_a + π_b + nu √(π_a π_b).

    The value is log π of each player, sorted by label, with mean 0; π and nu maximize the
    likelihood. A difference of strengths is the logarithm of the odds of a win, ties left out; on
    Elo's scale it is multiplied by 400 / ln 10. Undefined if the likelihood has no maximum: some
    players never lost to (nor tied with) the others, or ties do not connect them enough. The
    warning names the players.

    Args:
        ties: ``"davidson"``; ``None`` refuses ties.
        tie: The word for a tie in `winner`; a missing winner is one, too.
        nan_policy: ``"raise"``, or ``"omit"``: rows without a player are left out.

    Memory and cost: a count for each pair of players that met; a read takes time cubic in the
    number of players, about a millisecond for 30.

    Reference: Bradley and Terry, Biometrika 39 (1952); Davidson, J. Am. Stat. Assoc. 65 (1970).

    Example:
        >>> import streammetrics as sm
        >>> arena = sm.BradleyTerry()
        >>> a, b = ["x", "x", "y", "y", "z", "x"], ["y", "z", "z", "x", "x", "y"]
        >>> found = arena.update(a, b, ["x", "x", "z", "y", "z", None]).compute()
        >>> {player: round(strength, 3) for player, strength in found.to_dict().items()}
        {'x': -0.08, 'y': -0.538, 'z': 0.618}
        >>> arena.ranks(0.95)["z"]
        Interval(low=1, high=3)
    """

    higher_is_better = True
    family = Family.STRENGTHS
    _incomparable = "it compares the players of its rows already: ranks() tells them apart"

    ties: Literal["davidson"] | None = "davidson"
    tie: str = "tie"
    nan_policy: NanPolicy = "raise"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the table of matches."""
        ties = self.ties is not None
        return (MatchTable(ties=ties, tie=self.tie, nan_policy=self.nan_policy),)

    def update(
        self,
        a: ArrayLike,
        b: ArrayLike,
        winner: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        counts: ArrayLike | None = None,
    ) -> Self:
        """Add a batch of matches.

        Args:
            a: One player of each match, (n,).
            b: The other player, (n,).
            winner: The player that won, (n,); missing, or the word `tie`, for a tie.
            sample_weight: Weight of each match, (n,).
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A winner did not play, a player plays itself, or there is a tie and
                ``ties=None``; the state is unchanged.
        """
        return self.feed(
            {"a": a, "b": b, "winner": winner, "sample_weight": sample_weight, "counts": counts}
        )

    def readout(self, table: MatchTable) -> LabelledArray:
        """Return the strength of each player."""
        return StrengthFit.of(table).labelled()

    def _lacking(self, table: MatchTable) -> str:
        why = MatchOutcomes.of(table).no_maximum()
        return f"the likelihood has no maximum, as {why}" if why else "weights are too far apart"

    @property
    def nu(self) -> float:
        """Davidson's nu: twice the odds of a tie to a decision between equal players."""
        with own_arithmetic():
            return self._fit().nu

    def _fit(self) -> StrengthFit:
        (table,) = self._read()
        assert isinstance(table, MatchTable)
        return StrengthFit.of(table)

    def ranks(self, level: float = 0.95) -> dict[object, Interval[int]]:
        """Return limits of the rank of every player, the strongest first; 1 is the best rank.

        All limits hold at once for a share `level` of samples of matches. A player is above another
        if the limits of their difference say so, at a level for all pairs together (Šidák).

        Raises:
            ValueError: The level is not between 0 and 1.

        Reference: Mogstad, Romano, Shaikh and Wilhelm, Rev. Econ. Stud. 91 (2024).
        """
        check_level(level)
        with own_arithmetic():
            fit = self._fit()
            size = len(fit.strengths)
            errors = fit.errors()
            tail = -math.expm1(math.log(level) * 2 / max(size * (size - 1), 1))
            apart = np.subtract.outer(fit.strengths, fit.strengths)
            above = (apart > -NormalDist().inv_cdf(tail / 2) * errors) & (errors > 0)
        low, high = 1 + above.sum(axis=0), size - above.sum(axis=1)
        order = np.argsort(-fit.strengths, kind="stable").tolist()
        players = fit.outcomes.players.tolist()
        return {players[at]: Interval(int(low[at]), int(high[at])) for at in order}
