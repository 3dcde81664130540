"""What metrics add to a training step, updated off the critical path and otherwise.

    python tests/benchmarks/offload.py [--device cuda] [--rows 4096] [--steps 200] [--rounds 5]

A multilayer perceptron is trained on random rows, on the accelerator where there is one; the
metrics of each step are F1, accuracy, ROC AUC and average precision of its scores. The ways of
updating them take turns, and the time of a step is the median over the rounds, with everything
still in a queue waited for. The time of a call is that of an update in another run, in which the
device is waited for before each: otherwise it would be mostly the time until the device takes the
next operation. Torchmetrics is measured where it is installed: with
``thresholds=None`` its curves keep all rows on the device and count them in ``compute``, which is
not measured; with 1,000 thresholds it counts in each step, and its curves are approximations.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from contextlib import nullcontext
from statistics import median, quantiles
from typing import TYPE_CHECKING

import torch

import streammetrics as sm
from streammetrics.engines.torch import Offload

try:
    from torchmetrics import MetricCollection, classification
except ImportError:
    MetricCollection = None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Update = Callable[[torch.Tensor, torch.Tensor], object]
    Way = Callable[[], AbstractContextManager[Update | None]]


def suite() -> sm.MetricSet:
    """Return the metrics, of binary labels and scores."""
    return sm.MetricSet(
        {
            "f1": sm.F1(threshold=0.5),
            "accuracy": sm.Accuracy(threshold=0.5),
            "auc": sm.ROCAUC(),
            "ap": sm.AveragePrecision(),
        }
    )


def nothing() -> AbstractContextManager[None]:
    """Train alone."""
    return nullcontext()


def offloaded() -> AbstractContextManager[Update]:
    """Update in a thread; the end of the block waits for it."""
    return _Offloaded()


class _Offloaded:
    def __enter__(self) -> Update:
        self.metrics = Offload(suite())
        return lambda labels, scores: self.metrics.update(y_true=labels, y_score=scores)

    def __exit__(self, *_: object) -> None:
        self.metrics.close()
        assert self.metrics.enqueued == self.metrics.processed


def plain() -> AbstractContextManager[Update]:
    """Update in the loop."""
    metrics = suite()
    return nullcontext(lambda labels, scores: metrics.update(y_true=labels, y_score=scores))


def torchmetrics(thresholds: int | None, device: str) -> AbstractContextManager[Update]:
    """Update torchmetrics' metrics in the loop, on the device."""
    metrics = MetricCollection(
        [
            classification.BinaryF1Score(),
            classification.BinaryAccuracy(),
            classification.BinaryAUROC(thresholds=thresholds),
            classification.BinaryAveragePrecision(thresholds=thresholds),
        ]
    ).to(device)
    return nullcontext(lambda labels, scores: metrics.update(scores, labels))


class Training:
    """A model, its optimizer, and rows on the device."""

    def __init__(self, device: str, rows: int) -> None:
        torch.manual_seed(0)
        width, n_layers = (2048, 3) if device != "cpu" else (32, 1)
        layers: list[torch.nn.Module] = [torch.nn.Linear(256, width), torch.nn.ReLU()]
        for _ in range(n_layers):
            layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
        self.device = device
        self.model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 1)).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.inputs = torch.randn(rows, 256, device=device)
        self.labels = (self.inputs[:, 0] + torch.randn(rows, device=device) > 0).long()

    def step(self) -> torch.Tensor:
        """Train on the rows, and return their scores."""
        logits = self.model(self.inputs).squeeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, self.labels.float())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return logits.sigmoid()

    def wait(self) -> None:
        """Wait for the device."""
        if self.device != "cpu":
            getattr(torch, self.device).synchronize()

    def time(self, way: Way, steps: int, calls: list[float] | None = None) -> float:
        """Return the seconds of a step; those of each update go to `calls`, if it is there."""
        self.wait()
        start = time.perf_counter()
        with way() as update:
            for _ in range(steps):
                scores = self.step()
                if calls is not None:
                    self.wait()
                before = time.perf_counter()
                if update is not None:
                    update(self.labels, scores)
                if calls is not None:
                    calls.append(time.perf_counter() - before)
        self.wait()
        return (time.perf_counter() - start) / steps


def batches(device: str, rows: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield batches in the same two tensors, which are overwritten for each."""
    labels = torch.empty(rows, dtype=torch.long, device=device)
    scores = torch.empty(rows, device=device)
    generator = torch.Generator(device).manual_seed(1)
    for _ in range(100):
        labels.random_(0, 2, generator=generator)
        scores.uniform_(generator=generator)
        yield labels, scores
        labels.fill_(-1)
        scores.fill_(-1.0)


def same_bytes(device: str, rows: int) -> bool:
    """Whether the state is that of plain updates, with tensors that are overwritten at once."""
    expected = suite()
    for labels, scores in batches(device, rows):
        expected.update(y_true=labels.cpu(), y_score=scores.cpu())
    with Offload(suite()) as metrics:
        for labels, scores in batches(device, rows):
            metrics.update(y_true=labels, y_score=scores)
    return metrics.suite.to_bytes() == expected.to_bytes()


def main() -> None:
    """Run the benchmark and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, default=4096, help="rows of a batch")
    parser.add_argument("--steps", type=int, default=200, help="steps of a round")
    parser.add_argument("--rounds", type=int, default=5, help="times that the ways take turns")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    device = options.device
    name = torch.cuda.get_device_name() if device == "cuda" else platform.processor() or device
    print(f"{name}; torch {torch.__version__}; {sm.kernels()}; batches of {options.rows:,} rows")
    print("the bytes of plain updates:", same_bytes(device, options.rows))

    ways: dict[str, Way] = {"nothing": nothing, "Offload": offloaded, "update": plain}
    if MetricCollection is not None:
        ways["torchmetrics, all rows kept"] = lambda: torchmetrics(None, device)
        ways["torchmetrics, 1,000 thresholds"] = lambda: torchmetrics(1000, device)
    training = Training(device, options.rows)
    for way in ways.values():
        training.time(way, 20)
    times: dict[str, list[float]] = {name: [] for name in ways}
    calls: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            times[name].append(training.time(way, options.steps))
            training.time(way, options.steps // 2, calls[name])
    alone = median(times["nothing"])
    print(f"{'':32}{'ms a step':>10}{'added':>9}   µs of a call: median, 90 %, 99 %")
    for name in ways:
        step, added = median(times[name]), median(times[name]) / alone - 1
        line = f"{name:32}{1e3 * step:10.3f}{added:9.1%}"
        cuts = quantiles(calls[name], n=100)
        print(line + "   " + "".join(f"{1e6 * cuts[place - 1]:9.1f}" for place in (50, 90, 99)))


if __name__ == "__main__":
    main()
