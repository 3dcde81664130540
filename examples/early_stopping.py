"""Stop an evaluation early, honestly: look after every batch, and stop when the limits are narrow.

python examples/early_stopping.py
"""

import numpy as np

import streammetrics as sm

BATCH, ROWS, ACCURACY, EVALUATIONS = 50, 4000, 0.9, 100


def evaluate(rng: np.random.Generator) -> tuple[int, tuple[float, float]]:
    """Return the rows used and the anytime limits of an evaluation that stops early."""
    suite = sm.MetricSet({"accuracy": sm.Accuracy()})
    right = (rng.random(ROWS) < ACCURACY).astype(int)  # a shuffled evaluation set
    for start in range(0, ROWS, BATCH):
        batch = right[start : start + BATCH]
        suite.update(y_true=np.ones(batch.size, int), y_pred=batch)
        if suite.enough({"accuracy": 0.08}):
            break
    low, high = suite["accuracy"].confidence(0.95, anytime=True)
    return suite.n_rows, (low, high)


def main() -> None:
    """Print how many rows early stopping saves, and how often its limits miss."""
    rng = np.random.default_rng(0)
    found = [evaluate(rng) for _ in range(EVALUATIONS)]
    rows = np.mean([n for n, _ in found])
    missed = np.mean([not low <= ACCURACY <= high for _, (low, high) in found])
    print(f"stopped after {rows:,.0f} of {ROWS:,} rows; {missed:.1%} of the limits miss")
    assert missed <= 0.05


if __name__ == "__main__":
    main()
