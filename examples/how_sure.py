"""How sure is a model's score: by rows, by users whose rows hang together, and while one watches.

Forty thousand judgments of five hundred users: as rows they look surer than they are. The last
lines look after every thousand rows, and stop as soon as limits that hold at all times are above
0.6.

Run: python examples/how_sure.py
"""

from __future__ import annotations

import numpy as np

import streammetrics as sm


def judgments(users: int = 500, each: int = 80) -> dict[str, np.ndarray]:
    """Return rows of users who are easy or hard to tell."""
    rng = np.random.default_rng(0)
    easy = np.repeat(rng.beta(4.0, 2.0, users), each)
    truth = rng.integers(0, 2, easy.size)
    called = np.where(rng.random(easy.size) < easy, truth, 1 - truth)
    order = rng.permutation(easy.size)
    columns = {"y_true": truth, "y_pred": called, "user": np.arange(easy.size) // each}
    return {name: values[order] for name, values in columns.items()}


def main() -> None:
    """Print the limits."""
    rows = judgments()
    suite = sm.MetricSet({"accuracy": sm.Accuracy(), "MCC": sm.MatthewsCorrcoef()})
    by_row = suite.copy().update(y_true=rows["y_true"], y_pred=rows["y_pred"]).confidence(0.95)
    slices = sm.Slices(suite, by=[[]], unit="user").update(rows)
    by_user = slices.confidence(0.95, unit="user")
    for name, (low, high) in by_row.items():
        print(f"{name}: {low:.3f} to {high:.3f} by rows ({by_row[name].method})")
        print(f"  {by_user[f'{name}_low'][0]:.3f} to {by_user[f'{name}_high'][0]:.3f} by users")
    watched = sm.Accuracy()
    for start in range(0, len(rows["y_true"]), 1000):
        part = slice(start, start + 1000)
        low, high = watched.update(rows["y_true"][part], rows["y_pred"][part]).confidence(
            0.95, anytime=True
        )
        if low > 0.6:
            print(f"after {watched.n_rows:,} rows above 0.6 at all times: {low:.3f} to {high:.3f}")
            break


if __name__ == "__main__":
    main()
