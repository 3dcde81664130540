"""Evaluate a recommender: users are queries, items are documents, held-out likes are judgments.

What a user liked and what the recommender showed come from different logs, on different workers;
they are joined by (user, item) in the metrics. An item the user liked but was never shown counts
in recall and in the ideal ranking; one that was shown and not liked is simply not relevant.

Run: python examples/recommender.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import streammetrics as sm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

USERS, ITEMS, TASTES, SHOWN = 2_000, 300, 6, 20


def likes() -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return simulated likes (users, items): those to learn from, and those held out."""
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(USERS, TASTES)), rng.normal(size=(ITEMS, TASTES))
    liking = users @ items.T + rng.normal(scale=1.5, size=ITEMS)  # some items are just popular
    liked = rng.random((USERS, ITEMS)) < 1 / (1 + np.exp(6 - liking))
    held_out = liked & (rng.random(liked.shape) < 0.3)
    return liked & ~held_out, held_out


def by_factors(known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return each user's score of each item: the known likes, smoothed to a few factors."""
    left, strengths, right = np.linalg.svd(known - known.mean(axis=0), full_matrices=False)
    smooth: NDArray[np.float64] = (left[:, :TASTES] * strengths[:TASTES]) @ right[:TASTES]
    return np.asarray(smooth + known.mean(axis=0))


def by_popularity(known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how many users like each item, the same for every user; many items tie."""
    return np.tile(known.sum(axis=0, dtype=np.float64), (USERS, 1))


def shown(scores: NDArray[np.float64], known: NDArray[np.bool_]) -> Iterator[dict[str, Any]]:
    """Yield the log of recommendations, some users at a time: the best items not yet known."""
    scores = np.where(known, -np.inf, scores)
    for users in np.array_split(np.arange(USERS), 10):
        items = np.argsort(-scores[users], axis=1)[:, :SHOWN]
        rows = np.repeat(users, SHOWN)
        yield {"user": rows, "item": items.ravel(), "score": scores[rows, items.ravel()]}


def evaluated(log: Iterator[dict[str, Any]], held_out: NDArray[np.bool_]) -> sm.MetricSet:
    """Return the metrics of a log of recommendations, from two workers with half the data each."""
    blank = sm.MetricSet(
        {
            "nDCG@10": sm.NDCG(k=10),
            "recall@10": sm.RecallAtK(k=10),
            "hit rate@10": sm.HitRateAtK(k=10),
            "MRR@10": sm.MRR(k=10),
        },
        columns={"query": "user", "doc": "item"},
    )
    workers = [blank.copy(), blank.copy()]
    for number, batch in enumerate(log):
        workers[number % 2].update(batch)
    users, items = np.nonzero(held_out)
    half = len(users) // 2
    for worker, rows in zip(workers, (slice(half, None), slice(half)), strict=True):
        worker.update(user=users[rows], item=items[rows], relevance=np.ones(len(users[rows])))
    return sm.merge(workers)


def main() -> None:
    """Compare two recommenders, and look at the users one of them fails."""
    known, held_out = likes()
    for title, recommend in (("factors", by_factors), ("popularity", by_popularity)):
        suite = evaluated(shown(recommend(known), known), held_out)
        values = "  ".join(f"{name} {value:.4f}" for name, value in suite.compute().items())
        print(f"{title:10}  {values}")
    recall = suite["recall@10"]
    assert isinstance(recall, sm.RecallAtK)
    served = recall.per_query()
    print(f"{recall.n_queries:,} users with a held-out like, {recall.n_unjudged:,} without")
    missed = sum(value == 0 for value in served.values())
    print(f"{missed:,} users see none of what they like in popularity's first ten")
    print(f"held in memory: {suite.nbytes:,} bytes for {suite.n_rows:,} rows")


if __name__ == "__main__":
    main()
