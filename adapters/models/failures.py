"""Failures of a call, in words of ours: what kind it is, whether waiting helps, and when to come
back.

A reason is a code from this file. Nothing that a server or a model has written gets into one: both
like to quote what they were sent.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Any

from ...application.ports import ModelFailed

WAIT_S_MAX = 86_400
SAID_MAX = 2_000
TOO_LONG_CODES = {
    "context_length_exceeded",
    "string_above_max_length",
    "exceed_context_size_error",
    "request_too_large",
}
TOO_LONG_WORDS = re.compile(
    r"context (?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens"
    r"|input (?:tokens?|token count|length).{0,40}exceed",
    re.IGNORECASE,
)
LARGER_THAN_A_LIMIT = re.compile("request too large", re.IGNORECASE)
QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
REFUSED_CODES = {"content_filter", "invalid_prompt", "content_policy_violation"}
DISLIKES = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|extra|invalid|forbidden"
    r"|(?:not|n't) (?:support|permitted|allowed|compatible)|cannot|must be"
)
WAIT_WORDS = re.compile(r"try again in (\d+(?:\.\d+)?)\s*(ms|s|m)\b")


class AnswerFailed(ModelFailed):
    """A question that got no answer."""


class Rejected(Exception):
    """An HTTP status that is no success, with what the server says of it."""

    def __init__(self, status: int, body: object, headers: Mapping[str, str]) -> None:
        super().__init__(f"http_{status}")
        error = body if isinstance(body, dict) else {}
        self.status = status
        self.code = word(error.get("code")) or word(error.get("type"))
        self.param = word(error.get("param"))
        # Looked into and never kept. Other servers than OpenAI's have other forms.
        self.said = (word(error.get("message")) or str(body))[:SAID_MAX]
        self.retry_after_s = stated_wait_s(headers)

    def names(self, *fields: str) -> bool:
        """Whether it is one of these fields of the request that it does not like."""
        if self.param:
            return any(
                self.param == field or self.param.startswith(f"{field}.") for field in fields
            )
        said = self.said.lower()
        return bool(DISLIKES.search(said)) and any(
            re.search(rf"\b{re.escape(field)}\b", said) for field in fields
        )

    def failure(self) -> AnswerFailed:
        said = of_error(self.code, self.said, retry_after_s=self.retry_after_s)
        if said is not None:
            return said
        match self.status:
            case 401:
                return AnswerFailed("transient", "key_refused", stops=True)
            case 402:
                return AnswerFailed("transient", "quota_used_up", stops=True)
            case 403:
                return AnswerFailed("transient", "access_refused", stops=True)
            case 404 | 405 | 501:
                # Neither endpoint, or no such model: a word in the settings is wrong.
                return AnswerFailed("transient", "no_such_endpoint_or_model", stops=True)
            case 413:
                return AnswerFailed("too_long", "context_too_long")
            case 429:
                return AnswerFailed("transient", "rate_limited", retry_after_s=self.retry_after_s)
            case status if status in (408, 409, 425) or status >= 500:
                return AnswerFailed("transient", f"http_{status}", retry_after_s=self.retry_after_s)
            case status if status < 400:
                # What a session holds is not sent on to an address that nobody agreed to.
                return AnswerFailed("transient", f"http_{status}_redirect", stops=True)
            case status:
                return AnswerFailed("bad_reply", f"http_{status}")


def of_error(code: str, said: str, *, retry_after_s: int | None = None) -> AnswerFailed | None:
    """What the error itself says, whatever the status; None: nothing that we know."""
    if code in QUOTA_CODES:
        return AnswerFailed("transient", "quota_used_up", stops=True)
    limited = code in ("rate_limit_exceeded", "rate_limit_error")
    # A request that is larger than a minute's whole allowance fails however long it waits.
    words = LARGER_THAN_A_LIMIT if limited else TOO_LONG_WORDS
    if code in TOO_LONG_CODES or words.search(said):
        return AnswerFailed("too_long", "context_too_long")
    if code in REFUSED_CODES:
        return AnswerFailed("refused", code)
    if limited:
        wait_s = retry_after_s if retry_after_s is not None else wait_in_words_s(said)
        return AnswerFailed("transient", "rate_limited", retry_after_s=wait_s)
    return None


def of_event(error: Mapping[str, Any]) -> AnswerFailed:
    """An error in the middle of an answer. The server's, unless it says otherwise."""
    code = word(error.get("code")) or word(error.get("type"))
    return of_error(code, word(error.get("message"))) or AnswerFailed("transient", "server_failed")


def stated_wait_s(headers: Mapping[str, str]) -> int | None:
    """Retry-After in seconds or as a date, or in milliseconds. A date is taken by the server's own
    clock where it tells it: ours may be wrong by more than the wait."""
    if (ms := number(headers.get("retry-after-ms"))) is not None:
        return bounded(ms / 1000)
    stated = headers.get("retry-after")
    if stated is None:
        return None
    if (seconds := number(stated)) is not None:
        return bounded(seconds)
    until = date(stated)
    now = date(headers.get("date")) or datetime.now(UTC)
    return None if until is None else bounded((until - now).total_seconds())


def wait_in_words_s(said: str) -> int | None:
    found = WAIT_WORDS.search(said)
    if found is None:
        return None
    return bounded(float(found[1]) * {"ms": 0.001, "s": 1, "m": 60}[found[2]])


def bounded(seconds: float) -> int:
    return ceil(min(max(seconds, 0), WAIT_S_MAX))


def number(said: str | None) -> float | None:
    return float(said) if said and re.fullmatch(r"\s*\d{1,15}(\.\d{1,15})?\s*", said) else None


def date(said: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime(said or "")
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def word(said: Any) -> str:
    return said if isinstance(said, str) else ""
