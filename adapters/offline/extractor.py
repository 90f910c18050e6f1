"""The offline extractor: a session in, a version's texts out, made of quotes and counts.

The same session gives the same bytes. A session that teaches nothing gives nothing: passing
commands, questions and thanks teach nothing.
"""

import json
from collections.abc import Iterable

from ...application.ports import Extracted
from ...domain.session import AnyItem, Header
from . import history, lines, memory, reading
from .reading import Typed


class OfflineExtractor:
    name = "offline"

    def extract(
        self, header: Header, items: Iterable[AnyItem], *, memory_version: str = "v1"
    ) -> Extracted | None:
        facts = memory.facts(header, reading.read(items))
        if facts is None:
            return None
        evidence = [_evidence("task", facts.named)]
        evidence += [_evidence(kind, typed) for typed, kind in facts.preferences]
        if facts.judged:
            evidence.append(_evidence("outcome", facts.judged))
        return Extracted(
            raw_memory="" if memory_version == "v2" else memory.raw_memory(facts),
            rollout_summary=(
                history.render(facts) if memory_version == "v2" else memory.rollout_summary(facts)
            ),
            rollout_slug=lines.slug(facts.name),
            evidence=json.dumps(evidence, ensure_ascii=False),
            omitted=facts.omitted,
        )


def _evidence(kind: str, typed: Typed) -> dict[str, str | int | None]:
    return {
        "kind": kind,
        "quote": lines.quote(typed.text),
        "line": typed.line,
        "at_ms": typed.at_ms,
    }
