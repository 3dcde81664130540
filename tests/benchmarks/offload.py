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

On an accelerator, batches that are large enough to be counted there follow: first whether their
states have the bytes of plain updates on the CPU, for many types and shapes and for rows that are
refused; then the time of a batch by its size, counted on the device and moved as rows; then the
table again for pixels with the scores of 19 classes.
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
from streammetrics.engines import counted
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
    def __init__(self, make: Callable[[], sm.MetricSet] = suite, least: int = counted.LEAST):
        self.make, self.least = make, least

    def __enter__(self) -> Update:
        counted.LEAST = self.least
        self.metrics = Offload(self.make())
        return lambda labels, scores: self.metrics.update(y_true=labels, y_score=scores)

    def __exit__(self, *_: object) -> None:
        self.metrics.close()
        counted.LEAST = LEAST
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


LEAST = counted.LEAST


def pixels() -> sm.MetricSet:
    """Return metrics of the labels of pixels."""
    return sm.MetricSet(
        {
            "accuracy": sm.Accuracy(),
            "f1": sm.F1(average="macro", zero_division=0),
            "iou": sm.Jaccard(average="macro", zero_division=0),
        },
        columns={"y_pred": "y_score"},
    )


def torchmetrics_of_pixels(device: str) -> AbstractContextManager[Update]:
    """Update torchmetrics' metrics of the same pixels."""
    metrics = MetricCollection(
        [
            classification.MulticlassAccuracy(19, average="micro"),
            classification.MulticlassF1Score(19, average="macro"),
            classification.MulticlassJaccardIndex(19, average="macro"),
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

    def time(
        self,
        way: Way,
        steps: int,
        calls: list[float] | None = None,
        batch: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> float:
        """Return the seconds of a step; those of each update go to `calls`, if it is there.

        Metrics are updated with the `batch`, or the scores of the step.
        """
        self.wait()
        start = time.perf_counter()
        with way() as update:
            for _ in range(steps):
                scores = self.step()
                if calls is not None:
                    self.wait()
                before = time.perf_counter()
                if update is not None:
                    update(*(batch or (self.labels, scores)))
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


def compare(
    training: Training,
    ways: dict[str, Way],
    options: argparse.Namespace,
    batch: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> None:
    """Print a table of the ways of updating."""
    for way in ways.values():
        training.time(way, 20 if batch is None else 3, None, batch)
    times: dict[str, list[float]] = {name: [] for name in ways}
    calls: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            times[name].append(training.time(way, options.steps, None, batch))
            training.time(way, options.steps // 2, calls[name], batch)
    alone = median(times["nothing"])
    print(f"{'':32}{'ms a step':>10}{'added':>9}   µs of a call: median, 90 %, 99 %")
    for name in ways:
        step, added = median(times[name]), median(times[name]) / alone - 1
        line = f"{name:32}{1e3 * step:10.3f}{added:9.1%}"
        cuts = quantiles(calls[name], n=100)
        print(line + "   " + "".join(f"{1e6 * cuts[place - 1]:9.1f}" for place in (50, 90, 99)))


def cases(device: str) -> Iterator[tuple[str, sm.MetricSet, dict[str, torch.Tensor]]]:
    """Yield sets with batches of many types and shapes."""
    generator = torch.Generator(device).manual_seed(2)

    def integers(low: int, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(low, high, shape, generator=generator, device=device)

    def random(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=generator, device=device)

    weighted = {"sample_weight": "w"}
    cut = sm.MetricSet({"f1": sm.F1(threshold=0.3), "recall": sm.Recall(threshold=0.7)})
    curves = sm.MetricSet({"f1": sm.F1(threshold=0.3), "auc": sm.ROCAUC()})
    values = sm.MetricSet({"mean": sm.Mean(), "median": sm.Quantile(q=0.5)})
    for n in (1, 4096, 600_000):
        labels = integers(0, 2, n)
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            scores = random(n).to(dtype)
            for kind in (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32):
                columns = {"y_true": labels.to(kind), "y_score": scores}
                yield f"thresholds, {n}, {dtype}, {kind}", cut, columns
            columns = {"y_true": labels, "y_score": (scores * 50).round() / 50}
            yield f"scores, {n}, {dtype}", curves, columns
            yield f"all scores, {n}, {dtype}", curves, {"y_true": labels, "y_score": scores}
            columns = columns | {"w": integers(0, 3, n)}
            yield f"weights, {n}, {dtype}", sm.MetricSet(curves, columns=weighted), columns
            odd = (integers(-9, 9, n) / 7).to(dtype)
            odd[:2] = -0.0
            yield f"values, {n}, {dtype}", values, {"values": odd}
            invalid = scores.clone()
            invalid[n // 2] = torch.nan
            yield f"nan, {n}, {dtype}", cut, {"y_true": labels, "y_score": invalid}
        yield f"labels, {n}", pixels(), {"y_true": labels - 2**40, "y_score": integers(-2, 2, n)}
        third = labels.clone()
        third[-1] = 2
        yield f"a third label, {n}", curves, {"y_true": third, "y_score": labels.float()}
    for shape in ((700_000,), (700, 1000), (7, 100, 1000)):
        labels = integers(0, 5, *shape)
        yield f"labels {shape}", pixels(), {"y_true": labels, "y_score": integers(0, 5, *shape)}
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            scores = (random(shape[0], 5, *shape[1:]) * 4).round().to(dtype)  # ties
            yield f"classes {shape} {dtype}", pixels(), {"y_true": labels, "y_score": scores}
        scores[-1] = torch.nan
        yield f"classes {shape} with nan", pixels(), {"y_true": labels, "y_score": scores}


def check_counts(device: str) -> None:
    """Print whether batches counted on the device have the bytes and errors of plain updates."""
    n_cases, n_counted, n_refused, wrong = 0, 0, 0, []
    for title, made, columns in cases(device):
        expected, refused, raised = made.copy(), "", ""
        try:
            expected.update(**{name: column.cpu() for name, column in columns.items()})
        except sm.InvalidBatchError as error:
            refused = str(error)
        roles = counted.roles_of(made)
        if roles is not None and sum(map(torch.numel, columns.values())) >= counted.LEAST:
            n_counted += counted.counted(*counted.narrowed(columns, roles), roles) is not None
        metrics = Offload(made.copy())
        metrics.update(**columns)
        try:
            metrics.close()
        except sm.InvalidBatchError as error:
            raised = str(error)
        same = metrics.suite.to_bytes() == expected.to_bytes()
        # The message of an Offload begins with the batch, which it names again beside the row.
        first, last = refused.partition(" in row")[0], refused[-20:]
        if not same or bool(raised) != bool(refused) or first not in raised or last not in raised:
            wrong.append(f"{title}: {raised!r} for {refused!r}")
        n_cases, n_refused = n_cases + 1, n_refused + bool(refused)
    print(
        f"{n_cases} cases: {n_counted} counted on the device, {n_refused} refused; "
        f"{len(wrong)} unlike plain updates {wrong}"
    )


def by_size(device: str) -> None:
    """Print the milliseconds of a batch by its size, counted on the device and as rows."""
    cut = sm.MetricSet({"f1": sm.F1(threshold=0.5), "accuracy": sm.Accuracy(threshold=0.5)})
    print("ms of a batch, counted on the device / as rows; µs of a call, likewise")
    for power in range(15, 24, 2):
        n, line = 1 << power, ""
        labels = torch.randint(0, 2, (n,), device=device)
        scores = torch.rand(n, device=device)
        for title, made, score in (
            ("labels", pixels(), labels.flip(0)),
            ("thresholds", cut, scores),
            ("bfloat16 curves", suite(), scores.bfloat16()),
            ("float32 curves", suite(), scores),
        ):
            found, calls = [], []
            for least in (1, 1 << 62):
                times = []
                for _ in range(3):
                    with _Offloaded(made.copy, least) as update:
                        torch.cuda.synchronize()
                        start = time.perf_counter()
                        for _ in range(5):
                            update(labels, score)
                        called = time.perf_counter() - start
                    times.append(((time.perf_counter() - start) / 5, called / 5))
                best = min(times)
                found.append(f"{1e3 * best[0]:.2f}")
                calls.append(f"{1e6 * best[1]:.0f}")
            line += f"  {title} {' / '.join(found)} ({' / '.join(calls)})"
        print(f"{n:10,}{line}", flush=True)


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
    if MetricCollection is None:
        print("torchmetrics is not installed, and not measured")

    ways: dict[str, Way] = {"nothing": nothing, "Offload": offloaded, "update": plain}
    if MetricCollection is not None:
        ways["torchmetrics, all rows kept"] = lambda: torchmetrics(None, device)
        ways["torchmetrics, 1,000 thresholds"] = lambda: torchmetrics(1000, device)
    training = Training(device, options.rows)
    compare(training, ways, options)
    if device == "cpu":
        return
    check_counts(device)
    by_size(device)
    labels = torch.randint(0, 19, (8, 512, 512), device=device)
    scores = torch.randn(8, 19, 512, 512, device=device, dtype=torch.bfloat16)
    print("pixels, (8, 512, 512) labels and (8, 19, 512, 512) scores in bfloat16:")
    ways = {"nothing": nothing, "Offload, counts": lambda: _Offloaded(pixels)}
    if MetricCollection is not None:
        ways["torchmetrics"] = lambda: torchmetrics_of_pixels(device)
    compare(training, ways, options, (labels, scores))
    ways = {"nothing": nothing, "Offload, rows": lambda: _Offloaded(pixels, 1 << 62)}
    options.steps, options.rounds = 4, 1
    compare(training, ways, options, (labels, scores))


if __name__ == "__main__":
    main()
