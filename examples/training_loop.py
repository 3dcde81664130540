"""A training loop on handwritten digits, with metrics updated at every batch.

Uses PyTorch if it is there, else scikit-learn's partial_fit.

Run: python examples/training_loop.py
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

import streammetrics as sm

torch: Any = import_module("torch") if find_spec("torch") else None

if TYPE_CHECKING:
    from collections.abc import Iterator

EPOCHS, BATCH = 5, 64


def metrics() -> sm.MetricSet:
    """Return what is watched while training; (n, 10) logits serve as predictions as well."""
    return sm.MetricSet(
        {
            "accuracy": sm.Accuracy(),
            "top-2": sm.TopKAccuracy(k=2),
            "f1": sm.F1(average="macro"),
            "auc": sm.ROCAUC(from_logits=True),  # one class against the rest, by its softmax
        },
        columns={"y_pred": "y_score"},
    )


def batches(x: Any, y: Any, rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    """Yield the rows in a new order."""
    order = rng.permutation(len(y))
    for start in range(0, len(y), BATCH):
        rows = order[start : start + BATCH]
        yield x[rows], y[rows]


class TorchModel:
    """Logistic regression by PyTorch; its tensors go into the metrics as they are."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(64, 10)
        self.optimizer = torch.optim.Adam(self.layer.parameters(), lr=0.02)

    def learn(self, x: Any, y: Any) -> Any:
        """Take one step and return the logits before it."""
        logits = self.layer(torch.from_numpy(x))
        self.optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, torch.from_numpy(y)).backward()
        self.optimizer.step()
        return logits  # requires_grad, and never leaves the graph: metrics detach it

    def logits(self, x: Any) -> Any:
        """Return the logits of rows."""
        return self.layer(torch.from_numpy(x))


class ScikitModel:
    """Logistic regression by scikit-learn."""

    def __init__(self) -> None:
        self.model = SGDClassifier(loss="log_loss", random_state=0)

    def learn(self, x: Any, y: Any) -> Any:
        """Take one step and return the logits after it."""
        self.model.partial_fit(x, y, classes=np.arange(10))
        return self.logits(x)

    def logits(self, x: Any) -> Any:
        """Return the logits of rows."""
        return self.model.decision_function(x)


def main() -> None:
    """Train, and print the metrics of each epoch."""
    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=0)
    model = ScikitModel() if torch is None else TorchModel()
    rng = np.random.default_rng(0)
    print(f"training with {type(model).__name__}")
    for epoch in range(1, EPOCHS + 1):
        train, test = metrics(), metrics()
        for xs, ys in batches(x_train, y_train, rng):
            train.update(y_true=ys, y_score=model.learn(xs, ys))
        for xs, ys in batches(x_test, y_test, rng):
            test.update(y_true=ys, y_score=model.logits(xs))
        shown = {name: f"{value:.3f}" for name, value in test.compute().items()}
        print(f"epoch {epoch}: training accuracy {train['accuracy'].compute():.3f}, test {shown}")


if __name__ == "__main__":
    main()
