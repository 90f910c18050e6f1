"""Specimens: a session's material, and an extractor that asks a server of the tests."""

from concurrent.futures import Future
from contextlib import contextmanager

from threadbook.adapters.models.extractor import OpenAIExtractor
from threadbook.application.kept import kept
from threadbook.application.ports import ExtractionFailed, Material
from threadbook.application.surroundings import Provider
from threadbook.domain.evidence import Evidence
from threadbook.domain.session import Header

THREAD = "0199f7a0-0000-7000-8000-000000000001"
TYPED = '[{"type":"message","role":"user","content":[{"type":"input_text","text":"%s"}]}]'


def header(thread_id=THREAD, **more):
    known = {
        "thread_id": thread_id,
        "tool": "codex",
        "source": "cli",
        "kind": "interactive",
        "rollout_path": f"/home/fern/.codex/sessions/rollout-{thread_id}.jsonl",
        "cwd": "/home/fern/shop",
        "git_branch": "main",
        "repository_url": None,
        "created_at_ms": 1_795_000_000_000,
        "updated_at_ms": 1_795_000_100_000,
    }
    return Header(**(known | more))


class Session:
    """Its evidence is `text`, or the first half of it for half of the tokens, and so on."""

    def __init__(self, text="run make check-ferns", *, thread_id=THREAD, version="v1", shrink=0):
        self.rendered = []
        self.reserved = []
        self.budget = 1 << 60
        self.is_spent = False  # Whether the budget loses what is reserved of it.
        self.text = text
        self.material = Material(
            header=header(thread_id),
            memory_version=version,
            items=lambda: iter(()),
            evidence=self.evidence,
            may_spend=self.may_spend,
            shrink=shrink,
        )

    def evidence(self, tokens, aligned):
        self.rendered.append((tokens, aligned))
        text = TYPED % self.text
        shown = text[: tokens * 4] if aligned else text
        left_out = len(text) - len(shown)
        return Evidence(text=shown, items=1, omitted=bool(left_out), omitted_bytes=left_out)

    def may_spend(self, most):
        if most > self.budget:
            return False
        self.reserved.append(most)
        self.budget -= most if self.is_spent else 0
        return True


@contextmanager
def extractor(server, *, home=None, deadline_s=10.0, base_url=None, **more):
    known = {
        "base_url": base_url or server.base_url,
        "extract_model": "luna",
        "consolidation_model": "terra",
        "max_output_tokens": 2_000,
    }
    asking = OpenAIExtractor(
        Provider(**(known | more)), home=home, api_key="key-of-a-test", deadline_s=deadline_s
    )
    try:
        yield asking
    finally:
        asking.stop()


def outcome(future, timeout_s=20):
    """What a reading came to: an `Extracted`, or the `ExtractionFailed` itself."""
    assert isinstance(future, Future)
    try:
        return future.result(timeout=timeout_s)
    except ExtractionFailed as failed:
        return failed


def read(server, session=None, **more):
    with extractor(server, **more) as asking:
        return outcome(asking.extract((session or Session()).material))


def verdict(found, version="v1"):
    """In the words of the cases."""
    if not isinstance(found, ExtractionFailed):
        return "no_output" if kept(found, version) is None else "store"
    return "fail_final" if found.kind in ("refused", "source") else "fail_retry"
