"""States without the check of what is declared, to test what stands behind it."""

from __future__ import annotations

import pytest

from streammetrics.live.validation import Declared


@pytest.fixture
def undeclared(monkeypatch):
    def facts(self):
        return tuple({} for _ in self._suite._plan.schemas)

    monkeypatch.setattr(Declared, "_facts", facts)
    for name in ("check", "check_optional"):
        monkeypatch.setattr(Declared, name, lambda *_, **__: None)
