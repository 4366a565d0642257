"""A block under a deadline: the error that it ends with, also out of task groups."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from manual_clock import ManualClock

from docmind_lab.alternatives.enforcement.scope import deadline, remaining_s
from docmind_lab.core.deadlines import Deadline, current_deadline
from docmind_lab.core.errors import DeadlineExceeded, RunCut
from docmind_lab.core.holds import current_hold


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


# ---- what a block raises


def test_a_block_whose_request_was_refused_raises_what_one_that_was_cut_does(manual_clock: ManualClock) -> None:
    def late_request() -> None:
        manual_clock.advance(2.0)
        hold = current_hold()
        assert hold is not None
        hold.refuse_if_over()

    with (
        pytest.raises(DeadlineExceeded, match="audit") as raised,
        deadline(Deadline.after(1.0, manual_clock), label="audit"),
    ):
        late_request()
    assert isinstance(raised.value.__cause__, RunCut)


# ---- blocks that end elsewhere


def suspended(clock: ManualClock, limit_s: float = 1.0) -> Iterator[int]:
    with deadline(Deadline.after(limit_s, clock)):
        yield 1
        yield 2


def is_refused() -> bool:
    hold = current_hold()
    return hold is not None and hold.is_over


def test_a_generator_that_another_thread_closes_leaves_its_context_free(manual_clock: ManualClock) -> None:
    def main() -> None:
        generator = suspended(manual_clock)
        next(generator)
        closing = threading.Thread(target=generator.close)  # type: ignore[attr-defined]
        closing.start()
        closing.join()
        manual_clock.advance(2.0)
        assert not is_refused()
        assert remaining_s() is None
        assert current_deadline() is None
        with deadline(Deadline.after(5.0, manual_clock)) as own:
            assert own.remaining() == 5.0
            assert remaining_s() == 5.0

    contextvars.Context().run(main)


def test_generators_may_end_in_any_order(manual_clock: ManualClock) -> None:
    def main() -> None:
        first, second = suspended(manual_clock), suspended(manual_clock, 3.0)
        next(first)
        next(second)
        first.close()  # type: ignore[attr-defined]
        second.close()  # type: ignore[attr-defined]
        manual_clock.advance(5.0)
        assert not is_refused()
        assert remaining_s() is None
        assert current_deadline() is None

    contextvars.Context().run(main)


def test_an_async_generator_that_is_dropped_leaves_its_task_free() -> None:
    async def chunks() -> AsyncIterator[int]:
        with deadline(0.01):
            yield 1
            yield 2

    async def main() -> None:
        generator = chunks()
        await anext(generator)
        # asyncio closes a generator that is dropped in a task of its own.
        await asyncio.create_task(generator.aclose())  # type: ignore[attr-defined]
        await asyncio.sleep(0.02)
        assert not is_refused()
        assert remaining_s() is None

    asyncio.run(main())


def test_what_a_block_that_ended_where_it_began_left_in_a_thread_is_refused(manual_clock: ManualClock) -> None:
    with deadline(Deadline.after(1.0, manual_clock)):
        left = contextvars.copy_context()
    manual_clock.advance(2.0)
    assert left.run(is_refused)
