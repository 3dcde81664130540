"""Workers of one store whose clocks are far apart: what one has accepted, all of them show."""

from __future__ import annotations

import random

import pytest
from live.events import START, joined, live

from streammetrics.live import journal as journal_module
from streammetrics.live import store as store_module
from streammetrics.live.ingest import EventColumns
from streammetrics.live.store import StoreError

MINUTE = 60
LENGTHS = {"label_ttl": "5min", "label_lateness": "10min"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "live.db"


@pytest.fixture
def still(monkeypatch):
    """Nothing happens in the background: a test calls `tick` itself."""
    monkeypatch.setattr(journal_module, "_run", lambda *_: None)


def backlog(dice, n, minutes):
    """Return events in the order of their times, some of them a little late, as columns."""
    events = []
    for number in range(n):
        time = START + dice.random() * minutes * MINUTE
        made = dice.random()
        if made < 0.2:
            columns = {"y_true": [dice.randrange(2)], "y_score": [dice.randrange(17) / 16]}
            events.append((time, EventColumns("observe", [time], (), columns)))
            continue
        name, score = f"r{number}", dice.randrange(17) / 16
        events.append((time, EventColumns("predict", [time], ([name],), {"y_score": [score]})))
        for version in range(dice.randrange(3)):
            later = time + dice.random() * 6 * MINUTE
            heads = ([name], [version])
            label = EventColumns("label", [later], heads, {"y_true": [dice.randrange(2)]})
            events.append((later + dice.random() * 3 * MINUTE, label))
    events.sort(key=lambda event: event[0] + dice.random() * 2 * MINUTE)
    return [event for _, event in events]


def settled(services):
    for _ in range(4):
        for service in services:
            service._ingest.journal.tick()


def expected(events, **parameters):
    """Return the state of events of which none is too late, whatever their order."""
    whole = live(**{**LENGTHS, **parameters})
    whole._ingest.limit(0)
    for event in events:
        assert whole._ingest.take_all([event]) == [0]
    whole._ingest.limit(journal_module.NO_LIMIT)
    return whole


def seeded(name, one, other):
    """Return parameters of 60 seeds with either of two values; a seed with either in every run."""
    return pytest.mark.parametrize(
        ("seed", name),
        [
            *((1, other), (2, one)),
            *(pytest.param(n, one, marks=pytest.mark.long) for n in range(60) if n != 2),
            *(pytest.param(n, other, marks=pytest.mark.long) for n in range(60) if n != 1),
        ],
    )


@seeded("durable", False, True)
def test_every_accepted_event_of_a_backlog_is_in_every_worker(
    path, still, monkeypatch, seed, durable
):
    dice = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(store_module, "_LEAST", 1)  # folds often
    services = [joined(store=path, durable=durable) for _ in range(2)]
    accepted, refused = [], 0
    for event in backlog(dice, 120, (3000, 300, 30)[seed % 3]):
        (late,) = dice.choice(services)._ingest.take_all([event])
        refused += late
        if not late:
            accepted.append(event)
        if dice.random() < 0.1:
            dice.choice(services)._ingest.journal.tick()
        if dice.random() < 0.1:
            dice.choice(services).coverage("5min")
        if dice.random() < 0.03:
            dice.choice(services).flush()
        if dice.random() < 0.02:
            place = dice.randrange(2)
            services[place].close()
            services[place] = joined(store=path, durable=durable)
    settled(services)
    states = [service.to_bytes() for service in services]
    whole = expected(accepted)
    assert states[0] == states[1] == whole.to_bytes()
    assert len(accepted) > refused
    for service in services:
        assert service._shared.current.join.left > 0  # rows do leave
        assert len(service._shared.current.join.table) < 150
        service.close()
    with joined(store=path) as again:
        assert again.to_bytes() == whole.to_bytes()


def event(kind, name, minute, **columns):
    heads = {"predict": ([name],), "label": ([name], [1])}[kind]
    return EventColumns(kind, [START + minute * MINUTE], heads, columns)


def predicted(name, minute):
    return event("predict", name, minute, y_score=[0.75])


def labelled(name, minute):
    return event("label", name, minute, y_true=[1])


def test_a_worker_that_is_ahead_takes_what_another_has_accepted(path, still):
    tiers = (("1min", "1h"), ("1h", "2d"))
    ahead, behind = joined(store=path, tiers=tiers), joined(store=path, tiers=tiers)
    for minute in range(0, 600, 5):
        assert ahead._ingest.take_all([predicted(f"a{minute}", minute)]) == [0]
        ahead._ingest.journal.tick()
    for name in ("b", "c"):
        assert behind._ingest.take_all([predicted(name, 0)]) == [0]
    behind.flush()
    ahead._ingest.journal.tick()
    assert behind._ingest.take_all([labelled("b", 1)]) == [0]
    assert ahead._ingest.take_all([labelled("c", 1)]) == [0]
    for name, minute in (("a0", 1), ("b", 1)):  # both know by now how late it is
        settled([ahead, behind])
        assert behind._ingest.take_all([labelled(name, minute)]) == [1]
    assert ahead._ingest.take_all([predicted("d", 0)]) == [1]
    settled([ahead, behind])
    assert ahead.to_bytes() == behind.to_bytes()
    for service in (ahead, behind):
        assert len(service._shared.current.join.table) < 10
    for service in (ahead, behind):
        found = service.coverage("12h")
        assert (found.predicted, found.labelled) == (122, 2)
    assert ahead.coverage("5min").predictions_refused == 1
    assert behind.coverage("5min").labels_refused == 2
    ahead.close()
    behind.close()


def test_a_worker_that_was_killed_holds_up_the_others_for_a_minute(path, still, monkeypatch):
    one, killed = joined(store=path), joined(store=path)
    killed._ingest.journal._store.close()  # as `kill -9` would: it is not signed off
    clock = [0.0]
    monkeypatch.setattr(journal_module.time, "monotonic", lambda: clock[0])
    for minute in range(0, 600, 5):
        assert one._ingest.take_all([predicted(f"a{minute}", minute)]) == [0]
    settled([one])
    table = one._shared.current.join.table
    assert len(table) == 120
    clock[0] = journal_module.SILENCE + 1
    settled([one])
    one.predict(id="b", time=START + 600 * MINUTE, y_score=0.5).flush()
    assert len(one._shared.current.join.table) < 10
    one.close()


@pytest.mark.parametrize("durable", [False, True])
def test_a_worker_that_was_silent_for_long_reads_the_store_again(path, still, monkeypatch, durable):
    one, silent = joined(store=path), joined(store=path, durable=durable)
    silent.predict(id="before", time=START, y_score=0.25).flush()
    monkeypatch.setattr(journal_module, "SILENCE", -1.0)
    for minute in range(0, 600, 5):
        assert one._ingest.take_all([predicted(f"a{minute}", minute)]) == [0]
        one._ingest.journal.tick()
    monkeypatch.undo()
    if durable:
        with pytest.raises(StoreError, match="was silent for long, and reads the store again"):
            silent._ingest.take_all([predicted("late", 1)])
        silent._ingest.journal.tick()
        assert silent._ingest.take_all([predicted("late", 1)]) == [1]
        assert silent._ingest.take_all([predicted("new", 599)]) == [0]
    else:
        assert silent._ingest.take_all([predicted("late", 1), predicted("new", 599)]) == [0, 0]
        silent.flush()
    assert silent.coverage("5min").predictions_refused == 1
    settled([one, silent])
    assert one.to_bytes() == silent.to_bytes()
    assert one.coverage("5min").predicted == 2
    one.close()
    silent.close()


def test_a_file_that_is_replayed_beside_a_service_loses_nothing_of_it(path, still):
    replay = joined(store=path)
    with replay._ingest.journal.all_or_none():
        for minute in range(0, 600, 5):
            replay.predict(id=f"a{minute}", time=START + minute * MINUTE, y_score=0.75)
        assert len(replay._shared.current.join.table) < 120  # alone, it waits for nobody
        service = joined(store=path)
        for columns in (predicted("b", 0), labelled("b", 1)):
            assert service._ingest.take_all([columns]) == [0]
        service.flush()
    settled([replay, service])
    assert replay.to_bytes() == service.to_bytes()
    replay.close()
    service.close()


def test_events_that_wait_are_taken_before_newer_ones_make_rows_leave():
    service = joined()
    service.predict(id="a", time=START, y_score=0.5)
    for second in range(2000):
        service.observe(time=START + 100 * MINUTE + second, y_true=1, y_score=0.5)
    assert service.coverage("5min").predictions_refused == 0


@seeded("dedupe", "5min", "40min")
def test_observations_that_are_sent_to_several_workers_count_once(
    path, still, monkeypatch, seed, dedupe
):
    """Retries reach any worker, at once or much later, among events of other kinds."""
    dice = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(store_module, "_LEAST", 1)  # folds often
    services = [joined(store=path, dedupe=dedupe) for _ in range(2)]
    accepted, retried = [], []
    events = backlog(dice, 60, (3000, 300, 30)[seed % 3])
    for number, event in enumerate(events):
        if event.kind == "observe":
            event = event._replace(heads=([f"o{number}"],))  # noqa: PLW2901 - with its id
            retried += [event] * dice.randrange(3)
        again = [
            retried.pop(dice.randrange(len(retried))) for _ in range(dice.randrange(2)) if retried
        ]
        for one in (event, *again):
            (late,) = dice.choice(services)._ingest.take_all([one])
            accepted += [] if late else [one]
        if dice.random() < 0.1:
            dice.choice(services)._ingest.journal.tick()
        if dice.random() < 0.1:
            dice.choice(services).window("5min")
        if dice.random() < 0.03:
            dice.choice(services).flush()
        if dice.random() < 0.04:
            place = dice.randrange(2)
            services[place].close()
            services[place] = joined(store=path, dedupe=dedupe)
    settled(services)
    states = [service.to_bytes() for service in services]
    whole = joined(dedupe=dedupe)
    whole._ingest.limit(0)  # all wait, so no copy is missed
    for event in accepted:
        whole._ingest.take_all([event])
    whole._ingest.limit(journal_module.NO_LIMIT)
    assert states[0] == states[1] == whole.to_bytes()
    for service in services:
        service.close()
    with joined(store=path, dedupe=dedupe) as again:
        assert again.to_bytes() == whole.to_bytes()
