"""A block under a deadline: the error that it ends with, also out of task groups."""

from __future__ import annotations

import asyncio

import pytest

from docmind_lab.core.errors import DeadlineExceeded, RunCut
from docmind_lab.core.holds import current_hold
from docmind_lab.enforcement.scope import deadline


async def cut_request() -> None:
    hold = current_hold()
    assert hold is not None
    raise hold.cut()


async def cut_in_groups() -> None:
    async with asyncio.TaskGroup() as outer:
        async with asyncio.TaskGroup() as inner:
            for _ in range(3):
                inner.create_task(cut_request())
        outer.create_task(asyncio.sleep(30))


def test_requests_that_are_cut_in_task_groups_end_the_block_with_one_error() -> None:
    async def main() -> None:
        async with deadline(20):
            await cut_in_groups()

    with pytest.raises(DeadlineExceeded) as raised:
        asyncio.run(main())
    assert isinstance(raised.value.__cause__, BaseExceptionGroup)


def test_the_cut_of_a_deadline_around_it_goes_through_a_block() -> None:
    went_through: list[RunCut] = []

    async def main() -> None:
        async with deadline(20, label="outer"):
            outer = current_hold()
            assert outer is not None
            try:
                async with deadline(30, label="inner"):
                    raise outer.cut()
            except RunCut as cut:
                went_through.append(cut)
                raise

    with pytest.raises(DeadlineExceeded, match="outer"):
        asyncio.run(main())
    assert len(went_through) == 1


def test_other_errors_of_a_group_leave_a_block_as_they_are() -> None:
    async def fail() -> None:
        raise ValueError("its own")

    async def main() -> None:
        async with deadline(20), asyncio.TaskGroup() as group:
            group.create_task(fail())

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(main())
    assert isinstance(raised.value.exceptions[0], ValueError)
