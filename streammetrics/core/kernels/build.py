"""Build hook: compile the kernels if there is a C compiler, otherwise record why there are none.

The wheel is ``cp311-abi3`` with kernels and ``py3-none-any`` without. Environment variables:

- ``STREAMMETRICS_COMPILE=0`` installs without kernels; ``1`` makes a missing compiler an error.
- ``STREAMMETRICS_PLATFORM``, one of `TARGETS`, cross-compiles for that platform with ``zig cc``.
- ``CC``, ``CFLAGS`` and ``LDFLAGS`` have their usual meaning.

``python streammetrics/core/kernels/build.py``, with hatchling and ziglang installed, builds an
sdist and the wheels of all platforms in ``dist``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent
SOURCES = ["module.c", "baseline.c", "avx2.c"]
REASON = "reason.txt"  # holds the reason why there are no kernels, for `sm.kernels()`
# -fno-trapping-math lets compilers vectorize comparisons; it does not affect results.
EXACT = ["-O3", "-std=c11", "-ffp-contract=off", "-fno-fast-math", "-fno-trapping-math"]
ANYWHERE = f"-ffile-prefix-map={HERE.parents[2]}=."  # the same bytes from any folder
WINDOWS = ["/O2", "/std:c11", "/fp:precise"]
LIMITED = ("Py_LIMITED_API", "0x030B0000")  # Python 3.11: one wheel for it and all later versions
TARGETS = {  # platform tag of the wheel: zig target
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "macosx_10_13_x86_64": "x86_64-macos.10.13",
    "win_amd64": "x86_64-windows-gnu",
    "win_arm64": "aarch64-windows-gnu",
}
# The macros that the limited API needs from pyconfig.h; on macOS a Python header has the sizes.
CONFIG = """\
#ifndef __APPLE__
#define SIZEOF_SIZE_T __SIZEOF_SIZE_T__
#define SIZEOF_VOID_P __SIZEOF_POINTER__
#define SIZEOF_LONG __SIZEOF_LONG__
#define SIZEOF_LONG_LONG __SIZEOF_LONG_LONG__
#endif
#define SIZEOF_WCHAR_T __SIZEOF_WCHAR_T__
#ifdef _WIN32
#define MS_WINDOWS 1
#define HAVE_DECLSPEC_DLL 1
#define Py_ENABLE_SHARED 1
#endif
"""


class KernelsHook(BuildHookInterface[Any]):  # type: ignore[misc]  # untyped without hatchling
    """Adds the extension module to a wheel, or the reason why there is none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before a wheel is built; `version` is ``editable`` for an editable install."""
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
            platform = os.environ.get("STREAMMETRICS_PLATFORM")
            made = cross_compiled(folder, platform) if platform else compiled(folder)
            free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED")) and not platform
            build_data["pure_python"] = False
            build_data["infer_tag"] = free_threaded
            if not free_threaded:
                build_data["tag"] = f"cp311-abi3-{platform or this_platform()}"
        if version != "editable":
            self.made = made
            build_data["force_include"][str(made)] = f"streammetrics/core/kernels/{made.name}"

    def finalize(self, version: str, build_data: dict[str, object], artifact_path: str) -> None:
        """Remove the temporary files."""
        if version != "editable":
            shutil.rmtree(self.made.parent)


def missing() -> str | None:
    """Return a sentence that says what is missing for compilation; ``None`` if nothing is."""
    if os.environ.get("STREAMMETRICS_COMPILE") == "0":
        return "STREAMMETRICS_COMPILE=0 was set when this was installed"
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    if not headers.exists():
        return f"there was no Python.h at {headers.parent} when this was installed"
    if os.name == "nt":
        return None  # setuptools finds Visual Studio
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(command) is None:
        return f"there was no C compiler ({command}) when this was installed"
    return None


def compiled(folder: Path) -> Path:
    """Compile the extension module into a folder; return its path."""
    from setuptools import Distribution, Extension  # noqa: PLC0415 - only needed to compile
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415
    from setuptools.errors import CompileError, LinkError  # noqa: PLC0415

    limited = not sysconfig.get_config_var("Py_GIL_DISABLED")
    extension = Extension(
        "_kernels",
        sources=[str(HERE / name) for name in SOURCES],
        depends=[str(path) for path in HERE.glob("*.h")],
        extra_compile_args=WINDOWS if os.name == "nt" else [*EXACT, ANYWHERE],
        define_macros=[LIMITED if limited else ("Py_GIL_DISABLED", "1")],
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


def this_platform() -> str:
    """Return the platform part of the tag of a wheel for this machine."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def cross_compiled(folder: Path, platform: str) -> Path:
    """Compile the extension module for one of `TARGETS` into a folder; return its path."""
    zig, target = [sys.executable, "-m", "ziglang"], TARGETS[platform]
    made = folder / ("_kernels.pyd" if "windows" in target else "_kernels.abi3.so")
    with tempfile.TemporaryDirectory() as scratch:
        headers = Path(shutil.copytree(sysconfig.get_path("include"), f"{scratch}/include"))
        (headers / "pyconfig.h").write_text(CONFIG, encoding="utf-8")
        link = ["-Wl,-undefined,dynamic_lookup"] if "macos" in target else []
        if "windows" in target:
            # The import library is generated from the names in the headers. The limited API, for
            # which `module.c` is compiled, ensures that the names in use exist.
            text = "".join(path.read_text("utf-8") for path in headers.glob("*.h"))
            names = set(re.findall(r"PyAPI_(FUNC|DATA)\([^()]*\)\s*(\w+)", text))
            lines = [f"{name} DATA" if kind == "DATA" else name for kind, name in sorted(names)]
            library, machine = (
                Path(scratch, "python3.def"),
                "arm64" if "arm" in platform else "i386:x86-64",
            )
            library.write_text("\n".join(["LIBRARY python3.dll", "EXPORTS", *lines]), "utf-8")
            link = [f"{scratch}/python3.lib"]
            subprocess.run([*zig, "dlltool", "-m", machine, "-d", library, "-l", *link], check=True)
        options = [*EXACT, "-shared", "-fPIC", "-s", f"-D{'='.join(LIMITED)}", f"-I{headers}"]
        sources = [str(HERE / name) for name in SOURCES]
        command = [*zig, "cc", "-target", target, *options, *sources, *link, "-o", str(made)]
        subprocess.run(command, check=True)
    return made


def main() -> None:
    """Build the sdist, the wheels of all platforms, and the pure Python wheel."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", "dist", "-t"]
    subprocess.run([*build, "sdist"], check=True)
    for variables in (
        {"STREAMMETRICS_COMPILE": "0"},
        *({"STREAMMETRICS_COMPILE": "1", "STREAMMETRICS_PLATFORM": each} for each in TARGETS),
    ):
        subprocess.run([*build, "wheel"], check=True, env={**os.environ, **variables})


if __name__ == "__main__":
    main()
