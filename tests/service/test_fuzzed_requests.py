"""What the description promises, against requests that a fuzzer makes of it, kind and unkind."""

from __future__ import annotations

import time
import warnings

import hypothesis
import pytest
from service.serving import Service

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it asks its own dependencies
    import schemathesis
    from schemathesis.specs.openapi.checks import positive_data_acceptance

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:::schemathesis")]

EXAMPLES = 25  # of each operation
# No description can say that times are not ahead of the clock, or that panes make up a window.
UNSAID = [positive_data_acceptance]
CONFIG = """
[metrics]
auc = "ROCAUC"
accuracy = "Accuracy(threshold=0.5)"
[columns]
y_true = "label"
y_score = "score"
[live]
tiers = [["1min", "3h"], ["1h", "15d"]]
[alerts]
low = 'Below("accuracy", 0.9)'
"""


@pytest.fixture(scope="module", params=["its own events", "those of a replica"])
def described(tmp_path_factory, request):
    """Return the description of a service that runs and has seen some events."""
    folder = tmp_path_factory.mktemp("service")
    path, merged = folder / "live.toml", folder / "merged.toml"
    path.write_text(CONFIG)
    with Service(path) as service:
        at = {"kind": "observe", "time": time.time() - 60}
        service.post([{**at, "score": n / 10, "label": n % 2} for n in range(10)])
        merged.write_text(f'{CONFIG}[merge]\nreplicas = ["{service.url}"]\nevery = "1s"\n')
        shown = service if request.param == "its own events" else Service(merged).start()
        yield schemathesis.openapi.from_url(f"{shown.url}/openapi.json")
        assert shown.get("/api/now")["n_rows"] >= 10
        assert "Traceback" not in shown.end()


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Return the description of a service of two models."""
    path = tmp_path_factory.mktemp("models") / "live.toml"
    texts = [CONFIG.replace("\n[", f"\n[model.{name}.") for name in ("old", "new")]
    path.write_text("".join(texts))
    with Service(path) as service:
        yield schemathesis.openapi.from_url(f"{service.url}/openapi.json")
        assert service.get("/health")["status"] == "ok"
        assert "Traceback" not in service.end()


@pytest.mark.parametrize("mode", schemathesis.GenerationMode, ids=lambda mode: mode.value)
def test_several_models_answer_as_they_describe(several, mode):
    assert tried(several, mode) >= 1


@pytest.mark.parametrize("mode", schemathesis.GenerationMode, ids=lambda mode: mode.value)
def test_it_answers_as_it_describes(described, mode):
    assert tried(described, mode) >= 6


def tried(described, mode):
    """Ask all operations, and return how many there are."""
    tried = 0
    for found in described.get_all_operations():
        operation = found.ok()
        if mode is schemathesis.GenerationMode.NEGATIVE and not takes(operation):
            continue  # there is nothing that could be wrong

        @hypothesis.seed(1)
        @hypothesis.settings(max_examples=EXAMPLES, deadline=None, database=None)
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def ask(case):
            case.call_and_validate(excluded_checks=UNSAID)

        ask()
        tried += 1
    return tried


def takes(operation):
    """Whether anything of a request is its own to say."""
    return bool(list(operation.query) or list(operation.body))
