"""Build hook: compile the kernels where there is a C compiler, and say why not where there is none.

The wheel is ``cp311-abi3`` with kernels and ``py3-none-any`` without. Environment variables:

- ``STREAMMETRICS_COMPILE=0`` installs without kernels, ``1`` makes a missing compiler an error;
- ``STREAMMETRICS_PLATFORM`` is the platform of a wheel that is compiled for another machine;
- ``CC``, ``CFLAGS`` and ``LDFLAGS`` work as everywhere.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent
SOURCES = ["module.c", "baseline.c", "avx2.c"]
REASON = "reason.txt"  # why there are no kernels, for `sm.kernels()`
EXACT = ["-O3", "-std=c11", "-ffp-contract=off", "-fno-fast-math"]


class KernelsHook(BuildHookInterface[Any]):  # type: ignore[misc]  # there when it builds
    """Adds the extension module, or the reason why there is none, to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before a wheel is made; `version` is ``editable`` for an installed checkout."""
        folder = HERE if version == "editable" else Path(tempfile.mkdtemp())
        if version == "editable":
            for old in (*HERE.glob("_kernels*.so"), *HERE.glob("_kernels*.pyd"), HERE / REASON):
                old.unlink(missing_ok=True)
        reason = missing()
        wanted = os.environ.get("STREAMMETRICS_COMPILE", "")
        if wanted == "1" and reason:
            raise SystemExit(f"cannot compile the kernels: {reason}")
        if reason:
            made = folder / REASON
            made.write_text(reason + "\n", encoding="utf-8")
        else:
            made = compiled(folder)
            free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
            build_data["pure_python"] = False
            build_data["infer_tag"] = free_threaded
            if not free_threaded:
                build_data["tag"] = f"cp311-abi3-{platform_tag()}"
        if version != "editable":
            self.made = made
            build_data["force_include"][str(made)] = f"streammetrics/core/kernels/{made.name}"

    def finalize(
        self,
        version: str,
        build_data: dict[str, Any],  # noqa: ARG002 - as hatchling calls it
        artifact_path: str,  # noqa: ARG002
    ) -> None:
        """Remove what went into the wheel."""
        if version != "editable":
            shutil.rmtree(self.made.parent)


def missing() -> str | None:
    """Return what compiling needs and is not there, in a sentence; ``None`` if all is there."""
    if os.environ.get("STREAMMETRICS_COMPILE") == "0":
        return "STREAMMETRICS_COMPILE=0 was set when this was installed"
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    if not headers.exists():
        return f"there was no Python.h at {headers.parent} when this was installed"
    if os.name == "nt":
        return None  # setuptools looks for Visual Studio
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(command) is None:
        return f"there was no C compiler ({command}) when this was installed"
    return None


def compiled(folder: Path) -> Path:
    """Compile the extension module into a folder; return its path."""
    from setuptools import Distribution, Extension  # noqa: PLC0415 - needed only to compile
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415
    from setuptools.errors import CompileError, LinkError  # noqa: PLC0415

    limited = not sysconfig.get_config_var("Py_GIL_DISABLED")
    extension = Extension(
        "_kernels",
        sources=[str(HERE / name) for name in SOURCES],
        depends=[str(path) for path in HERE.glob("*.h")],
        extra_compile_args=["/O2", "/std:c11", "/fp:precise"] if os.name == "nt" else EXACT,
        py_limited_api=limited,
    )
    command = build_ext(Distribution({"name": "kernels", "ext_modules": [extension]}))
    with tempfile.TemporaryDirectory() as scratch:
        command.build_lib = command.build_temp = scratch
        command.ensure_finalized()
        try:
            command.run()
        except (CompileError, LinkError) as error:
            raise SystemExit(
                f"the kernels do not compile: {error}\n"
                "Set STREAMMETRICS_COMPILE=0 to install without them: results are the same, slower."
            ) from error
        (made,) = command.get_outputs()
        return Path(shutil.copy(made, folder))


def platform_tag() -> str:
    """Return the platform part of the wheel's tag."""
    if wanted := os.environ.get("STREAMMETRICS_PLATFORM"):
        return wanted
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
