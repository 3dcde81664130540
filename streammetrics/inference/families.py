"""All families of metrics whose intervals are known; importing it makes them so."""

from streammetrics.inference import (
    correlations,
    curves,
    labelings,
    means,
    moments,
    multilabel,
    order,
    rankings,
    scores,
    tables,
    texts,
)

__all__ = [
    "correlations",
    "curves",
    "labelings",
    "means",
    "moments",
    "multilabel",
    "order",
    "rankings",
    "scores",
    "tables",
    "texts",
]
