"""The extractor: a session's evidence is sent to a model, and what it says of it is checked.

A session that is too long for the model is asked again at once, smaller and cut between turns.
Tokens are those of all calls of a session, whatever came of them. Evidence is rendered by whoever
asks; only calls are made in the calls' thread, so that a slow answer holds nobody but its own
session. What an answer says is redacted, and found to say something or nothing, by whoever records
it.
"""

from asyncio import CancelledError, to_thread
from concurrent.futures import Future
from pathlib import Path
from threading import Lock

from ...application.ports import Extracted, ExtractionFailed, Failure, Material
from ...application.surroundings import Provider
from ...domain.events import NO_TOKENS, Tokens
from ...domain.evidence import Evidence, token_limit
from .calls import Calls
from .failures import AnswerFailed
from .schemas import Unfit, is_one_object
from .servers import Servers
from .stage_one import digest, question, texts
from .wire import DEADLINE_S, Wire

SHRINKS_MAX = 3


class OpenAIExtractor:
    """For one run. `api_key` None: the SDK's own variable."""

    def __init__(
        self,
        paid: Provider,
        *,
        home: Path | None,
        api_key: str | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        """`home` keeps what was learned of servers."""
        self.name, self.slots = paid.extract_model, paid.slots
        self._paid = paid
        self._home = home
        self._api_key = api_key
        self._deadline_s = deadline_s
        self._lock = Lock()
        self._calls: Calls | None = None
        self._wire: Wire | None = None
        self._stopped = False

    @property
    def remaining_percent(self) -> float | None:
        return None if self._wire is None else self._wire.remaining_percent

    def digest(self, memory_version: str) -> str:
        return digest(memory_version)

    def extract(self, material: Material) -> "Future[Extracted | None]":
        tokens = max(token_limit(self._paid.context_window) >> material.shrink, 1)
        aligned = material.shrink > 0
        try:
            evidence = rendered(material, tokens, aligned)
            calls, wire = self._begun()
        except ExtractionFailed as failed:
            return ended(failed)

        async def read() -> Extracted | None:
            return await self._read(wire, material, evidence, tokens)

        return calls.start(read, stopped=self._was_stopped)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            calls = self._calls
        if calls is not None:
            calls.stop()

    def _begun(self) -> tuple[Calls, Wire]:
        with self._lock:
            if self._stopped:
                raise self._was_stopped()
            if self._calls is None or self._wire is None:
                self._wire = Wire(
                    base_url=self._paid.base_url,
                    api_key=self._api_key,
                    servers=Servers(self._home),
                    deadline_s=self._deadline_s,
                )
                self._calls = Calls(at_end=self._wire.close)
            return self._calls, self._wire

    def _was_stopped(self) -> ExtractionFailed:
        return ExtractionFailed("transient", "stopped", tokens=Tokens(model=self.name))

    async def _read(
        self, wire: Wire, material: Material, evidence: Evidence, tokens: int
    ) -> Extracted | None:
        spent = Tokens(model=self.name)
        for shrinks in range(SHRINKS_MAX + 1):
            if not evidence.text.strip():
                if evidence.omitted:  # There is something, and nothing of it would fit.
                    raise ExtractionFailed("too_long", "no_room_for_evidence", tokens=spent)
                return Extracted(
                    raw_memory="",
                    rollout_summary="",
                    rollout_slug=None,
                    prompt_digest=self.digest(material.memory_version),
                    tokens=spent,
                )
            try:
                return await self._ask(wire, material, evidence, spent)
            except AnswerFailed as failed:
                spent += failed.tokens
                if failed.reason != "context_too_long" or shrinks == SHRINKS_MAX:
                    raise ExtractionFailed(
                        failed.kind,
                        failed.reason,
                        retry_after_s=failed.retry_after_s,
                        tokens=spent,
                        # Where nobody listens no other session would be read either.
                        stops=failed.stops or failed.reason == "no_connection",
                    ) from failed
            tokens = max(tokens // 2, 1)
            try:  # Beside the loop: a file is read for it.
                evidence = await to_thread(rendered, material, tokens, True, spent)
            except CancelledError:
                raise ExtractionFailed("transient", "stopped", tokens=spent) from None
        raise AssertionError("the last one returns or raises")

    async def _ask(
        self, wire: Wire, material: Material, evidence: Evidence, spent: Tokens
    ) -> Extracted:
        asked = question(
            material.header,
            material.memory_version,
            evidence.text,
            model=self._paid.extract_model,
            tokens_max=self._paid.max_output_tokens,
        )
        answer = await wire.ask(asked, may_spend=material.may_spend, fits=is_one_object)
        spent += answer.tokens
        try:
            raw_memory, summary, slug = texts(material.memory_version, answer.text)
        except Unfit as unfit:
            raise ExtractionFailed("bad_reply", unfit.reason, tokens=spent) from None
        return Extracted(
            raw_memory=raw_memory,
            rollout_summary=summary,
            rollout_slug=slug,
            prompt_digest=self.digest(material.memory_version),
            omitted=evidence.omitted,
            omitted_bytes=evidence.omitted_bytes,
            tokens=spent,
        )


def rendered(material: Material, tokens: int, aligned: bool, spent: Tokens = NO_TOKENS) -> Evidence:
    try:
        return material.evidence(tokens, aligned)
    except Failure as error:
        raise ExtractionFailed.of_source(error, tokens=spent) from error


def ended(failed: ExtractionFailed) -> "Future[Extracted | None]":
    future: Future[Extracted | None] = Future()
    future.set_exception(failed)
    return future
