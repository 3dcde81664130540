"""How often the limits of estimates from few labels hold, and how wide they are: a simulation.

    python tests/benchmarks/few_labels.py --samples 2000 > table.md

Each line draws `--samples` samples of rows from a population whose values are known. Some rows have
a label, all have a judgment. The columns are the share of nominal 95 % limits that hold the value;
their mean width in units of that by theory, 2 z √(σ² / n (1 - ρ² (1 - n / N))), and of that of
labels alone; and the standard deviation of the estimates in units of that by theory. Everything is
seeded. `--only` takes lines by metric, `--labels` by the number of labels, `--agreement` by that of
the judge, and `--seconds` ends a line early, which then tells from how many samples it is.
`--uneven` draws labels with propensities that differ threefold.
docs/few-labels.md has the table.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import streammetrics as sm
from streammetrics.inference.paired import Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Rows = dict[str, Any]
    Draw = Callable[[np.random.Generator, int, float], Rows]

LEVEL, Z = 0.95, 1.959963984540054
POOL = 20_000  # rows of a population


def flipped(rng: np.random.Generator, y: Any, agreement: float, classes: int = 2) -> Any:
    """Return judgments that differ from the labels in a share of rows."""
    others = (y + rng.integers(1, classes, y.size)) % classes
    return np.where(rng.random(y.size) < agreement, y, others)


def scored(rng: np.random.Generator, n: int, agreement: float) -> Rows:
    """Probabilities of two classes, of which one is rarer."""
    y = (rng.random(n) < 0.4).astype(int)
    score = 1 / (1 + np.exp(-(2.0 * (y - 0.5) + 1.1 * rng.standard_normal(n))))
    return {"y_true": y, "y_score": np.round(score, 2), "judge": flipped(rng, y, agreement)}


def classes(rng: np.random.Generator, n: int, agreement: float) -> Rows:
    """Three classes, one of them rarer."""
    y = rng.choice(3, n, p=[0.45, 0.35, 0.2])
    called = np.where(rng.random(n) < 0.7, y, rng.integers(0, 3, n))
    return {"y_true": y, "y_pred": called, "judge": flipped(rng, y, agreement, 3)}


def targets(rng: np.random.Generator, n: int, agreement: float) -> Rows:
    """Targets, and judgments that correlate with them by the agreement."""
    y = rng.standard_normal(n)
    judged = agreement * y + math.sqrt(1 - agreement**2) * rng.standard_normal(n)
    return {"y_true": y, "y_pred": 0.8 * y + 0.6 * rng.standard_normal(n), "judge": judged}


POPULATIONS: dict[Draw, dict[str, sm.Metric]] = {
    scored: {
        "Accuracy": sm.Accuracy(threshold=0.5),
        "F1": sm.F1(threshold=0.5),
        "LogLoss": sm.LogLoss(),
        "ROCAUC": sm.ROCAUC(),
    },
    classes: {"F1, macro": sm.F1(average="macro"), "CohenKappa": sm.CohenKappa()},
    targets: {"MSE": sm.MSE(), "MAE": sm.MAE(), "MeanError": sm.MeanError()},
}
SIZES = (100, 3_000), (100, 100_000), (300, 3_000), (300, 100_000), (3_000, 100_000)
AGREEMENTS = 0.7, 0.8, 0.9, 0.95


class Line(NamedTuple):
    """The outcome for a metric."""

    held: float
    width: float  # in units of the width by theory
    against: float  # in units of the width of labels alone
    widest: float  # the largest of these
    spread: float  # of the estimates, in units of the standard error by theory
    samples: int


class Population:
    """The distinct rows of a population, their shares, and what is known of its metrics."""

    def __init__(self, draw: Draw, agreement: float, metrics: dict[str, sm.Metric]) -> None:
        drawn = draw(np.random.default_rng(0), POOL, agreement)
        rows, counts = np.unique(np.stack(list(drawn.values())), axis=1, return_counts=True)
        self.rows = dict(zip(drawn, rows, strict=True))
        self.shares = counts / POOL
        told = self.rows["y_score" if "y_score" in self.rows else "y_pred"]
        self.lean = np.where(told > np.median(told), 1.5, 0.5)
        self.lean /= self.lean @ self.shares
        self.metrics = metrics
        self.moments = self._moments(sm.Estimated(metrics, proxy="judge"), counts)

    def _moments(self, whole: sm.Estimated, counts: Any) -> dict[str, tuple[float, ...]]:
        """Return the value of each metric, and σ², the covariance and var(φ) of a row."""
        state = whole.update(**self.rows, counts=counts)._accumulator.flush()
        _, *sets = whole._checked(state)
        found = {}
        for name in self.metrics:
            sides = tuple(Side("", of[name], of[name].compute(), k) for k, of in enumerate(sets))
            spread = whole._spread(name, state, sides, 0.0)
            found[name] = (sides[0].value, *(POOL * each for each in spread[1:]))
        return found

    def sampled(
        self, rng: np.random.Generator, empty: sm.Estimated, n: int, total: int
    ) -> sm.Estimated:
        """Return the estimates of a sample of rows, some of them labelled."""
        counts = rng.multinomial(total, self.shares)
        rows = dict(self.rows)
        if empty.propensity is None:
            labelled = rng.multivariate_hypergeometric(counts, n, method="marginals")
        else:
            rows["chance"] = np.minimum(n / total * self.lean, 1.0)
            labelled = rng.binomial(counts, rows["chance"])
        filled = empty.copy().update(**rows, counts=labelled)
        rows["y_true"] = np.full(len(counts), np.nan)
        return filled.update(**rows, counts=counts - labelled)

    def error(self, name: str, n: int, total: int) -> float:
        """Return the standard error of an estimate by theory."""
        _, labels, both, judgments, _ = self.moments[name]
        slope = min(max(both / judgments, 0.0), 1 / (1 - n / total))
        rest = labels - slope * (2 * both - slope * judgments)
        return math.sqrt((labels * n / total + rest * (1 - n / total)) / n)


def simulate(
    population: Population, n: int, total: int, samples: int, seconds: float, *, uneven: bool
) -> Iterator[tuple[str, Line]]:
    """Yield the outcome for each metric of a population."""
    rng = np.random.default_rng(n + total)
    propensity = "chance" if uneven else None
    empty = sm.Estimated(population.metrics, proxy="judge", propensity=propensity)
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in population.metrics}
    end = time.monotonic() + seconds
    for _ in range(samples):
        estimated = population.sampled(rng, empty, n, total)
        values, limits = estimated.compute(), estimated.confidence(LEVEL)
        alone = estimated["labels"].confidence(LEVEL)
        for name, (low, high) in limits.items():
            held = low <= population.moments[name][0] <= high
            found[name].append((held, high - low, alone[name].high - alone[name].low, values[name]))
        if time.monotonic() > end:
            break
    for name, outcomes in found.items():
        error = population.error(name, n, total)
        held, width, against, value = np.array(outcomes, float).T
        yield name, Line(
            held.mean(), width.mean() / (2 * Z * error), width.mean() / against.mean(),
            (width / against).max(), value.std() / error, len(outcomes),
        )  # fmt: skip


HEAD = (
    "metric", "agreement", "labels", "rows", "held", "", "width by theory", "by labels alone",
    "spread by theory", "samples",
)  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=math.inf, help="most for a line")
    parser.add_argument("--only", default="", help="metrics whose name contains this")
    parser.add_argument("--labels", type=int, help="lines with this number of labels alone")
    parser.add_argument("--agreement", type=float, help="lines with this agreement alone")
    parser.add_argument("--uneven", action="store_true", help="labels drawn with propensities")
    options = parser.parse_args()
    warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
    print(f"| {' | '.join(HEAD)} |\n| --- |{' ---: |' * 4} --- |{' ---: |' * 4}")
    for draw, every in POPULATIONS.items():
        metrics = {name: m for name, m in every.items() if options.only.lower() in name.lower()}
        for agreement in AGREEMENTS if metrics else ():
            if options.agreement not in {None, agreement}:
                continue
            population = Population(draw, agreement, metrics)
            for n, total in SIZES:
                if options.labels not in {None, n}:
                    continue
                given = options.samples, options.seconds
                for name, line in simulate(population, n, total, *given, uneven=options.uneven):
                    held = f"{line.held:.1%} | {'' if 0.93 <= line.held <= 0.97 else 'off'}"
                    widths = f"{line.width:.2f} | {line.against:.2f} | {line.spread:.2f}"
                    where = f"{name} | {agreement:.0%} | {n:,} | {total:,}"
                    print(f"| {where} | {held} | {widths} | {line.samples:,} |", flush=True)


if __name__ == "__main__":
    main()
