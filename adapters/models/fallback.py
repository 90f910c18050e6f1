"""Fallback: how a server is asked next that cannot do what it was asked for.

That is found out by asking it, once, and remembered: an endpoint that it does not have, a schema
that it does not take, or takes and ignores, a field that it refuses. Each way is asked at most once
for a question, and once more where the server hung up.
"""

from collections.abc import Callable

from msgspec.structs import replace

from ...domain.events import Tokens
from .failures import AnswerFailed, Rejected
from .questions import CAN_GO, Question
from .replies import Answer
from .servers import Server, Servers

NOT_THERE = (404, 405, 501)
SCHEMA_FIELDS = ("text.format", "response_format", "json_schema", "structured output")


class Fallback:
    """Of one question. It is told what each call came to: where that is the end of it, it raises
    an `AnswerFailed` with the tokens of all calls; else `server` is how to ask next."""

    def __init__(
        self,
        question: Question,
        *,
        servers: Servers,
        base_url: str,
        fits: Callable[[str], bool] | None,
    ) -> None:
        self.server = servers.of(base_url, question.model)
        self.spent = Tokens(model=question.model)
        self._servers, self._place = servers, (base_url, question.model)
        self._fits = fits
        self._is_prose = False  # It has /responses, and answered in prose: chat may know schemas.
        # A server may close a connection that was kept open just as it is used again.
        self._is_second = False

    def rejected(self, rejected: Rejected) -> None:
        self.spent += Tokens(model=self.spent.model, calls=1)
        weaker = weakened(self.server, rejected)
        if weaker is not None:
            self.server, self._is_second = weaker, False
            return
        failed = rejected.failure()
        if self._is_prose and rejected.status in NOT_THERE:
            self._learn(replace(self.server, mode="responses", proven=True))
            failed = AnswerFailed("bad_reply", "reply_not_json")
        failed.tokens = self.spent
        raise failed from None

    def failed(self, failed: AnswerFailed) -> None:
        self.spent = failed.tokens = self.spent + failed.tokens
        if failed.reason != "hung_up" or self._is_second:
            raise failed
        self._is_second = True

    def answers(self, found: Answer) -> bool:
        """Whether that is the answer; False: the server is asked in another way."""
        self.spent, self._is_second = self.spent + found.tokens, False
        is_object = self._fits is None or bool(found.calls) or self._fits(found.text)
        ended = found.is_cut or found.is_full
        is_begun = ended and found.text.lstrip().startswith("{")  # An object that was cut.
        if is_object or is_begun or not self._is_prose:
            shown = self._fits is not None and not found.calls and (is_object or is_begun)
            self._learn(replace(self.server, proven=self.server.proven or shown))
        doubtful = self.server.mode == "responses" and not self.server.proven
        if doubtful and not is_object and not is_begun:
            self._is_prose, self.server = True, replace(self.server, mode="chat_schema")
            return False
        if found.is_cut or (found.is_full and not is_object):
            raise AnswerFailed("too_long", "cut_by_length", tokens=self.spent)
        if not is_object and not found.is_whole:
            # It may have been the line or the length; a try is spent, so that it ends.
            raise AnswerFailed("too_long", "answer_broke_off", tokens=self.spent)
        return True

    def _learn(self, server: Server) -> None:
        self._servers.learn(*self._place, server)


def weakened(server: Server, rejected: Rejected) -> Server | None:
    """What is left to try where a server says no; None: nothing."""
    if server.mode == "responses" and rejected.status in NOT_THERE:
        return None if rejected.code == "model_not_found" else replace(server, mode="chat_schema")
    if rejected.status not in (400, 422) or rejected.failure().kind != "bad_reply":
        return None
    if server.mode != "chat_json" and rejected.names(*SCHEMA_FIELDS):
        return replace(server, mode="chat_json")
    if server.mode == "responses":
        fields = CAN_GO["responses"]
    else:
        fields = CAN_GO["chat"]
        if server.cap == "max_tokens" and rejected.names("max_tokens", "max_completion_tokens"):
            return replace(server, cap="max_completion_tokens")
    for field in fields:
        words = (field, "thinking") if field.startswith("reasoning") else (field,)
        if field not in server.without and rejected.names(*words):
            return replace(server, without=(*server.without, field))
    return None
