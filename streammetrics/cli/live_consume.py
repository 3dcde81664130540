"""`streammetrics live consume`: events from a queue."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import closing
from dataclasses import replace
from typing import Annotated

import typer

from streammetrics.cli import options as typed
from streammetrics.cli.live import Config, LogForm, live, use_log
from streammetrics.cli.result import CommandError, CommandResult
from streammetrics.live.service.config import settings

__all__ = ["live"]


@typed.command(live)
def consume(
    config: Config,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="redis://, nats:// or kafka://HOST:PORT.")
    ],
    stream: Annotated[
        str, typer.Option("--stream", "--topic", metavar="NAME", help="The stream or topic.")
    ],
    group: Annotated[
        str, typer.Option(metavar="NAME", help="Names the position in it (streammetrics).")
    ] = "streammetrics",
    password_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Environment variable with the password or token."),
    ] = None,
    log: LogForm = "text",
) -> CommandResult:
    """Take events from a queue to the store, each once. Ctrl-C or SIGTERM ends it.

    Examples:
        streammetrics live consume live.toml redis://127.0.0.1:6379 --stream events
        streammetrics live consume live.toml nats://10.0.0.1:4222 --stream events
        streammetrics live consume live.toml kafka://10.0.0.1:9092 --topic scored
    """
    from streammetrics.live.consuming.consumer import (  # noqa: PLC0415 - needs the extra
        Consumer,
        queue_of,
    )

    use_log(log)
    password = "" if password_env is None else os.environ.get(password_env, "")
    if password_env and not password:
        raise CommandError(
            f"the environment variable {password_env} is not set, or empty: export it"
        )
    found = settings(config, secrets=False)
    if found.options["store"] is None:
        raise CommandError(f"{config} has no store, which holds how far a queue is read: add one")
    if found.letters is None:
        raise CommandError(
            f"{config} has nowhere to put refused events, which would stop the queue: write "
            'on_invalid = "dead_letter" in [live]'
        )
    queue = queue_of(url, stream, group, password)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    durable = replace(found, options={**found.options, "durable": True})
    with closing(queue), durable.live() as state:
        consumer = Consumer(state, found.names, queue, found.letters, stop)
        consumer.start()
        print(f"consuming {stream}", flush=True)
        consumer.run()
    told = ", ".join(f"{n:,} {name}" for name, n in consumer.counts.items())
    return CommandResult(f"consumed {told or 'nothing'}\n")
