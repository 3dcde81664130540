"""A metric of ten lines: it merges, saves, shares statistics, and passes the law kit.

Run: python examples/custom_metric.py
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

import streammetrics as sm
from streammetrics.authoring import AtLeast, Confusion, ContingencyMetric, check_metric


class ExpectedProfit(ContingencyMetric[float]):
    """Mean profit of a decision: what a hit `earns` less what a false alarm `costs`.

    Example:
        >>> ExpectedProfit(costs=2).update([0, 1, 1, 0], [1, 1, 0, 0]).compute()
        2.0
    """

    earns: Annotated[float, AtLeast(0)] = 10.0
    costs: Annotated[float, AtLeast(0)] = 1.0

    def read(self, table: Confusion) -> np.ndarray:
        """Return the profit per row of each group."""
        positive = self.positive(table)
        profit: np.ndarray = (self.earns * positive.tp - self.costs * positive.fp) / table.total
        return profit


def main() -> None:
    """Check all of it, then use the metric next to others."""
    rng = np.random.default_rng(0)
    y = (rng.random(10_000) < 0.1).astype(int)
    score = np.clip(0.3 * y + rng.normal(0.3, 0.15, y.size), 0.0, 1.0)

    check_metric(ExpectedProfit(threshold=0.5), {"y_true": y[:200], "y_score": score[:200]})
    print("nothing is missing, and the laws hold")

    suite = sm.MetricSet(
        {
            "profit, cut at 0.4": ExpectedProfit(threshold=0.4),
            "profit, cut at 0.6": ExpectedProfit(threshold=0.6),
            "recall, cut at 0.4": sm.Recall(threshold=0.4),
        }
    )
    for rows in np.array_split(np.arange(y.size), 100):
        suite.update(y_true=y[rows], y_score=score[rows])
    for name, value in suite.compute().items():
        print(f"{name}: {value:.3f}")


if __name__ == "__main__":
    main()
