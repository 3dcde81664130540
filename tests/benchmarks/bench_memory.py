"""Growth of the resident set over 100 million rows, in a process of its own."""

from __future__ import annotations

from measuring import Figure, growth_of

WORK = """
batch = 1_000_000
rng = np.random.default_rng(0)
y = rng.integers(0, 2, batch)
s = np.empty(batch)
suite = sm.MetricSet(
    {
        "auc": sm.ROCAUC(max_bins=bins),
        "ap": sm.AveragePrecision(max_bins=bins),
        "f1": sm.F1(threshold=0.5),
        "brier": sm.BrierScore(),
        "median error": sm.MedianAbsoluteError(max_bins=bins),
    },
    columns={"y_pred": "y_score"},
)
warm = suite.copy().update(y_true=y[:1000], y_score=rng.random(1000))
warm.compute()
begin()
start = time.perf_counter()
for _ in range(rows // batch):
    rng.random(out=s)
    np.sqrt(s, out=s, where=y.astype(bool))
    suite.update(y_true=y, y_score=s)
found["seconds"] = time.perf_counter() - start
suite.compute()
low, high = suite["auc"].bounds()
found["width"], found["state"] = high - low, suite.nbytes
"""


def hundred_million(scale):
    """100 M rows through ROCAUC, AP, F1, Brier and the median error, at two budgets."""
    rows = int(100_000_000 * scale)
    figures = []
    for power in (18, 20):
        found = growth_of(f"bins = 1 << {power}\n{WORK}", rows)
        growth, width = found["growth"] / 1e6, found["width"]
        title = f"memory, {rows:,} rows, 2^{power} bins: AUC, AP, F1, Brier, median"
        figures += [
            Figure(title, f"{growth:.0f} MB peak growth", "128 MB", growth < 128),
            Figure("  width of the AUC's interval", f"{width:.1e}", "1e-4", width < 1e-4),
            Figure("  state", f"{found['state'] / 1e6:.0f} MB", "", None),
            Figure("  time, making the rows included", f"{found['seconds']:.1f} s", "", None),
        ]
    return figures


BENCHMARKS = {"memory of 100 M rows": hundred_million}
