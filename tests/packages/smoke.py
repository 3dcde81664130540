"""Try an installed streammetrics, which needs nothing but its dependencies: python smoke.py."""

from __future__ import annotations

from pathlib import Path

import streammetrics as sm

VECTORS = Path(__file__).parents[1] / "vectors"


def main() -> None:
    """Read every vector, and write the same bytes."""
    print(sm.kernels(), Path(sm.__file__).parent)
    auc = sm.ROCAUC().update([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    if auc.compute() != 0.75:
        raise SystemExit(f"ROCAUC is {auc.compute()}")
    for path in sorted(VECTORS.glob("*.state")):
        if sm.load(path).to_bytes() != path.read_bytes():
            raise SystemExit(f"{path.name} is written in other bytes")


if __name__ == "__main__":
    main()
