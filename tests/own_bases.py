"""A metric of an author for each public base, and rows that it takes."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from streammetrics.authoring import (
    Aggregate,
    AveragedMetric,
    ClassScoreMetric,
    ContingencyMetric,
    ExactSum,
    Floats,
    LabelingMetric,
    Metric,
    Moments,
    NoAverage,
    Numbers,
    PairMetric,
    Points,
    Positives,
    QueryMean,
    RankingMetric,
    RegressionMetric,
    RowMean,
    SampleMetric,
    Schema,
    Statistic,
    Sum,
    Weight,
    WeightedCount,
    prepare,
)


class OfRow(RowMean):
    def row(self, y_true: Positives, y_pred: Positives) -> Floats:
        return np.log(y_pred / y_true)


class OfMeans(RowMean):
    def row(self, y_true: Positives, y_pred: Positives) -> tuple[Floats, Floats]:
        return y_pred, y_true

    def of_mean(self, p: Floats, y: Floats) -> Floats:
        return p / y


class OfTexts(RowMean):
    @prepare
    def count(self, text: list[str]) -> list[int]:
        return [len(one.split()) for one in text]

    def row(self, words: Floats) -> Floats:
        return words


class OfQuery(QueryMean):
    def of_query(self, gain: Floats, rank: Any) -> float:
        return float((gain / rank).sum())


class OfSample(SampleMetric):
    def of_sample(self, y_true: Floats, y_pred: Floats) -> float:
        return float(np.median(np.abs(y_true - y_pred)))


class OfTable(ContingencyMetric[float]):
    value_range = (0.0, 1.0)

    def read(self, table: Any) -> Floats:
        return self.ratio(table.hits, table.total)


class OfClasses(AveragedMetric[NoAverage]):
    def read(self, table: Any) -> Floats:
        return self.averaged(table, table.tp, table.actual)


class OfStairs(ClassScoreMetric[float]):
    value_range = (0.0, 1.0)

    def read(self, stairs: Any) -> float:
        return float(stairs.positives / (stairs.positives + stairs.negatives))


class OfRanking(RankingMetric):
    def read(self, ranking: Any) -> Floats:
        query, gain, rank = ranking.gains()
        return ranking.by_query(query, gain / rank)


class OfLabelings(LabelingMetric):
    def read(self, overlap: Any) -> float:
        return float(overlap.counts.max() / overlap.n) if overlap.n else float("nan")


class OfPairs(PairMetric):
    def read_pairs(self, pairs: Any) -> float:
        return float(pairs.both + pairs.neither)


class OfOutputs(RegressionMetric[float]):
    def statistics(self) -> tuple[Moments]:
        return (Moments(of="pair"),)

    def readout(self, held: Any) -> float:
        (mean,) = held.means("p") or (float("nan"),)
        return float(mean)


class OfValues(Aggregate[float]):
    def statistics(self) -> tuple[Moments]:
        return (Moments(of="values"),)

    def readout(self, held: Any) -> float:
        (mean,) = held.means("x") or (float("nan"),)
        return float(mean)


class LogSum(Statistic):
    logs = Sum()
    rows = Weight()

    @property
    def schema(self) -> Schema:
        return Schema((Numbers("values", above=0.0),))

    def update(self, values: Floats, *, weight: Floats | None) -> None:
        self.logs += ExactSum.of(np.log(values), weight)
        self.rows += WeightedCount.of_rows(len(values), weight)


class OfStatistic(Metric[float]):
    def statistics(self) -> tuple[LogSum]:
        return (LogSum(),)

    def update(self, values: Any, *, sample_weight: Any = None, counts: Any = None) -> Self:
        return self.feed({"values": values, "sample_weight": sample_weight, "counts": counts})

    def readout(self, sums: LogSum) -> float:
        total = sums.rows.exact().to_float()
        return sums.logs.to_float() / total if total else float("nan")


class _Line(NamedTuple):
    x: Floats
    y: Floats


class Line(Points, _Line):
    """A line of two points."""


class OfCurve(OfStatistic):
    def readout(self, sums: LogSum) -> Line:  # type: ignore[override]  # another value
        return Line(np.array([0.0, 1.0]), np.array([0.0, sums.logs.to_float()]))


RNG = np.random.default_rng(31)
N = 60
NUMBERS = {"y_true": RNG.exponential(size=N) + 0.5, "y_pred": RNG.exponential(size=N) + 0.5}
LABELS = {"y_true": RNG.integers(0, 2, N), "y_pred": RNG.integers(0, 2, N)}
RESULTS = {
    "query": np.arange(N) // 6,
    "relevance": RNG.integers(0, 3, N),
    "score": RNG.integers(0, 50, N) / 50,
}
CLUSTERS = {"labels_true": RNG.integers(0, 3, N), "labels_pred": RNG.integers(0, 3, N)}
VALUES = {"values": RNG.exponential(size=N) + 0.5}

# Each metric, its rows, and the task under which the command line reads them.
ALL: list[tuple[type[Metric[Any]], dict[str, Any], str]] = [
    (OfRow, NUMBERS, "regression"),
    (OfMeans, NUMBERS, "regression"),
    (OfTexts, {"text": np.array(["a b", "c", "d e f"] * 20)}, "regression"),
    (OfQuery, RESULTS, "ranking"),
    (OfSample, NUMBERS, "regression"),
    (OfTable, LABELS, "multiclass"),
    (OfClasses, LABELS, "binary"),
    (OfStairs, {"y_true": LABELS["y_true"], "y_score": RNG.random(N)}, "binary"),
    (OfRanking, RESULTS, "ranking"),
    (OfLabelings, CLUSTERS, "clustering"),
    (OfPairs, CLUSTERS, "clustering"),
    (OfOutputs, NUMBERS, "regression"),
    (OfValues, VALUES, "aggregation"),
    (OfStatistic, VALUES, "aggregation"),
    (OfCurve, VALUES, "aggregation"),
]
