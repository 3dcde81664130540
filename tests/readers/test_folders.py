"""Folders, globs and links: what is read counts once, what is not is named."""

from __future__ import annotations

import os
import warnings

import pytest
from prediction_files import store, text
from reading import fed, rows, suite

import streammetrics as sm
from streammetrics.readers.paths import ReadError, find

TABLE = rows(300)


def read(*paths):
    """Return the set of the paths, and what was said beside it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state = sm.evaluate(suite(), list(paths))
    assert all(warning.filename == __file__ for warning in caught)
    return state, [str(warning.message) for warning in caught]


def test_what_a_folder_leaves_out_is_counted_and_named(tmp_path):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    for folder in (data / "sub", data / ".git", elsewhere):
        folder.mkdir(parents=True)
    store(TABLE, data / "a.parquet")
    store(TABLE, data / "sub" / "b.csv")
    store(TABLE, elsewhere / "c.csv")
    os.symlink(elsewhere, data / "link")
    os.symlink(data, data / "sub" / "loop")
    os.symlink("nowhere", data / ".#a.parquet")  # as an editor leaves it
    for other in ("d.parquet.gz", "e.arrow.zst", "f.txt", "g.xlsx", "h"):
        (data / other).write_bytes(b"x")
    os.mkfifo(data / "pipe.csv")
    state, said = read(data)
    assert state == fed(TABLE, TABLE)
    assert sorted(said) == [
        f"1 left out, neither files nor folders: {data}/pipe.csv",
        f"2 left out, hidden (the name begins with . or _): {data}/.#a.parquet, {data}/.git",
        f"2 left out, links to folders: {data}/link, {data}/sub/loop",
        f"5 left out, of other kinds: {data}/d.parquet.gz, {data}/e.arrow.zst, {data}/f.txt, ...",
    ]


def test_a_glob_waits_for_no_pipe(tmp_path):
    store(TABLE, tmp_path / "a.csv")
    os.mkfifo(tmp_path / "b.csv")
    state, said = read(f"{tmp_path}/*.csv")
    assert state == fed(TABLE)
    assert said == [f"1 left out, neither files nor folders: {tmp_path}/b.csv"]


def test_nothing_is_said_where_all_is_read(tmp_path):
    for name in ("a.parquet", "b.csv.gz", "c.jsonl", "deep/d.arrow"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        store(TABLE, tmp_path / name)
    assert read(tmp_path) == (fed(*[TABLE] * 4), [])
    assert read(str(tmp_path) + "/*") == (fed(*[TABLE] * 4), [])  # as a shell expands it
    assert read(str(tmp_path) + "/**") == (fed(*[TABLE] * 4), [])


def test_a_file_of_several_names_counts_once(tmp_path):
    (tmp_path / "sub").mkdir()
    store(TABLE, tmp_path / "a.parquet")
    os.link(tmp_path / "a.parquet", tmp_path / "hard.parquet")
    os.symlink(tmp_path / "a.parquet", tmp_path / "sub" / "soft.parquet")
    note = f"2 left out, further names of files that are read: {tmp_path}/hard.parquet, "
    for path in (tmp_path, str(tmp_path / "**" / "*.parquet")):
        state, (said,) = read(path)
        assert state == fed(TABLE)
        assert said == f"{note}{tmp_path}/sub/soft.parquet"


def test_a_link_to_a_file_elsewhere_is_read(tmp_path):
    (tmp_path / "data").mkdir()
    path = store(TABLE, tmp_path / "elsewhere.parquet")
    os.symlink(path, tmp_path / "data" / "a.parquet")
    assert read(tmp_path / "data") == (fed(TABLE), [])


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_two_arguments_that_are_one_file_are_a_mistake(tmp_path, link):
    path = store(TABLE, tmp_path / "a.parquet")
    link(path, tmp_path / "b.parquet")
    with pytest.raises(ReadError, match=r"b.parquet, which is .*a.parquet, is named twice"):
        read(path, tmp_path / "b.parquet")
    with pytest.raises(ReadError, match=r"a.parquet is named twice, and its rows would count"):
        read(tmp_path, path)


def test_a_link_to_nothing_is_an_error(tmp_path):
    store(TABLE, tmp_path / "a.parquet")
    os.symlink("nowhere", tmp_path / "b.parquet")
    with pytest.raises(ReadError, match=r"b.parquet: cannot be read: No such file"):
        read(tmp_path)


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "sub" / "locked").mkdir(parents=True)
    store(TABLE, tmp_path / "sub" / "a.parquet")
    store(TABLE, tmp_path / "sub" / "locked" / "b.parquet")
    scandir = os.scandir

    def locked(path="."):  # who runs tests as root may read every folder
        if os.fspath(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", locked)
    for path in (tmp_path, f"{tmp_path}/*", f"{tmp_path}/sub/*/*.parquet", f"{tmp_path}/**/*.pq"):
        with pytest.raises(ReadError, match=r"sub/locked: cannot be read: Permission denied"):
            read(path)


def test_a_path_in_a_folder_that_cannot_be_read(tmp_path, monkeypatch):
    stat = os.stat

    def locked(path, **how):
        if str(path).endswith("a.parquet"):
            raise PermissionError(13, "Permission denied", path)
        return stat(path, **how)

    monkeypatch.setattr(os, "stat", locked)
    with pytest.raises(ReadError, match=r"a.parquet: cannot be read: Permission denied$"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["x" * 300, "nul\0byte", "a.csv/b"])
def test_paths_that_no_file_can_have(tmp_path, name):
    store(TABLE, tmp_path / "a.csv")
    with pytest.raises(ReadError, match=r"cannot be read|no such file"):
        read(f"{tmp_path}/{name}")


def test_names_with_any_character(tmp_path):
    names = ["it's.csv", 'say "hi".csv', "new\nline.csv", "a*[b]?.csv", "-.csv"]
    names.append(os.fsdecode("é=ü.csv".encode()))  # in any locale
    for name in names:
        (tmp_path / name).write_bytes(text(TABLE))
        assert read(tmp_path / name) == (fed(TABLE), [])
    assert read(tmp_path) == (fed(*[TABLE] * len(names)), [])


def test_a_folder_of_nothing_known(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ReadError, match=r"no files of a known format .*; 1 left out, of other"):
        find([str(tmp_path)])
    with pytest.raises(
        ReadError, match=r"a.txt: the ending says no format .*--input-format, or format= in Py"
    ):
        find([str(tmp_path / "a.txt")])
