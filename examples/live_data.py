"""Two files as a service would leave them: predictions as they were made, labels as they came.

    python examples/live_data.py [FOLDER]

Rows of the adult data are served over two weeks, more by day than by night. A label is known
hours after its prediction, for some after days, and for one in twenty never. In the last
three days a new client asks, for whom the model is no better than a coin.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(__file__).parent / "data"
END = np.datetime64("2026-11-20T00:00:00", "ms")
DAYS, DAY = 14, 86_400_000
ROWS = 12_000


def main(folder: Path) -> None:
    dice = np.random.default_rng(20_261_120)
    table = pq.read_table(DATA / "adult_income_predictions.parquet").to_pandas()
    table = table.iloc[dice.permutation(len(table))[:ROWS]].reset_index(drop=True)

    # More requests by day: of a wave over the day, drawn by its quantiles.
    grid = np.linspace(0, DAYS, 20_001)
    share = np.cumsum(1 + 0.8 * np.sin(2 * np.pi * (grid - 0.35)))
    at = np.sort(np.interp(dice.random(ROWS) * share[-1], share, grid))
    time = END - np.int64(DAYS * DAY) + (at * DAY).astype(np.int64)

    client = dice.choice(["app", "web", "partner"], ROWS, p=[0.5, 0.35, 0.15])
    new = (at > DAYS - 3) & (dice.random(ROWS) < 0.25)
    client = np.where(new, "new client", client)
    score = np.where(new, dice.permutation(table["score"].to_numpy()), table["score"])

    delay = (dice.lognormal(np.log(3 * 3_600_000), 1.2, ROWS)).astype(np.int64)
    known = dice.random(ROWS) > 0.05
    label_time = time + delay
    known &= label_time < END
    name = np.array([f"r{number:05d}" for number in range(ROWS)])

    stamp = pa.timestamp("ms", "UTC")
    served: dict[str, Any] = {
        "id": name,
        "time": pa.array(time, stamp),
        "score": np.round(score, 4).astype(np.float32),
        "client": pa.array(client).dictionary_encode(),
    }
    order = np.argsort(label_time[known], kind="stable")
    labels: dict[str, Any] = {
        "id": name[known][order],
        "label_time": pa.array(label_time[known][order], stamp),
        "label": table["label"].to_numpy()[known][order].astype(np.int8),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for file, columns in (("adult_served", served), ("adult_labels", labels)):
        path = folder / f"{file}.parquet"
        pq.write_table(pa.table(columns), path, compression="zstd")
        print(f"{path.name}: {len(columns['id']):,} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path("live_data"))
