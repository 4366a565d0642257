"""A server under the probe: calls to it, how they go undisturbed, and what becomes of the work on one that was left."""

from __future__ import annotations

import itertools
import math
import time
from typing import Final

from docmind_lab.core.errors import ServiceError
from docmind_lab.experiments.probe.truth import LEAST_GAP_S, Counters, LabLog, Look, ProbeCall, Target
from docmind_lab.experiments.probe.verdicts import Undisturbed

TOKEN_LIMIT: Final = 8
LONGEST_PROMPT: Final = 2400
# A prompt is read in at least so many seconds, if one that is long enough can be sent: shorter than this, a client
# cannot leave in the middle of it.
PREFILL_S: Final = 0.4
# How much faster or slower calls may go after the trials than before, for a trial to be judged by calls before it.
STEADY: Final = 1.25
_LOOK_EVERY_S: Final = 0.05
# What a server computes for a call besides what its counters have, and what a connection takes.
_ROUNDING_S: Final = 0.03
_IDLE_CALLS: Final = 5
_TRIES: Final = 4
# A stream whose first token comes so late in it, as a share of its time, was held back on its way.
_HELD_BACK: Final = 0.9
_QUIET_LIMIT_S: Final = 120.0


class Bench:
    """A server under the probe, and what is known of its undisturbed calls.

    truth: how it accounts for its work; None to judge by the wait of other requests. most_calls: calls that may be sent
    in all.
    """

    def __init__(self, target: Target, truth: LabLog | Counters | None, most_calls: int) -> None:
        self.target, self.truth = target, truth
        self._most_calls = most_calls
        self._numbers = itertools.count(1)
        self._run_prefix = f"probe-{time.monotonic_ns():x}"
        self._last_run_id = self._run_prefix
        self._usual: Undisturbed | None = None

    @property
    def usual(self) -> Undisturbed:
        """Calls that nobody left, once they have been measured."""
        assert self._usual is not None, "undisturbed calls are measured first"
        return self._usual

    @property
    def evidence(self) -> str:
        """What the end of work is known by."""
        if self.truth is None:
            return "wait of another request"
        return "log" if isinstance(self.truth, LabLog) else "counters"

    # ---- calls

    def call(self, words: int, max_tokens: int, *, stream: bool) -> tuple[str, ProbeCall]:
        """Send a call with a prompt of about so many words, and return its run and the call under way.

        Raises: ServiceError when more would be sent than was announced.
        """
        number = next(self._numbers)
        if number > self._most_calls:
            raise ServiceError(
                f"{self.target.base_url} needs more than the {self._most_calls} calls that were announced; probe a "
                "server that nobody else uses"
            )
        self._last_run_id = f"{self._run_prefix}-{number}"
        # No other prompt begins as this one does, so a server has to read all of it.
        prompt = " ".join([f"{number} {time.monotonic_ns() % 1_000_003}:", *["go on"] * (words // 2)])
        messages = [{"role": "user", "content": prompt}]
        body = {"messages": messages, "max_tokens": max_tokens, "stream": stream}
        return self._last_run_id, ProbeCall(self.target, body, self._last_run_id)

    def whole_s(self, words: int, max_tokens: int) -> float:
        """Seconds until the answer of a call without streaming."""
        _, call = self.call(words, max_tokens, stream=False)
        with call:
            call.answer()
            return time.monotonic() - call.sent_at_s

    def _settled_s(self, words: int, max_tokens: int) -> float:
        """`whole_s`, measured until two in a row agree: a server that has just started is slower."""
        took_s = self.whole_s(words, max_tokens)
        for _ in range(_TRIES - 1):
            before_s, took_s = took_s, self.whole_s(words, max_tokens)
            if 1 / STEADY < took_s / before_s < STEADY:
                break
        return took_s

    def _short_call_s(self) -> float:
        """Seconds that a call of one token takes."""
        return self.whole_s(2, 1)

    def _streamed(self, words: int, max_tokens: int) -> tuple[float, float, int]:
        """First token and end of a streaming call, in seconds, and its tokens."""
        for _ in range(_TRIES):
            _, call = self.call(words, max_tokens, stream=True)
            with call:
                instants_s = [time.monotonic() - call.sent_at_s for _ in iter(call.read_token, None)]
            # An answer may be white space, or half a character.
            if instants_s:
                return instants_s[0], instants_s[-1], len(instants_s)
        raise ServiceError("streaming calls have no text; the server must answer with text to be probed")

    def measure_undisturbed(self, seconds: float, most_tokens: int) -> Undisturbed:
        """Measure calls that nobody leaves: how long a prompt takes to be read, and how long answers take.

        seconds: how long an answer should take, about.
        """
        self._settled_s(2, min(64, most_tokens))
        first_s, end_s, tokens = self._streamed(2, min(64, most_tokens))
        token_s = (end_s - first_s) / max(1, tokens - 1)
        max_tokens = max(TOKEN_LIMIT, min(most_tokens, math.ceil(seconds / max(token_s, 1e-6))))
        words = 50
        while first_s < PREFILL_S and words < LONGEST_PROMPT:
            words = min(LONGEST_PROMPT, words * (2 if first_s > PREFILL_S / 2 else 4))
            first_s, _, _ = self._streamed(words, TOKEN_LIMIT)
        whole_s = self._settled_s(words, max_tokens)
        first_s, streamed_s, tokens = self._streamed(words, max_tokens)
        held_back = tokens > 1 and first_s > _HELD_BACK * streamed_s
        if held_back:
            first_s = self.whole_s(words, 1)
        self.wait_until_quiet()
        idle_s = tuple(self._short_call_s() for _ in range(_IDLE_CALLS))
        _, occupier = self.call(words, max_tokens, stream=True)
        with occupier:
            if held_back:
                time.sleep(first_s)
            else:
                occupier.read_token()
            waits_s = self._short_call_s()
            while occupier.read_token() is not None:
                pass
        self._usual = Undisturbed(words, max_tokens, tokens, first_s, streamed_s, whole_s, idle_s, waits_s, held_back)
        return self._usual

    def require_steady(self) -> None:
        """Require that calls take as long as before the trials. Raises: ServiceError when they do not."""
        self.wait_until_quiet()
        now_s = self.whole_s(self.usual.prompt_words, self.usual.max_tokens)
        if not 1 / STEADY < now_s / self.usual.whole_s < STEADY:
            raise ServiceError(
                f"a call took {self.usual.whole_s:.2f} s before the trials and {now_s:.2f} s after them, so nothing "
                "can be told from when calls end; probe again while neither the server nor this machine does other work"
            )

    # ---- what became of the work

    def end_by_log(self, run_id: str, begun_s: float, from_s: float, limit_s: float) -> tuple[float, float, float]:
        """When the work on a call ended, by the log of the lab's own service, whose clock is this machine's.

        begun_s: when it was begun, seconds of `time.monotonic`. from_s: when its client left, likewise. limit_s: how
        long to wait for its end.

        Returns: The interval that holds the end, from leaving on, and the tokens generated after leaving. The upper end
            is infinite for a call that was complete before its client left.

        Raises: ServiceError for work that has not ended by then.
        """
        assert isinstance(self.truth, LabLog), "only the lab's own service has a log"
        rows = self.truth.rows(run_id, limit_s, begun_s)
        ended_at_s = [row.ended_at for row in rows if row.ended_at is not None]
        if not rows or len(ended_at_s) < len(rows):
            raise ServiceError(f"{self.target.base_url} still worked on a call {limit_s:.1f} s after its client left")
        if max(ended_at_s) <= from_s and all(row.outcome == "ok" for row in rows):
            return 0.0, math.inf, 0.0
        late = 0.0
        for row in rows:
            for start_s, end_s, tokens in row.token_spans:
                late += tokens * min(1.0, max(0.0, end_s - from_s) / (end_s - start_s)) if end_s > start_s else 0
        delay_s = max(0.0, max(ended_at_s) - from_s)
        return delay_s, delay_s, late

    def end_by_waiting(self, from_s: float) -> tuple[float, float]:
        """When the work of the server ended, by the wait of another request.

        from_s: instant from which is counted, seconds of `time.monotonic`.

        Returns: The interval that holds the end of the work.
        """
        gap_s = time.monotonic() - from_s
        took_s = self._short_call_s()
        low_s, high_s = took_s - max(self.usual.idle_s), took_s - min(self.usual.idle_s)
        # A wait that is no longer than those of an idle server says that the work may never have gone on.
        low_s = gap_s + low_s if low_s > 0 else 0.0
        return low_s, max(low_s, gap_s + max(0.0, high_s))

    def end_by_counters(self, before: Look, left_after_s: float, remaining_s: float) -> tuple[float, float, float]:
        """When the work on a call ended, by what the server has counted for it.

        left_after_s: seconds from sending the call to leaving it. remaining_s: how much longer it would have taken.

        Returns: The interval that holds the end, from leaving on, and the tokens generated after leaving. The upper end
            is infinite for a call that was complete before its client left.
        """
        after = self.look_when_quiet(remaining_s)
        tokens = after.tokens - before.tokens
        usual = self.usual
        if (
            after.generating_s is None
            or after.prompt_s is None
            or before.generating_s is None
            or before.prompt_s is None
        ):
            prompt_s, generating_s = usual.first_token_s, tokens * (usual.whole_s - usual.first_token_s) / usual.tokens
            error_s = _ROUNDING_S + 0.1 * generating_s
        else:
            prompt_s, generating_s = after.prompt_s - before.prompt_s, after.generating_s - before.generating_s
            error_s = _ROUNDING_S
        if tokens >= usual.max_tokens and prompt_s + generating_s < left_after_s:
            return 0.0, math.inf, 0.0
        if tokens < 1:
            # It ended while the prompt was read, which is counted only when it has been read.
            return 0.0, max(0.0, usual.first_token_s - left_after_s) + error_s, 0.0
        end_s = prompt_s + generating_s - left_after_s
        in_time = tokens * min(1.0, max(0.0, left_after_s - prompt_s) / generating_s) if generating_s > 0 else tokens
        return max(0.0, end_s - error_s), max(0.0, end_s + error_s), tokens - in_time

    def look_when_quiet(self, expected_s: float) -> Look:
        """What the server says when it has nothing more to do. It is not asked before that is expected."""
        time.sleep(1.1 * expected_s + 0.3)
        look = self.wait_until_quiet()
        assert look is not None, "only counters are looked at"
        return look

    def poll(self, seconds: float) -> None:
        """Read the counters all the time until the server has nothing more to do, or a while longer than it should."""
        assert not isinstance(self.truth, LabLog | None), "only counters are polled"
        until_s = time.monotonic() + 2 * seconds + 1.0
        while self.truth.look().busy and time.monotonic() < until_s:
            time.sleep(_LOOK_EVERY_S)

    def is_queued(self, run_id: str, begun_s: float) -> bool:
        """Whether a call waits for a slot. Without counters it does where other requests wait for one under way."""
        if isinstance(self.truth, LabLog):
            rows = self.truth.rows(run_id, since_s=begun_s)
            return any(row.outcome == "open" and row.queue_wait_s > 0 for row in rows)
        return self.truth is None or self.truth.look().queued > 0

    def wait_until_quiet(self) -> Look | None:
        """Wait until the server has nothing to do; what its counters say then. Raises: ServiceError after a while."""
        until_s = time.monotonic() + _QUIET_LIMIT_S
        while time.monotonic() < until_s:
            if self.truth is None:
                took_s = self._short_call_s()
                if self._usual is None or took_s <= 2 * max(self._usual.idle_s):
                    return None
            elif isinstance(self.truth, LabLog):
                if not self.truth.rows(self._last_run_id, 1.0) or all(
                    row.outcome != "open" for row in self.truth.rows(self._last_run_id)
                ):
                    return None
            else:
                look = self.truth.look()
                if not look.busy:
                    return look
                time.sleep(LEAST_GAP_S)
        raise ServiceError(
            f"{self.target.base_url} was busy for {_QUIET_LIMIT_S:.0f} s; probe a server that nobody else uses"
        )
