"""The file under a ledger: one SQLite database, created whole, opened for each operation, never guessed at.

Durability: rollback journal and ``synchronous=EXTRA``, so that a commit has returned only when the file,
the journal and the directory are on the disk. A new file is finished under another name and then linked
into place: a file at `path` is complete or absent, and two creators cannot both win.

Damage: every entry carries the SHA-256 of its content and of the entry before; numbers run without gaps;
and the last one is also written in another page, since a list that lost its end is still a good chain.

Processes and threads: nothing stays open between operations, writers take SQLite's lock with ``BEGIN
IMMEDIATE``, and a fork waits until no thread is inside an operation (an open SQLite file must not be
carried across a fork).
"""

import hashlib
import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from untold.errors import LedgerError

__all__ = ["Entry", "Terms", "append", "create", "exists", "opened", "read"]

VERSION = 1
APPLICATION = 0x554E544C  # "UNTL"
PATIENCE = 30.0  # seconds to wait for another process

LOCK = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)

SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
CREATE TABLE terms (incarnation TEXT NOT NULL, budget TEXT NOT NULL, delta TEXT NOT NULL,
                    digest TEXT NOT NULL);
CREATE TABLE entries (number INTEGER PRIMARY KEY, at TEXT NOT NULL, purpose TEXT NOT NULL,
                      guarantee TEXT NOT NULL, cost TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE last (number INTEGER NOT NULL, digest TEXT NOT NULL);
"""


class Terms(NamedTuple):
    """What a ledger was opened with; `incarnation` is random, so no two files are the same ledger."""

    incarnation: str
    budget: str
    delta: str


class Entry(NamedTuple):
    """One debit, as text; `digest` seals it together with everything before it."""

    number: int
    at: str
    purpose: str
    guarantee: str
    cost: str
    digest: str


def sealed(before: str, *content: object) -> str:
    """The digest of some content after everything `before`; bytes, which only damage puts there, are null."""
    text = json.dumps([before, *content], default=lambda _: None)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def opened(path: Path, *, writing: bool) -> Iterator[sqlite3.Connection]:
    """One transaction on an existing file; committed if the body ends well, else undone."""
    with LOCK, _explained(path):
        if path.is_file() and path.stat().st_size == 0:
            raise LedgerError(f"the ledger {str(path)!r} is empty: it was truncated.", hint=RESTORE)
        with _connected(path, "rw") as file:
            if file.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
                raise LedgerError(
                    f"{str(path)!r} is not a ledger.", hint="give the path of a ledger, or of no file."
                )
            if (found := file.execute("PRAGMA user_version").fetchone()[0]) != VERSION:
                raise LedgerError(
                    f"the ledger {str(path)!r} must have version {VERSION}. Got {found}.",
                    hint="read it with the untold that wrote it.",
                )
            file.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            yield file
            file.execute("COMMIT")


RESTORE = "restore the newest backup, and debit what was released since; untold does not guess."


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """SQLite's and the system's errors, as LedgerError."""
    try:
        yield
    except sqlite3.OperationalError as error:
        hint = "another process holds it, or the file, its directory or the disk cannot be written."
        raise LedgerError(f"the ledger {str(path)!r} could not be used: {error}.", hint=hint) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter for a message of SQLite's
        raise LedgerError(f"the ledger {str(path)!r} is damaged: {error}.", hint=RESTORE) from error
    except OSError as error:
        hint = "the directory must exist and be writable."
        raise LedgerError(f"the ledger {str(path)!r} could not be used: {error}.", hint=hint) from error


@contextmanager
def _connected(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(str(path))}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)) as file:
        file.execute("PRAGMA synchronous = EXTRA")
        file.execute("PRAGMA fullfsync = ON")
        file.execute("PRAGMA trusted_schema = OFF")
        yield file


def exists(path: Path) -> bool:
    """Whether anything has that name."""
    with _explained(path):
        return path.exists()


def create(path: Path, budget: str, delta: str) -> None:
    """A new ledger at `path`, unless somebody was quicker."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with LOCK, _explained(path):
        try:
            with _connected(unfinished, "rwc") as file:
                incarnation = secrets.token_hex(16)
                terms = (incarnation, budget, delta)
                file.executescript(SCHEMA)
                file.execute("INSERT INTO terms VALUES (?, ?, ?, ?)", (*terms, sealed("", *terms)))
                file.execute("INSERT INTO last VALUES (0, ?)", (sealed("", *terms),))
            try:
                os.link(unfinished, path)
            except FileExistsError:
                return
            _sync_directory(path.parent)
        finally:
            unfinished.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read(file: sqlite3.Connection, path: Path) -> tuple[Terms, list[Entry]]:
    """Everything in the file, every seal checked."""
    rows = file.execute("SELECT incarnation, budget, delta, digest FROM terms").fetchall()
    columns = "number, at, purpose, guarantee, cost, digest"
    entries = [Entry(*row) for row in file.execute(f"SELECT {columns} FROM entries ORDER BY number")]  # noqa: S608
    good = len(rows) == 1 and rows[0][3] == sealed("", *rows[0][:3])
    before = rows[0][3] if good else ""
    for number, entry in enumerate(entries, start=1):
        good = good and entry.number == number and entry.digest == sealed(before, *entry[:5])
        before = entry.digest
    last = file.execute("SELECT number, digest FROM last").fetchall()
    if not good or last != [(len(entries), before)]:
        raise LedgerError(f"the ledger {str(path)!r} is damaged: a seal does not match.", hint=RESTORE)
    return Terms(*rows[0][:3]), entries


def append(file: sqlite3.Connection, before: str, content: tuple[int, str, str, str, str]) -> Entry:
    """Write one entry inside the open transaction; it exists once that has been committed."""
    entry = Entry(*content, sealed(before, *content))
    file.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", entry)
    file.execute("UPDATE last SET number = ?, digest = ?", (entry.number, entry.digest))
    return entry
