"""Which columns are those of each model that is compared: as asked, and as a file tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from streammetrics.core.columns.naming import as_text
from streammetrics.core.errors import an
from streammetrics.statistics.joint.schema import OF_MODELS

ColumnNames: TypeAlias = str | Sequence[str]  # a column, or several that are one matrix


def told_columns(models: Any) -> dict[str, dict[str, str]]:
    """Return the models that a file names, in their order."""
    found = {}
    for model, columns in models:
        if not isinstance(columns, dict) or not all(isinstance(t, str) for t in columns.values()):
            raise ValueError(f"the columns of {model!r} are not told")
        found[model] = columns
    return found


def asked_columns(
    models: Mapping[str, ColumnNames | Mapping[str, ColumnNames]] | Sequence[str],
    own: Sequence[str],
) -> dict[str, dict[str, str]]:
    """Return for each model the columns of the inputs that are its own."""
    if isinstance(models, list | tuple) and all(isinstance(name, str) for name in models):
        models = {name: name for name in models}  # called as their columns are
    if not isinstance(models, Mapping):
        raise TypeError(
            f"models is {an(type(models).__name__)}: pass each model's column by its name, "
            "{'a': 'score_a', 'b': 'score_b'}"
        )
    if len(models) < 2:
        raise ValueError(f"models={dict(models)!r}: there are two at least to be compared")
    if not own:
        raise ValueError(f"none of the metrics reads an input of a model ({', '.join(OF_MODELS)})")
    asked: dict[str, dict[str, str]] = {}
    for model, given in models.items():
        if not isinstance(model, str) or not model:
            raise ValueError(f"{model!r} is no name of a model: expected text")
        if not isinstance(given, Mapping):
            if len(own) > 1:
                raise ValueError(
                    f"{model!r}: the metrics read {' and '.join(own)} of every model: "
                    f"{{{', '.join(f'{name!r}: ...' for name in own)}}}"
                )
            given = {own[0]: given}  # noqa: PLW2901 - as if it had been written so
        if given.keys() != set(own):
            raise ValueError(f"{model!r}: expected columns for {own}, not for {list(given)}")
        asked[model] = {name: as_text(given[name]) for name in own}
        for other, texts in asked.items():
            if other != model and texts == asked[model]:
                raise ValueError(f"models {other!r} and {model!r} are read from the same columns")
    return asked
