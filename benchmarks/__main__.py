"""Run every benchmark and print what it found."""

from __future__ import annotations

from benchmarks import imports, overrun

if __name__ == "__main__":
    for benchmark in (imports, overrun):
        print(f"== {(benchmark.__doc__ or '').strip().splitlines()[0]}")
        for line in benchmark.run():
            print(line)
        print()
