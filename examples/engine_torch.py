"""Two ranks of torch.distributed evaluate a model together, each row counted once.

`DistributedSampler` gives both ranks equally many rows; as their number is odd, it repeats one,
which the loop leaves out. After `all_reduce` both ranks hold the state of all rows, to the byte.

Run: python examples/engine_torch.py
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import torch
import torch.distributed as dist
from torch.multiprocessing import spawn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import streammetrics as sm
from streammetrics.engines.torch import all_reduce, n_repeated

PATH = Path(__file__).parent / "data" / "adult_income_predictions.parquet"
RANKS, ROWS = 2, 20_001


def metrics() -> sm.MetricSet:
    """Return what every rank computes: the configuration is the same, or reducing raises."""
    return sm.MetricSet({"auc": sm.ROCAUC(), "loss": sm.LogLoss(), "f1": sm.F1(threshold=0.5)})


def rows() -> TensorDataset:
    """Read the scores of two models, and the labels."""
    table = pq.read_table(PATH, columns=["score", "baseline_score", "label"]).slice(0, ROWS)
    score, baseline, label = (torch.tensor(column.to_numpy()) for column in table.columns)
    return TensorDataset(torch.stack([score, baseline], dim=1), label)


def model(inputs: torch.Tensor) -> torch.Tensor:
    """Mix the two scores: row by row, so that no score depends on the batch that it is in."""
    return 0.75 * inputs[:, 0] + 0.25 * inputs[:, 1]


def work(rank: int, folder: str) -> None:
    """Evaluate this rank's share, reduce, and save the state."""
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS
    )
    suite, dataset = metrics(), rows()
    sampler = DistributedSampler(dataset, shuffle=True)
    left = len(sampler) - n_repeated(sampler)
    for inputs, labels in DataLoader(dataset, batch_size=512, sampler=sampler):
        keep = min(left, len(labels))
        left -= keep
        suite.update(y_true=labels[:keep], y_score=model(inputs)[:keep])
    print(f"rank {rank} has {suite.n_rows:,} rows of its {len(sampler):,}", flush=True)
    all_reduce(suite)
    Path(folder, f"{rank}").write_bytes(suite.to_bytes())
    dist.destroy_process_group()


def main() -> None:
    """Start the ranks and compare what each of them holds with one pass."""
    with TemporaryDirectory() as folder:
        spawn(work, (folder,), nprocs=RANKS)
        reduced = [Path(folder, f"{rank}").read_bytes() for rank in range(RANKS)]

    inputs, labels = rows().tensors
    alone = metrics().update(y_true=labels, y_score=model(inputs))
    assert reduced == [alone.to_bytes()] * RANKS
    for name, value in sm.from_bytes(reduced[0]).compute().items():
        print(f"{name}: {value:.6f}")
    print(f"{alone.n_rows:,} rows; the same bytes on both ranks and in one pass")


if __name__ == "__main__":
    main()
