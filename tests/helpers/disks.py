"""A disk that records what is written to it and when it is synchronised, that can fail, and lose power.

It is a file system of SQLite, in apsw's copy of SQLite; the ledger runs on it through a small DB-API module. What a
power cut may leave behind is then written to a real folder, which the service opens as usual.
"""

import contextlib
import itertools
import types
from pathlib import Path

import apsw
from sqlalchemy import create_engine, event, pool

from fairduel.service.events.database import SETTINGS

SECTOR = 512
_numbers = itertools.count()


class Disk(apsw.VFS):
    """Records every write; synchronising takes no time, and fails if told to.

    Args:
        synchronous: A setting of SQLite in place of the service's own.
        checkpoint: Pages in the write-ahead log after which they are moved into the database.
    """

    def __init__(self, synchronous=None, checkpoint=1000):
        self.name = f"disk{next(_numbers)}"
        super().__init__(self.name, "")
        self.trace, self.synchronous, self.checkpoint = [], synchronous, checkpoint
        self.syncs, self.failing, self.quota = 0, frozenset(), None

    def xOpen(self, name, flags):  # noqa: N802  # SQLite's name
        return _File(self, name, flags)

    def xDelete(self, name, sync):  # noqa: N802
        self.trace.append(("delete", Path(name).name))
        super().xDelete(name, sync)

    def keep(self, folder):
        """Take the files of a folder as written and synchronised."""
        for file in folder.glob("fairduel.db*"):
            self.trace += [("write", file.name, 0, file.read_bytes()), ("sync", file.name)]

    def open(self, path, *, read_only=False):  # noqa: ARG002  # of fairduel.service.events.database.open_sqlite
        module = types.SimpleNamespace(
            paramstyle="qmark",
            Binary=bytes,
            sqlite_version_info=tuple(map(int, apsw.sqlite_lib_version().split("."))),
            **_ERRORS,
        )
        engine = create_engine(
            "sqlite://", module=module, creator=lambda: _Connection(str(path), self.name), poolclass=pool.QueuePool
        )

        @event.listens_for(engine, "connect")
        def _(connection, _):
            cursor = connection.cursor()
            changed = [f"synchronous = {self.synchronous}"] if self.synchronous else []
            for setting in (*SETTINGS, *changed, f"wal_autocheckpoint = {self.checkpoint}"):
                cursor.execute(f"PRAGMA {setting}")

        return engine


class _File(apsw.VFSFile):
    def __init__(self, disk, name, flags):
        super().__init__("", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.disk, self.name = disk, Path(path or "temporary").name

    def xWrite(self, data, offset):  # noqa: N802
        quota = self.disk.quota
        if quota is not None and offset + len(data) > quota:
            raise apsw.FullError("no space left on device")
        super().xWrite(data, offset)
        self.disk.trace.append(("write", self.name, offset, bytes(data)))

    def xTruncate(self, size):  # noqa: N802
        super().xTruncate(size)
        self.disk.trace.append(("truncate", self.name, size))

    def xSync(self, flags):  # noqa: ARG002, N802
        self.disk.syncs += 1
        if self.disk.syncs in self.disk.failing:
            self.disk.trace.append(("lost", self.name))
            raise apsw.IOError("fsync failed")
        self.disk.trace.append(("sync", self.name))


def after_power_cut(trace, rng):
    """Return the files that may be on a disk whose power was cut after the operations of ``trace``.

    Of the writes that were not synchronised, any may be there, in any order, torn between any two sectors. What a
    failed synchronisation was to write is lost for good, though the running system still sees it. A file that was
    deleted may be there again, until the next synchronisation of any file: file systems keep the order of such changes.
    """
    synced, waiting, deleted = {}, {}, {}
    for kind, name, *rest in trace:
        if kind in {"write", "truncate"}:
            waiting.setdefault(name, []).append((kind, *rest))
        elif kind == "sync":
            for operation in waiting.pop(name, []):
                _apply(synced.setdefault(name, bytearray()), *operation)
            deleted.clear()
        elif kind == "lost":
            waiting.pop(name, None)
        elif kind == "delete":
            waiting.pop(name, None)
            deleted[name] = synced.pop(name, bytearray())
    for name, operations in waiting.items():
        _apply_some(synced.setdefault(name, bytearray()), operations, rng)
    return {name: content for name, content in deleted.items() if rng.random() < 0.5} | synced


def _apply_some(content, operations, rng):
    """Apply some operations, perhaps in another order, and of most of these writes all sectors."""
    share = rng.choice([0.2, 0.5, 0.9])
    kept = [operation for operation in operations if rng.random() < share]
    if rng.random() < 0.5:
        rng.shuffle(kept)
    for kind, place, *data in kept:
        if kind == "truncate":
            _apply(content, kind, place)
        for begin in range(0, len(data[0]) if data else 0, SECTOR):
            if rng.random() < 0.95:
                _apply(content, kind, place + begin, data[0][begin : begin + SECTOR])


def _apply(content, kind, place, data=b""):
    if kind == "truncate":
        del content[place:]
    if len(content) < place:
        content.extend(bytes(place - len(content)))
    content[place : place + len(data)] = data


class _Connection:
    """What SQLAlchemy needs of sqlite3.Connection."""

    isolation_level = ""

    def __init__(self, path, disk):
        self.apsw = apsw.Connection(path, vfs=disk, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        self.apsw.set_busy_timeout(10_000)

    def cursor(self):
        return _Cursor(self.apsw)

    def commit(self):
        if self.apsw.in_transaction:
            self.apsw.execute("COMMIT")

    def rollback(self):
        if self.apsw.in_transaction:
            self.apsw.execute("ROLLBACK")

    def close(self):
        self.apsw.close()

    def create_function(self, *_, **__):
        pass


class _Cursor:
    lastrowid = None

    def __init__(self, connection):
        self.connection, self.description, self.rows = connection, None, iter(())

    def execute(self, statement, values=()):
        self._run(statement, [values])

    def executemany(self, statement, many):
        self._run(statement, many)

    def _run(self, statement, many):
        words = statement.split(None, 1)
        if words[0].upper() in {"INSERT", "UPDATE", "DELETE"} and not self.connection.in_transaction:
            self.connection.execute("BEGIN")
        cursor, self.description, rows = self.connection.cursor(), None, []
        cursor.exec_trace = self._describe
        before = self.connection.total_changes()
        for values in many:
            rows += cursor.execute(statement, tuple(values))
        self.rows, self.rowcount = iter(rows), self.connection.total_changes() - before

    def _describe(self, cursor, *_):
        columns = cursor.get_description()
        self.description = [(name, *[None] * 6) for name, _ in columns] or None
        return True

    def fetchone(self):
        return next(self.rows, None)

    def fetchmany(self, size=1):
        return list(itertools.islice(self.rows, size))

    def fetchall(self):
        return list(self.rows)

    def close(self):
        pass


_ERRORS = dict.fromkeys(
    ("Error", "DatabaseError", "InterfaceError", "OperationalError", "ProgrammingError"), apsw.Error
)
_ERRORS |= dict.fromkeys(("IntegrityError", "DataError", "InternalError", "NotSupportedError"), apsw.Error)


@contextlib.contextmanager
def mounted(disk, monkeypatch):
    """Let stores be opened on the disk meanwhile."""
    with monkeypatch.context() as patch:
        patch.setattr("fairduel.service.events.database.open_sqlite", disk.open)
        yield
