"""Prints its arguments in a random order, on one line; the seed goes to standard error, and SHUFFLE_SEED repeats it."""

from __future__ import annotations

import os
import random
import secrets
import sys


def main(words: list[str]) -> None:
    """Print the words; the same ones with the same seed in the same order. Raises: ValueError for no whole number."""
    seed = int(os.environ.get("SHUFFLE_SEED") or secrets.randbelow(10**6))
    sys.stderr.write(f"in the order of SHUFFLE_SEED={seed}\n")
    sys.stdout.write(" ".join(random.Random(seed).sample(words, len(words))) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
