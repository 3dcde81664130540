"""Judge k-means while it streams: against the digits that were written, and by the pixels alone.

MiniBatchKMeans sees the images in batches. After each pass the same batches fill the metrics,
on two workers whose states are merged. The last lines show which clusters are worth trusting.

Run: python examples/clustering.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_digits

import streammetrics as sm


def metrics(centroids: np.ndarray) -> tuple[sm.MetricSet, sm.MetricSet]:
    """Return empty metrics: with a truth, and without one."""
    truth = {"ARI": sm.AdjustedRandIndex(), "AMI": sm.AdjustedMutualInfo(), "purity": sm.Purity()}
    points = {
        "silhouette": sm.Silhouette(),
        "Davies-Bouldin": sm.DaviesBouldin(centroids=centroids),  # keeps no points
        "Calinski-Harabasz": sm.CalinskiHarabasz(),
    }
    return (
        sm.MetricSet(truth, columns={"labels_true": "digit", "labels_pred": "cluster"}),
        sm.MetricSet(points, columns={"X": "pixels", "labels": "cluster"}),
    )


def main() -> None:
    """Fit in batches, and evaluate in batches on two workers after each pass."""
    pixels, digits = load_digits(return_X_y=True)
    batches = np.array_split(np.random.default_rng(0).permutation(len(pixels)), 12)
    model = MiniBatchKMeans(n_clusters=10, random_state=0, n_init=3)
    suites: list[sm.MetricSet] = []
    values: dict[str, Any] = {}
    for epoch in range(4):
        for batch in batches:
            model.partial_fit(pixels[batch])
        workers = [metrics(model.cluster_centers_) for _ in range(2)]
        for number, batch in enumerate(batches):
            cluster = model.predict(pixels[batch])
            with_truth, without = workers[number % 2]
            with_truth.update(digit=digits[batch], cluster=cluster)
            without.update(pixels=pixels[batch], cluster=cluster)
        suites = [sm.merge(states) for states in zip(*workers, strict=True)]
        values = {name: value for suite in suites for name, value in suite.compute().items()}
        print(f"pass {epoch + 1}: " + ", ".join(f"{n} {v:.3f}" for n, v in values.items()))

    silhouette = suites[1]["silhouette"]
    assert isinstance(silhouette, sm.Silhouette)
    for cluster, value in sorted(silhouette.per_cluster().items(), key=lambda item: -item[1]):
        print(f"cluster {cluster}: silhouette {value:.3f}")
    assert values["ARI"] > 0.5


if __name__ == "__main__":
    main()
