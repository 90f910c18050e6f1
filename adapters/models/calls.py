"""Calls: an event loop in a thread of its own, for calls that take minutes beside each other.

Whatever is started ends: with a result, with an error, or with what it makes of being cancelled.
To stop is to cancel all of it and to wait until the last has said what it has cost.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")

STOP_S = 5.0


class Calls:
    def __init__(self, *, at_end: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """`at_end` closes what the calls have shared."""
        self._loop = asyncio.new_event_loop()
        self._at_end = at_end
        self._tasks: set[asyncio.Task[Any]] = set()
        self._lock = threading.Lock()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="model calls", daemon=True)
        self._thread.start()

    def start(
        self, call: Callable[[], Coroutine[Any, Any, Result]], *, stopped: Callable[[], Exception]
    ) -> "Future[Result]":
        """`stopped` is what a call ends with that was cancelled before it had begun."""
        future: Future[Result] = Future()
        with self._lock:
            if self._over:
                future.set_exception(stopped())
                return future
            self._loop.call_soon_threadsafe(self._begin, call, future, stopped)
        return future

    def stop(self) -> None:
        """May be called by any thread, and again."""
        with self._lock:
            if self._over:
                return
            self._over = True
            # Behind whatever was started: it has its task by then.
            self._loop.call_soon_threadsafe(self._begin_end)
        self._thread.join(STOP_S)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _begin(
        self,
        call: Callable[[], Coroutine[Any, Any, Result]],
        future: "Future[Result]",
        stopped: Callable[[], Exception],
    ) -> None:
        task = self._loop.create_task(call())
        self._tasks.add(task)

        def ended(task: "asyncio.Task[Result]") -> None:
            self._tasks.discard(task)
            if not future.set_running_or_notify_cancel():
                if not task.cancelled():
                    task.exception()  # Nobody asks for it any more.
                return
            if task.cancelled():
                future.set_exception(stopped())
            elif error := task.exception():
                future.set_exception(error)
            else:
                future.set_result(task.result())

        task.add_done_callback(ended)

        def cancelled(future: "Future[Result]") -> None:
            if future.cancelled() and not self._over:
                self._loop.call_soon_threadsafe(task.cancel)

        future.add_done_callback(cancelled)

    def _begin_end(self) -> None:
        self._ending = self._loop.create_task(self._end())  # Held: a loop holds its tasks weakly.

    async def _end(self) -> None:
        try:
            while tasks := list(self._tasks):
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks, timeout=STOP_S / 2)
            if self._at_end is not None:
                await self._at_end()
        finally:
            self._loop.stop()
