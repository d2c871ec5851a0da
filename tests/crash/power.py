# SPDX-License-Identifier: Apache-2.0
"""The power fails: takes back from a directory what its programs had not synced (lossy_disk.c wrote down how).

Disk.lose() is called when all of these programs are dead. Of each file the changes since its last sync are undone, newest
first, and then some are made again, torn at sectors, as a disk's cache may have written them; a truncation is there or not.
Of the names, those that were changed last are as before: a cut through the sequence of all changes, behind which only those
are kept whose directory was synced; a rename has happened or not. All by the dice that are given.
"""
import os
import pathlib
import shutil
import struct

HEAD = struct.Struct("=6Q")
SECTOR = 512


class Record:
    """One change or sync. The meaning of a to d: lossy_disk.c."""

    def __init__(self, at, head, payload):
        self.at, self.payload = at, payload
        kind, self.a, self.b, self.c, self.d, _ = head
        self.kind = chr(kind)

    def directories(self):
        return (self.a, self.c) if self.kind == "R" else (self.a,)


def read_journal(path):
    data, at = path.read_bytes() if path.exists() else b"", 0
    while at < len(data):
        head = HEAD.unpack_from(data, at)
        end = at + HEAD.size + head[5]
        if end > len(data):
            return  # the process died while it was appended; the change was not made
        yield Record(at, head, data[at + HEAD.size:end])
        at = end


class File:
    """The changes of one file that no sync covers."""

    def __init__(self, path, changes):
        self.path, self.changes = path, changes

    def lose(self, choose):
        """choose(record) gives the pieces of a write that reached the disk, as (start, end); any for a truncation that did."""
        with self.path.open("r+b", buffering=0) as file:
            made = [self.undo(file, change) for change in reversed(self.changes)]
            for change, after in zip(self.changes, reversed(made)):
                for start, end in choose(change):
                    if change.kind == "T":
                        file.truncate(change.b)
                    else:
                        os.pwrite(file.fileno(), after[start:end], change.b + start)

    @staticmethod
    def undo(file, change):
        """As it was before; returns what the change had written."""
        after = os.pread(file.fileno(), change.d, change.b) if change.kind == "W" else b""
        file.truncate(change.c)
        os.pwrite(file.fileno(), change.payload, change.b)
        return after


def pieces(record, dice):
    """What the disk had written of it: all, nothing, a beginning, or sectors here and there."""
    size = record.d if record.kind == "W" else 1
    how = dice.random()
    if how < 0.4 or size == 0:
        return [(0, size)] if size and how < 0.2 else []
    if how < 0.7 or record.kind == "T":
        return [(0, size)]
    first = SECTOR - record.b % SECTOR
    cuts = [0, *range(first, size, SECTOR), size]
    sectors = [piece for piece in zip(cuts, cuts[1:]) if piece[0] < piece[1]]
    if how < 0.85:
        return sectors[:dice.randrange(len(sectors) + 1)]
    return [sector for sector in sectors if dice.random() < 0.5]


class Names:
    """The changes of names that no sync of a directory covers."""

    def __init__(self, disk, changes):
        self.disk, self.changes = disk, changes

    def lose(self, kept):
        for change in reversed(self.changes[kept:]):
            {"C": self.unmake, "U": self.bring_back, "R": self.move_back}[change.kind](change)

    def path(self, directory, name):
        where = self.disk.directories.get(directory)
        return None if where is None else where / name.decode()

    def unmake(self, change):
        path = self.path(change.a, change.payload)
        if path is None or inode_of(path) != change.b:
            return
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def bring_back(self, change):
        path = self.path(change.a, change.payload)
        if path is None or inode_of(path):
            return
        kept = self.disk.side / str(change.b)
        if kept.exists():
            os.link(kept, path)
        else:  # a directory, which was empty
            path.mkdir()
            self.disk.directories[change.b] = path

    def move_back(self, change):
        old, new = change.payload.split(b"/")
        source, target = self.path(change.a, old), self.path(change.c, new)
        if source is None or target is None or inode_of(target) != change.b or inode_of(source):
            return
        os.rename(target, source)
        if change.d and (self.disk.side / str(change.d)).exists():
            os.link(self.disk.side / str(change.d), target)


def inode_of(path):
    try:
        return os.lstat(path).st_ino
    except FileNotFoundError:
        return 0


class Disk:
    """A directory whose programs run with environment(), and what it may forget."""

    def __init__(self, root, side, library):
        self.root, self.side, self.library = pathlib.Path(root), pathlib.Path(side), library
        self.side.mkdir()
        self.lost = {"writes": 0, "names": 0, "losses": 0}
        self.directories = {}

    def environment(self, swallow=None):
        more = {"LD_PRELOAD": str(self.library), "LOSSY_DIR": str(self.side)}
        return more | ({"LOSSY_SWALLOW": swallow} if swallow else {})

    def lose(self, dice, data=None, names=None):
        """data, names: "none", "all" or "some" of what is not synced is lost; by the dice unless told."""
        how = [wanted or dice.choices(["none", "all", "some"], [1, 4, 5])[0] for wanted in (data, names)]
        changes, files = self.unsynced(), self.look()
        self.lost["losses"] += 1
        if how[0] != "none":
            self.lose_bytes(changes, files, (lambda _: []) if how[0] == "all" else lambda record: pieces(record, dice))
        entries = [c for c in changes if c.kind in "CUR"]
        kept = {"none": len(entries), "all": 0, "some": dice.randrange(len(entries) + 1)}[how[1]]
        self.lost["names"] += len(entries) - kept
        Names(self, entries).lose(kept)
        self.lose_mappings(dice)
        self.forget()

    def unsynced(self):
        synced, all_upto, changes = {}, 0, []
        for record in read_journal(self.side / "journal"):
            if record.kind == "S":
                synced[record.a] = max(synced.get(record.a, 0), record.b)
            elif record.kind == "A":
                all_upto = max(all_upto, record.b)
            else:
                changes.append(record)
        return [c for c in changes if c.at >= all_upto and all(c.at >= synced.get(i, 0) for i in c.directories())]

    def lose_bytes(self, changes, files, choose):
        by_file = {}
        for change in changes:
            if change.kind in "WT" and change.a in files:
                by_file.setdefault(change.a, []).append(change)
        for inode, mine in by_file.items():
            self.lost["writes"] += len(mine)
            File(files[inode], mine).lose(choose)

    def look(self):
        """Every file by its inode, also those without a name; SQLite's mappings are no matter of bytes."""
        files = {}
        self.directories = {}
        for top in (self.side, self.root):
            for where, _, names in os.walk(top):
                self.directories[inode_of(where)] = pathlib.Path(where)
                for name in names:
                    path = pathlib.Path(where) / name
                    if name != "journal" and not name.endswith("-shm"):
                        files[inode_of(path)] = path
        return files

    def lose_mappings(self, dice):
        for path in self.root.rglob("*-shm"):
            how = dice.choice(["as it is", "gone", "zeros"])
            if how == "gone":
                path.unlink()
            elif how == "zeros":
                path.write_bytes(bytes(path.stat().st_size))

    def forget(self):
        """What is there now is durable."""
        for path in self.side.iterdir():
            path.unlink()
