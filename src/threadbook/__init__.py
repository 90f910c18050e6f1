"""Threadbook: memory for coding agents that people can trust.

`Memory` is the library's face. It is loaded when it is first asked for, so that importing
`threadbook.domain` costs msgspec and nothing else.
"""

from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapters.memory import Memory as Memory

__all__ = ["Memory", "__version__"]
__version__ = "0.1.0"

# A checkout whose links were lost (Windows, a zip) finds the five folders at its root.
_root = _Path(__file__).resolve().parents[2]
if not _Path(__file__).with_name("domain").is_dir() and (_root / "domain").is_dir():
    __path__.append(str(_root))


def __getattr__(name: str) -> Any:
    if name == "Memory":
        from .adapters.memory import Memory

        return Memory
    raise AttributeError(f"module 'threadbook' has no attribute {name!r}")
