"""Attributes of modules and classes that are replaced for a while: what every hook on a library is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Replacements:
    """Attributes of modules and classes that are replaced, and can be put back."""

    def __init__(self) -> None:
        self._put_back: list[tuple[Any, str, Any, Any]] = []
        # The latest replacement of each attribute, with what looks it up and what makes it anew.
        self._in_place: dict[tuple[Any, str], tuple[Callable[[str], Any], str, Any, Callable[[Any], Any]]] = {}
        self._at_removal: list[Callable[[], object]] = []

    def at_removal(self, call: Callable[[], object]) -> None:
        """Have `call` called when the originals are back."""
        self._at_removal.append(call)

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace `owner.name` by `make(owner.name)` until `remove`. owner: a module or class."""
        previous, is_own = getattr(owner, name), name in vars(owner)
        new = make(previous)
        setattr(owner, name, new)
        self._put_back.append((owner, name, new, previous if is_own else None))
        self._in_place = {**self._in_place, (owner, name): (vars(owner).get, name, new, make)}

    def renew(self) -> None:
        """Replace again what others have taken off: whoever was there first may put back the library's own."""
        # At the start of every call: one look at each attribute, as long as all are in place.
        for look_up, name, ours, _ in self._in_place.values():
            if look_up(name) is not ours:
                break
        else:
            return
        for (owner, name), (look_up, _, ours, make) in self._in_place.items():
            if look_up(name) is not ours and _is_own(owner, getattr(owner, name)):
                self.replace(owner, name, make)

    def remove(self) -> None:
        """Restore the originals. A name that others have replaced since stays; our hook below it passes through."""
        while self._put_back:
            owner, name, ours, previous = self._put_back.pop()
            if vars(owner).get(name) is not ours:
                continue
            if previous is None:
                delattr(owner, name)
            else:
                setattr(owner, name, previous)
        self._in_place = {}
        while self._at_removal:
            self._at_removal.pop()()


def _is_own(owner: Any, method: Any) -> bool:
    """Whether a method is the library's own, and no hook of anybody."""
    root = str(getattr(method, "__module__", "")).partition(".")[0]
    of_library = getattr(owner, "__module__", "") or owner.__name__
    return root == of_library.partition(".")[0] and not hasattr(method, "__wrapped__")
