"""Edits of characters where one may jump from a space to anywhere, as of the texts of a row."""

from __future__ import annotations

from typing import Literal

from streammetrics.statistics.texts.base import TextScores
from streammetrics.statistics.texts.tokens import compatible, english


class JumpScores(TextScores):
    """The extended edit distance of a reference and a prediction, as a share of its largest."""

    language: Literal["en", "ja"]
    alpha: float
    rho: float
    deletion: float
    insertion: float

    def score(self, reference: str, prediction: str) -> float:
        """Return the distance, at most 1."""
        alike = english if self.language == "en" else compatible
        true, said = alike(reference), alike(prediction)
        # Where the cheapest path has been after each character of the reference.
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
        """Return the costs of the next character of the reference at each place of `said`.

        Sums are rounded one by one, as where the cheapest path is hangs on their last bits.
        """
        deletion, insertion = self.deletion, self.insertion
        cost = row[0] + 1.0
        costs = [cost]
        for before, above, other in zip(row[:-1], row[1:], said, strict=True):
            cost += deletion
            way = before if other == letter else before + 1.0
            if way < cost:  # noqa: PLR1730 - a call of min takes as long as all the rest
                cost = way
            way = above + insertion
            if way < cost:  # noqa: PLR1730 - as above
                cost = way
            costs.append(cost)
        return costs
