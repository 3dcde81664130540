"""Python in processes of its own."""

from __future__ import annotations

import subprocess
import sys


def started(*arguments):
    """Start Python in a session of its own, which signals can be sent to."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def check_example(path, folder):
    """Run an example from another folder, with warnings as errors; it has to print something."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
