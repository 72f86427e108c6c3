"""When a call that failed is sent again."""
from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Retry:
    """How calls are retried.

    A call is sent again while no server answers (UNAVAILABLE), and where the server says when (its trailer
    `grpc-retry-pushback-ms`, also with RESOURCE_EXHAUSTED): after the time that it named, otherwise after
    `first_wait` seconds, doubled each time up to `longest_wait` and shortened at random by up to a half. It is never
    sent after its deadline. `attempts`: how often it is sent at most; 1: no retries.
    """

    attempts: int = 4
    first_wait: float = 0.05
    longest_wait: float = 2.0

    def wait(self, sent: int, code: str, pushback_ms: str | None, left: float | None) -> float | None:
        """Seconds until it is sent again; None: it is not. `sent` times it was; `left`: until its deadline."""
        if sent >= self.attempts or code not in ("UNAVAILABLE", "RESOURCE_EXHAUSTED"):
            return None
        if pushback_ms is not None:
            if not pushback_ms.isdecimal():  # negative: the server wants no retry
                return None
            wait = int(pushback_ms) / 1000
        elif code == "UNAVAILABLE":
            wait = min(self.first_wait * 2 ** (sent - 1), self.longest_wait) * random.uniform(0.5, 1)
        else:
            return None  # a message that is too large stays so
        return wait if left is None or wait < left else None
