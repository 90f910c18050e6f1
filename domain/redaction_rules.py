"""Redaction, a rule: what gives a secret away, with an example and a counter-example.

A rule is tried only where one of its anchors stands in the lower-cased text, so ordinary text
costs a few searches for fixed strings. Every pattern begins at its anchor (or `back` characters
before it) and what it may read before it fails is bounded, so that a rule costs the same at each
anchor, whatever follows. The table has three parts: tokens that speak for themselves, values
behind a label, and the places where programs take a secret.

The secret is the group `s`. Without one it is the value that follows the match, as
`redaction_values` reads it. In the examples `{an36}` stands for 36 random letters and digits, so
that these files hold no key; `<<…>>` marks what must go.
"""

import re
from typing import NamedTuple

from .redaction_values import Family


class Rule(NamedTuple):
    name: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    example: str
    counter: str
    family: Family | None = None
    """How a value is judged; None: the shape alone is proof."""
    strong: bool = False
    """The value must look random too: the words before it prove little."""
    before: re.Pattern[str] | None = None
    """What must end where the anchor stands, within 160 characters."""
    each: re.Pattern[str] | None = None
    """Looked for again inside the match, for lists such as cookies."""
    back: tuple[int, ...] = (0,)
