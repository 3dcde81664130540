"""How often confidence limits hold the value of the population: a study by simulation.

    python tests/benchmarks/coverage.py --samples 1000 --write
    python tests/benchmarks/coverage.py --clustered --seconds 60 --write

Each line draws `--samples` samples of n rows from a population whose value is known from a large
draw, and counts how many of their nominal 95 % intervals hold it. Everything is seeded, so a run
gives the same table again; `--only auc` takes the lines that say so, and `--seconds` ends a line
early, which then tells from how many samples it is. `--clustered` has the tables of clustered rows
and of decisions. `--write` puts each line into its table in docs/confidence.md.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import streammetrics as sm
from streammetrics.inference.distributions import _BETS as BETS
from streammetrics.inference.distributions import normal_quantile, normal_tail

if TYPE_CHECKING:
    from collections.abc import Callable

    Draw = Callable[[np.random.Generator, int], dict[str, Any]]

LEVEL = 0.95
DOCS = Path(__file__).parents[2] / "docs" / "confidence.md"


class Table(NamedTuple):
    """A table of docs/confidence.md, whose lines are known by their first cells."""

    header: str
    keys: int
    write: bool

    def start(self) -> None:
        """Print the header."""
        print(f"{self.header}\n" + "| --- " * self.header.count(" | ") + "| --- |")

    def add(self, *cells: str) -> None:
        """Print a line, and put it into the docs in place of the one with the same first cells."""
        row = f"| {' | '.join(cells)} |"
        print(row)
        sys.stdout.flush()
        if not self.write:
            return
        lines = DOCS.read_text(encoding="utf-8").split("\n")
        start = lines.index(self.header) + 2
        stop = next(k for k in range(start, len(lines)) if not lines[k].startswith("|"))
        same = "| " + "".join(f"{cell} | " for cell in cells[: self.keys])
        place = next((k for k in range(start, stop) if lines[k].startswith(same)), stop)
        lines[place : place + (place < stop)] = [row]
        DOCS.write_text("\n".join(lines), encoding="utf-8")


def labels(share: float, recall: float, rate: float) -> Draw:
    """Labels of two classes, predicted with a recall and a false positive rate."""

    def draw(rng: np.random.Generator, n: int) -> dict[str, Any]:
        y = (rng.random(n) < share).astype(int)
        return {"y_true": y, "y_pred": (rng.random(n) < np.where(y, recall, rate)).astype(int)}

    return draw


def classes(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Three classes, one of them rare."""
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    return {"y_true": y, "y_pred": np.where(rng.random(n) < 0.7, y, rng.integers(0, 3, n))}


def users(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Ten rows of each user, who are easy or hard to tell."""
    easy = np.repeat(rng.beta(2.0, 1.0, n // 10), 10)
    y = rng.integers(0, 2, easy.size)
    told = {"y_true": y, "y_pred": np.where(rng.random(y.size) < easy, y, 1 - y)}
    return told | {"user": np.arange(y.size) // 10}


def texts(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Sentences of two to fifteen words, of which more are wrong in some."""
    words = np.array([f"w{k}" for k in range(200)])
    lengths = rng.integers(2, 16, n)
    row = np.repeat(np.arange(n), lengths)
    true = rng.choice(words, row.size)
    said = np.where(
        rng.random(row.size) < rng.beta(1, 5, n)[row], rng.choice(words, row.size), true
    )
    cuts = np.cumsum(lengths)[:-1]
    sides = ([" ".join(part) for part in np.split(side, cuts)] for side in (true, said))
    return dict(zip(("reference", "prediction"), sides, strict=True))


def scores(share: float, apart: float, places: int | None = None) -> Draw:
    """Normal scores of two classes, rounded where they are to be tied."""

    def draw(rng: np.random.Generator, n: int) -> dict[str, Any]:
        y = (rng.random(n) < share).astype(int)
        s = apart * y + rng.standard_normal(n)
        return {"y_true": y, "y_score": s if places is None else np.round(s, places)}

    return draw


def class_scores(apart: float) -> Draw:
    """Probabilities of three classes, one of them rare, the true one higher."""

    def draw(rng: np.random.Generator, n: int) -> dict[str, Any]:
        y, z = rng.choice(3, n, p=[0.6, 0.3, 0.1]), rng.standard_normal((n, 3))
        z[np.arange(n), y] += apart
        p = np.exp(z)
        return {"y_true": y, "y_score": p / p.sum(axis=1, keepdims=True)}

    return draw


def weighted(draw: Draw) -> Draw:
    """Rows that each weigh another, more where labels and scores are high."""

    def drawn(rng: np.random.Generator, n: int) -> dict[str, Any]:
        rows = draw(rng, n)
        lean = 1 + next(iter(rows.values())) * 1.0
        return rows | {"sample_weight": rng.exponential(size=n) * lean}

    return drawn


def probabilities(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Probabilities that mean what they say."""
    p = rng.beta(1.0, 2.0, n)
    return {"y_true": (rng.random(n) < p).astype(int), "y_score": p}


def targets(spread: float, *, weighted: bool = False) -> Draw:
    """Positive targets, and predictions with errors as large as they are; some weigh more."""

    def draw(rng: np.random.Generator, n: int) -> dict[str, Any]:
        y = rng.gamma(2.0, size=n)
        predicted = y * np.exp(spread * rng.standard_normal(n))
        rows = {"y_true": y, "y_pred": predicted, "user": np.arange(n)}
        return rows | ({"sample_weight": rng.exponential(size=n)} if weighted else {})

    return draw


def values(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Exponential values."""
    return {"values": rng.exponential(size=n)}


def queries(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Ten results of each of n queries, of more or less use."""
    useful = np.repeat(rng.beta(1.0, 3.0, n), 10)
    relevance = (rng.random(10 * n) < useful).astype(int)
    score = relevance + 1.5 * rng.standard_normal(10 * n)
    return {"query": np.repeat(np.arange(n), 10), "relevance": relevance, "score": score}


def labelings(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Four clusters that a fixed rule finds again in three of four cases."""
    true = rng.integers(0, 4, n)
    return {
        "labels_true": true,
        "labels_pred": np.where(rng.random(n) < 0.75, true, rng.integers(0, 4, n)),
    }


def pairs(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Correlated normal numbers."""
    x = rng.standard_normal(n)
    return {"y_true": x, "y_pred": 0.6 * x + 0.8 * rng.standard_normal(n)}


def groups(*shares: float) -> Draw:
    """Groups of equal size, in each of which another share of rows is right."""

    def draw(rng: np.random.Generator, n: int) -> dict[str, Any]:
        group = np.repeat(np.arange(len(shares)), n // len(shares))
        right = rng.random(group.size) < np.array(shares)[group]
        return {"y_true": np.ones(group.size, int), "y_pred": right.astype(int), "group": group}

    return draw


class Line(NamedTuple):
    """A metric, a population, how many rows are drawn of it, and what is special about them."""

    metric: sm.Metric
    draw: Draw
    sizes: tuple[int, ...] = (50, 200, 1000)
    note: str = ""
    large: int = 2_000_000
    anytime: bool = False
    unit: str | None = None
    apart: str = ""  # the name of what is read between groups


COMMON, RARE = labels(0.3, 0.7, 0.15), labels(0.03, 0.6, 0.01)
LINES = (
    Line(sm.Accuracy(), COMMON),
    Line(sm.Precision(), COMMON),
    Line(sm.Recall(), RARE, (200, 1000), "3 % positives"),
    Line(sm.F1(), COMMON),
    Line(sm.F1(), RARE, (200, 1000), "3 % positives"),
    Line(sm.FBeta(beta=2.0), COMMON),
    Line(sm.MatthewsCorrcoef(), COMMON),
    Line(sm.CohenKappa(), classes, note="3 classes"),
    Line(sm.BalancedAccuracy(), classes, note="3 classes"),
    Line(sm.F1(average="macro"), classes, note="3 classes"),
    Line(sm.ROCAUC(), scores(0.5, 1.0)),
    Line(sm.ROCAUC(), scores(0.5, 2.9), (60, 200, 1000), "AUC 0.98"),
    Line(sm.ROCAUC(), scores(0.05, 1.0), (200, 1000), "5 % positives"),
    Line(sm.ROCAUC(), scores(0.05, 2.9), (400, 800, 4000), "AUC 0.98, 5 % positives"),
    Line(sm.ROCAUC(), scores(0.5, 1.0, 0), note="tied scores"),
    Line(sm.ROCAUC(), class_scores(1.0), note="3 classes"),
    Line(sm.ROCAUC(), class_scores(2.2), (60, 200, 1000), "AUC 0.98, 3 classes"),
    Line(sm.ROCAUC(average="weighted"), class_scores(2.2), (200, 1000), "AUC 0.98, 3 classes"),
    Line(sm.Accuracy(), weighted(COMMON), note="weighted"),
    Line(sm.F1(), weighted(COMMON), note="weighted"),
    Line(sm.MatthewsCorrcoef(), weighted(COMMON), note="weighted"),
    Line(sm.F1(average="macro"), weighted(classes), (200, 1000), "3 classes, weighted"),
    Line(sm.ROCAUC(), weighted(scores(0.5, 1.0)), note="weighted"),
    Line(sm.AveragePrecision(), weighted(scores(0.3, 1.0)), (200, 1000), "weighted"),
    Line(sm.KolmogorovSmirnov(), weighted(scores(0.5, 1.0)), (200, 1000), "weighted"),
    Line(sm.RecallAtPrecision(p=0.8), weighted(scores(0.5, 1.5)), (200, 1000), "weighted"),
    Line(sm.Quantile(q=0.5), weighted(values), note="weighted"),
    Line(sm.Quantile(q=0.9), weighted(values), note="weighted"),
    Line(sm.ROCAUC(max_fpr=0.2), scores(0.5, 1.0)),
    Line(sm.AveragePrecision(), scores(0.3, 1.0)),
    Line(sm.AveragePrecision(), scores(0.05, 1.5), (200, 1000, 4000), "5 % positives"),
    Line(sm.PRAUC(), scores(0.3, 1.0), (200, 1000)),
    Line(sm.KolmogorovSmirnov(), scores(0.5, 1.0)),
    Line(sm.RecallAtPrecision(p=0.8), scores(0.5, 1.5), (200, 1000)),
    Line(sm.PrecisionAtRecall(r=0.7), scores(0.5, 1.5), (200, 1000)),
    Line(sm.SensitivityAtSpecificity(s=0.8), scores(0.5, 1.5), (200, 1000)),
    Line(sm.LogLoss(), probabilities),
    Line(sm.BrierScore(), probabilities),
    Line(sm.MAE(), targets(0.3)),
    Line(sm.MAE(), targets(0.3, weighted=True), note="weighted"),
    Line(sm.MSE(), targets(0.3), note="skewed"),
    Line(sm.RMSE(), targets(0.6), (200, 1000, 10_000), "heavy tails"),
    Line(sm.WAPE(), targets(0.3)),
    Line(sm.Mean(), values),
    Line(sm.Quantile(q=0.5), values),
    Line(sm.Quantile(q=0.9), values),
    Line(sm.MedianAbsoluteError(), targets(0.3)),
    Line(sm.MAP(), queries, (50, 200), "queries", 200_000),
    Line(sm.NDCG(k=5), queries, (50, 200), "queries", 200_000),
    Line(sm.AdjustedRandIndex(), labelings),
    Line(sm.VMeasure(), labelings),
    Line(sm.PairPrecision(), labelings, (200, 1000)),
    Line(sm.KendallTau(), pairs, (50, 200, 1000), large=200_000),
    *(
        Line(metric, texts, (50, 200), large=100_000)
        for metric in (sm.WER(), sm.MER(), sm.WIL(), sm.CER(), sm.BLEU(), sm.ChrF())
    ),
    Line(sm.SpearmanRho(), pairs, (50, 200, 1000), large=200_000),
    Line(sm.R2(spread=True), targets(0.3), (200, 1000, 10_000)),
    Line(sm.ExplainedVariance(spread=True), targets(0.3), (200, 1000)),
    Line(
        sm.RelativeSquaredError(spread=True), targets(0.3, weighted=True), (200, 1000), "weighted"
    ),
    Line(sm.PearsonCorrelation(spread=True), pairs, (200, 1000), "normal"),
    Line(sm.PearsonCorrelation(spread=True), targets(0.3), (200, 1000), "skewed"),
    Line(sm.ConcordanceCorrelation(spread=True), targets(0.3), (200, 1000, 10_000)),
    Line(sm.Variance(spread=True), values, (200, 1000, 10_000), "exponential"),
    Line(sm.Accuracy(), users, (200, 1000), "10 rows a user, taken as rows"),
    Line(sm.Accuracy(), users, (200, 1000, 5000), "10 rows a user, by unit", unit="user"),
    Line(sm.R2(), targets(0.3), (1000, 5000), "each row a unit", unit="user"),
    Line(sm.Accuracy(), COMMON, (200, 1000), "anytime=True", anytime=True),
    *(
        Line(sm.Accuracy(), groups(*shares), sizes, f"{apart} of {len(shares)} slices", apart=apart)
        for shares, sizes in (
            ((0.5, 0.8), (100, 400, 2000)),
            ((0.5, 0.7, 0.7, 0.7, 0.9), (500, 2000)),
            ((0.7,) * 10, (1000, 4000)),
        )
        for apart in ("gap", "ratio")
    ),
)


def named(line: Line) -> str:
    """Return how a line is called."""
    shown = repr(line.metric).partition(" <")[0].replace("()", "")
    return f"{shown}{', ' if line.note else ''}{line.note}"


def apart(line: Line, rows: dict[str, Any], level: float | None) -> Any:
    """Return how far apart the groups of a sample are."""
    slices = sm.Slices(sm.MetricSet({"it": line.metric.copy()}), by="group").update(rows)
    return getattr(slices, line.apart)("it", confidence=level)


def truth_of(line: Line) -> float:
    """Return the value of the population, from a large draw."""
    rows = line.draw(np.random.default_rng(12345), line.large)
    if line.apart:
        return float(apart(line, rows, None))
    known = {key: rows[key] for key in rows if key != "user"}
    return float(line.metric.copy().update(**known).compute())


def limits(line: Line, rows: dict[str, Any]) -> tuple[float, float]:
    """Return the limits of a sample."""
    if line.apart:
        low, high = apart(line, rows, LEVEL).confidence
        return low, high
    if line.unit is not None:
        suite = sm.MetricSet({"it": line.metric.copy()}, unit=line.unit).update(rows)
        low, high = suite["it"].confidence(LEVEL, unit=line.unit)
        return low, high
    metric = line.metric.copy().update(**{key: rows[key] for key in rows if key != "user"})
    low, high = metric.confidence(LEVEL, anytime=line.anytime)
    return low, high


def coverage(line: Line, n: int, truth: float, samples: int, seconds: float) -> tuple[float, int]:
    """Return the share of samples whose limits hold the truth, and how many there were."""
    held = drawn = 0
    until = time.process_time() + seconds
    while drawn < samples and time.process_time() < until:
        rng = np.random.default_rng([drawn, n])
        low, high = limits(line, line.draw(rng, n))
        held += bool(low <= truth <= high)
        drawn += 1
    return held / drawn, drawn


class Clustered(NamedTuple):
    """A metric, and rows of two models in units of 1 to 64 rows, or of 1 to 8 queries of 8 rows."""

    metric: sm.Metric
    score: str = "y_score"
    shared: tuple[str, ...] = ("y_true",)
    base: float = 1.0  # skill

    def draw(self, rng: np.random.Generator, units: int, apart: float = 0.2) -> dict[str, Any]:
        """Return the rows of so many units, in which model b is less able by `apart`."""
        ranked = self.score == "score"
        sizes = rng.integers(1, 9 if ranked else 65, units)
        unit = np.repeat(np.arange(units), 8 * sizes if ranked else sizes)
        n, easy = unit.size, 0.7 * rng.normal(size=units)[unit]
        y = rng.integers(0, 2, n)
        rows: dict[str, Any] = {self.shared[-1]: y, "unit": unit}
        if ranked:
            rows["query"] = np.repeat(np.arange(n // 8), 8)
        common = rng.normal(size=n)
        for model, skill in (("a", self.base), ("b", self.base - apart)):
            z = (2 * y - 1) * (skill + easy) + common + 0.7 * rng.normal(size=n)
            rows[model] = 1 / (1 + np.exp(-z))
        return rows

    def duel(self, rows: dict[str, Any]) -> sm.Comparison:
        """Return the comparison of both models by unit."""
        return sm.Comparison({"it": self.metric.copy()}, ["a", "b"], unit="unit").update(rows)

    def alone(self, rows: dict[str, Any], model: str) -> sm.MetricSet:
        """Return the metric of one model by unit."""
        suite = sm.MetricSet({"it": self.metric.copy()}, columns={self.score: model}, unit="unit")
        return suite.update(rows)

    def truth(self, apart: float = 0.2) -> tuple[float, float]:
        """Return the values of both models in the population, from a large draw."""
        rows = self.draw(np.random.default_rng(12345), 100_000, apart)
        values = []
        for model in "ab":
            suite = sm.MetricSet({"it": self.metric.copy()}, columns={self.score: model})
            known = {name: rows[name] for name in (*self.shared, model)}
            values.append(suite.update(known).compute()["it"])
        return values[0], values[1]


CLUSTERED = {
    "Accuracy": Clustered(sm.Accuracy(threshold=0.5)),
    "LogLoss": Clustered(sm.LogLoss()),
    "ROCAUC": Clustered(sm.ROCAUC()),
    "NDCG(k=5)": Clustered(sm.NDCG(k=5), "score", ("query", "relevance")),
}
HIGH = Clustered(sm.Accuracy(threshold=0.5), base=2.2)  # an accuracy of 0.94


def clustered(
    line: Clustered, units: int, samples: int, seconds: float
) -> tuple[float, float, int]:
    """Return how often limits hold the value of a model, and the difference of two."""
    truth, held, drawn = line.truth(), [0, 0], 0
    until = time.process_time() + seconds
    while drawn < samples and time.process_time() < until:
        rows = line.draw(np.random.default_rng([drawn, units]), units)
        duel = line.duel(rows)
        (found,) = duel.compute(LEVEL)
        low, high = duel["a"].confidence(LEVEL)["it"]
        held[0] += bool(low <= truth[0] <= high)
        held[1] += bool(found.low <= truth[0] - truth[1] <= found.high)
        drawn += 1
    return held[0] / drawn, held[1] / drawn, drawn


def unpaired(line: Clustered, units: int, samples: int, seconds: float) -> tuple[float, int]:
    """Return how often limits hold the difference of two models on rows of different units."""
    one, other = line.truth()
    held = drawn = 0
    until = time.process_time() + seconds
    while drawn < samples and time.process_time() < until:
        both = [line.draw(np.random.default_rng([drawn, units, k]), units) for k in (4, 5)]
        both[1]["unit"] += units
        states = [line.alone(rows, model) for rows, model in zip(both, "ab", strict=True)]
        (found,) = sm.compare(*states)
        held += bool(found.low <= one - other <= found.high)
        drawn += 1
    return held / drawn, drawn


def gates(line: Clustered, units: int, samples: int, seconds: float) -> tuple[float, int]:
    """Return how often a gate calls one of two equal models worse."""
    worse = drawn = 0
    until = time.process_time() + seconds
    while drawn < samples and time.process_time() < until:
        rows = line.draw(np.random.default_rng([drawn, units, 1]), units, 0.0)
        states = [line.alone(rows, model) for model in "ab"]
        (found,) = sm.compare(*states, paired=True, margin=0.001)
        worse += found.verdict == "worse"
        drawn += 1
    return worse / drawn, drawn


def power(units: int, samples: int, seconds: float) -> tuple[float, float, int]:
    """Return the power that a pilot promises for a difference, and how often it is found."""
    line, apart = CLUSTERED["Accuracy"], 0.06
    one, other = line.truth(apart)
    pilot = line.duel(line.draw(np.random.default_rng(99), 4_000, apart))
    half, eighty = (
        pilot.detectable(share)["it"] * math.sqrt(4_000 / units) for share in (0.5, 0.8)
    )
    error = (eighty - half) / normal_quantile(0.8)
    promised = 1 - normal_tail((one - other - half) / error)
    found = drawn = 0
    until = time.process_time() + seconds
    while drawn < samples and time.process_time() < until:
        duel = line.duel(line.draw(np.random.default_rng([drawn, units, 2]), units, apart))
        found += duel.compute(LEVEL, margin=0.0)[0].verdict == "better"
        drawn += 1
    return promised, found / drawn, drawn


def looks(samples: int, seconds: float) -> tuple[float, int]:
    """Return how often limits at all times miss a difference once in 20,000 looks."""
    missed = drawn = 0
    until = time.process_time() + seconds
    while drawn < samples and time.process_time() < until:
        rng = np.random.default_rng([drawn, 3])
        x = rng.choice([1, -1, 0], 20_000, p=[0.12, 0.08, 0.8])
        only, other = np.cumsum(x == 1), np.cumsum(x == -1)
        rest = np.arange(1, x.size + 1) - only - other
        counts = np.stack([only, rest, other]).astype(float)
        for sign in (1, -1):  # the capital of bets on both sides of the true difference
            gains = np.log1p(sign * BETS[:, None] * (np.array([1.0, 0.0, -1.0]) - 0.04))
            capital = np.exp(gains @ counts).mean(axis=0)
            if capital.max() > 2 / (1 - LEVEL):
                missed += 1
                break
        drawn += 1
    return missed / drawn, drawn


def clustered_tables(samples: int, seconds: float, only: str, *, write: bool) -> None:
    """Print the tables of clustered rows and of decisions."""
    table = Table("| metric | units | one model | difference of two | samples |", 2, write)
    table.start()
    lines = [("Accuracy 0.94", HIGH, size) for size in (10, 20, 30)]
    lines += [(name, line, size) for name, line in CLUSTERED.items() for size in (30, 100, 1000)]
    for name, line, size in lines:
        if only.lower() in name.lower():
            longer = seconds * (4 if size == 1000 else 1)
            one, two, drawn = clustered(line, size, samples, longer)
            table.add(name, f"{size:,}", f"{one:.1%}", f"{two:.1%}", f"{drawn:,}")
    table = Table("| decision | expected | simulated | samples |", 1, write)
    table.start()
    for name, line in CLUSTERED.items():
        if only.lower() in name.lower():
            share, drawn = gates(line, 100, samples, seconds)
            title = f"{name}, 100 units: equal models called worse"
            table.add(title, "at most 5%", f"{share:.1%}", f"{drawn:,}")
    for name, line in CLUSTERED.items():
        for size in (100, 1000):
            if only.lower() in f"{name}, unpaired".lower():
                longer = seconds * (4 if size == 1000 else 1)
                share, drawn = unpaired(line, size, samples, longer)
                title = f"{name}, {size:,} units: difference of different rows held"
                table.add(title, "93 to 97%", f"{share:.1%}", f"{drawn:,}")
    if only.lower() in "power":
        promised, share, drawn = power(200, samples, seconds)
        title = "Accuracy, 200 units: difference found"
        table.add(title, f"{promised:.1%}", f"{share:.1%}", f"{drawn:,}")
    if only.lower() in "looks":
        share, drawn = looks(samples, seconds)
        title = "anytime limits that ever miss in 20,000 looks"
        table.add(title, "at most 5%", f"{share:.1%}", f"{drawn:,}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=20.0, help="of processor time a line")
    parser.add_argument("--only", default="")
    parser.add_argument("--clustered", action="store_true", help="tables of clustered rows")
    parser.add_argument("--write", action="store_true", help="put lines into docs/confidence.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", sm.UndefinedMetricWarning)
    samples, seconds, only = arguments.samples, arguments.seconds, arguments.only
    if arguments.clustered:
        clustered_tables(samples, seconds, only, write=arguments.write)
        return
    table = Table("| metric | rows | held | |", 2, arguments.write)
    table.start()
    for line in LINES:
        if only.lower() not in named(line).lower():
            continue
        truth = truth_of(line)
        for n in line.sizes:
            share, drawn = coverage(line, n, truth, samples, seconds)
            error = math.sqrt(share * (1 - share) / drawn)
            off = abs(share - LEVEL) > max(0.02, 2 * error)
            table.add(named(line), f"{n:,}", f"{share:.1%}", "off" if off else "")


if __name__ == "__main__":
    main()
