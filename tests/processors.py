"""Values on other processors: which of them may differ, and how one processor stands for others.

    python tests/processors.py above

prints the names of the features above AVX2 that NumPy uses here, for ``NPY_DISABLE_CPU_FEATURES``;
``dispatched`` instead prints all above its baseline, ``libm`` a value of ``GLIBC_TUNABLES``, and
``digests`` a JSON object: for each metric of the oracle table the digests of its state and value.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

TESTS = Path(__file__).parent
LAWS = TESTS.parent / "docs" / "laws.md"
# Variants of libm's functions that use fused multiplication; glibc before 2.33 has the other names.
NO_FMA = "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA_Usable,-AVX2_Usable"


def dispatched(*, above_avx2: bool = False) -> list[str]:
    """Return the features above NumPy's baseline that it uses on this processor."""
    names = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    wide = ("AVX512", "X86_V4")
    return [name for name in names if not above_avx2 or name.startswith(wide)]


def per_platform() -> set[str]:
    """Return the names of the metrics whose value may differ, by the docs."""
    table = LAWS.read_text("utf-8").partition("## Per platform\n")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    return {name for row in rows[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def digests() -> dict[str, list[str]]:
    """Return the digests of the state and the value of each metric of the oracle table."""
    sys.path[:0] = [str(TESTS)]
    from oracles.table import ORACLES, distinct

    found = {}
    for oracle in distinct(ORACLES, readouts=True):
        rows = oracle.rows(np.random.default_rng(0), oracle.n)
        metric = oracle.metric.copy().update(**rows)
        value = metric.compute()
        plain = value.tolist() if isinstance(value, np.ndarray) else value
        told = [metric.to_bytes(), repr(plain).encode()]
        key = f"{type(metric).__name__} {oracle.id}"
        found[key] = [hashlib.sha256(each).hexdigest() for each in told]
    return found


def digests_of_a_plain_processor() -> dict[str, list[str]]:
    """Return the same of a process without the features, kernels and variants of libm and BLAS."""
    env = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(dispatched())}
    env["STREAMMETRICS_KERNELS"] = "reference"
    if platform.machine().lower() in {"x86_64", "amd64"}:
        env |= {"GLIBC_TUNABLES": NO_FMA, "OPENBLAS_CORETYPE": "Nehalem"}
    command = [sys.executable, __file__, "digests"]
    done = subprocess.run(command, env=env, capture_output=True, check=True, text=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def main(asked: str) -> None:
    """Print what is asked for."""
    if asked == "digests":
        warnings.simplefilter("ignore")
        print(json.dumps(digests()))
    elif asked == "libm":
        print(NO_FMA)
    else:
        print(" ".join(dispatched(above_avx2=asked == "above")))


if __name__ == "__main__":
    main(sys.argv[1])
