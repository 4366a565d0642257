"""The user's own code, which is neither Python's, nor a library's, nor the lab's: its lines, and its modules."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

_NOT_THE_USERS = tuple({*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), str(Path(__file__).parents[1])})
# Folders of libraries, of which a Python may have several.
_LIBRARIES = {"site-packages", "dist-packages"}


def _is_users(file: str) -> bool:
    return not file.startswith((*_NOT_THE_USERS, "<")) and _LIBRARIES.isdisjoint(Path(file).parts)


def line_of_error(error: BaseException) -> str:
    """Return "file.py:17" for the innermost line of the user's own code in a traceback; empty if there is none."""
    return _innermost(traceback.extract_tb(error.__traceback__))


def line_at_work(frame: FrameType | None = None) -> str:
    """Return "file.py:17" for the innermost line of the user's own code in a frame, or at work here; else ""."""
    return _innermost(traceback.extract_stack(frame))


def _innermost(frames: traceback.StackSummary) -> str:
    users = [frame for frame in frames if _is_users(frame.filename)]
    return f"{Path(users[-1].filename).name}:{users[-1].lineno}" if users else ""


# File of a module → when it was changed last, and its size, as it was imported.
_as_imported: dict[Path, tuple[int, int]] = {}


def modules_of(name: str) -> dict[str, Path]:
    """Return the user's modules that one may import, itself first, with their files; none if it is not imported itself.

    They are found by what is written, whether it has been imported or not: a function may import when it is called.
    """
    found: dict[str, Path] = {}
    folders = [Path(folder).resolve() for folder in filter(_is_users, sys.path)]

    @functools.cache
    def having(top: str) -> list[Path]:
        return [folder for folder in folders if (folder / top).is_dir() or (folder / f"{top}.py").is_file()]

    places = [(name, getattr(sys.modules.get(name), "__file__", None) or "")]
    while places:
        name, file = places.pop(0)
        if name not in found and file.endswith(".py") and _is_users(file):
            found[name] = Path(file)
            package = name if found[name].name == "__init__.py" else name.rpartition(".")[0]
            for each in _imported_by(found[name], package, _stamp(found[name])):
                places.append((each, _file_of(each, having(each.partition(".")[0]))))
    return found


def _file_of(name: str, folders: Sequence[Path]) -> str:
    """Return the file of a module in one of these folders; empty for any other."""
    for folder in folders:
        place = folder.joinpath(*name.split("."))
        for file in (place / "__init__.py", place.with_suffix(".py")):
            if file.is_file():
                return str(file)
    return ""


@functools.lru_cache(maxsize=4096)
def _imported_by(file: Path, package: str, stamp: tuple[int, int]) -> tuple[str, ...]:
    """Return the names that a file, as it stands, may import."""
    try:
        return tuple(_names_in(ast.parse(file.read_bytes()), package))
    except (OSError, ValueError, SyntaxError, ImportError):
        return ()  # it is gone or broken, which its import says


def _names_in(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names = [base, *(f"{base}.{each.name}" for each in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[: end + 1]) for end in range(len(parts)))


def forget_if_changed(name: str) -> None:
    """Have a module of the user, with those that it imports, imported anew if any of them has changed since it was."""
    modules = modules_of(name)
    if any(_as_imported.get(file, _stamp(file)) != _stamp(file) for file in modules.values()):
        for each, file in modules.items():
            sys.modules.pop(each, None)
            _as_imported.pop(file, None)


def note_imported(name: str) -> None:
    """Note the state of the files of a module that has been imported, and of those that it imports."""
    for file in modules_of(name).values():
        _as_imported.setdefault(file, _stamp(file))


def digest_of_module(name: str) -> str:
    """Return a digest of the text of a module and of the user's that it imports; empty if it is no text of Python's."""
    files = modules_of(name).values()
    return hashlib.blake2b(b"".join(file.read_bytes() for file in files), digest_size=4).hexdigest() if files else ""


def _stamp(file: Path) -> tuple[int, int]:
    try:
        state = file.stat()
    except OSError:
        return 0, 0
    return state.st_mtime_ns, state.st_size
