"""Vocabularies in place of the files that tiktoken downloads at the first use of a tokenizer.

OpenAI's clients count tokens with them before they send a request. Simulated services read the texts, so any vocabulary
that tiktoken takes will do; one of bytes and of up to three letters needs no file.
"""

from __future__ import annotations

import base64
import functools
import itertools
import string
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from docmind_lab.network.replacements import Replacements

# Of today's chat models and embeddings. Older ones insist on the exact number of tokens of their own file.
_MADE_UP = ("cl100k_base", "o200k_base")


class _Absent(Exception):
    """The file is not on this machine."""


def provide_vocabularies(hooks: Replacements, is_for_caller: Callable[[], bool]) -> None:
    """Have tiktoken read a made-up vocabulary where it would download one, until the hooks are removed.

    A tokenizer whose file is on this machine, or which is loaded already, stays as it is. Those that were made from a
    made-up one are forgotten with the hooks.

    is_for_caller: whether the calling code is of a run that simulated services answer.
    """
    try:
        # Function-level: OpenAI's integrations bring it, and most graphs need none.
        from tiktoken import load, registry  # noqa: PLC0415
    except ImportError:
        return

    def absent(previous: Callable[..., bytes]) -> Callable[..., bytes]:
        def read_file(path: str) -> bytes:
            if PurePosixPath(path).stem in _MADE_UP and is_for_caller():
                raise _Absent
            return previous(path)

        return read_file

    def made_up(previous: Callable[..., bytes]) -> Callable[..., bytes]:
        def read_file_cached(path: str, *arguments: Any, **options: Any) -> bytes:
            try:
                return previous(path, *arguments, **options)
            except _Absent:
                return vocabulary()

        return read_file_cached

    hooks.replace(load, "read_file", absent)
    hooks.replace(load, "read_file_cached", made_up)
    real = set(registry.ENCODINGS)
    hooks.at_removal(lambda: [registry.ENCODINGS.pop(name) for name in set(registry.ENCODINGS) - real])


@functools.cache
def vocabulary() -> bytes:
    """Return the lines of a vocabulary file: a token in base64, a space, its rank.

    The tokens are all bytes, and one to three lower-case letters with and without a space before. English text has
    about twice as many of them as of OpenAI's.
    """
    letters = [letter.encode() for letter in string.ascii_lowercase]
    # What a longer token is merged from comes before it.
    of_letters = [
        space + b"".join(each)
        for count in (1, 2, 3)
        for space in (b"", b" ")
        for each in itertools.product(letters, repeat=count)
        if len(space) + count > 1
    ]
    tokens = [*(bytes([value]) for value in range(256)), *of_letters]
    return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
