"""The offline model: what a session shows without a model, as quotes and counted facts."""

# ruff: noqa: TID251 (relative, so one copy: the rule takes it for absolute)
from .consolidator import OfflineConsolidator
from .extractor import OfflineExtractor

__all__ = ["OfflineConsolidator", "OfflineExtractor"]
