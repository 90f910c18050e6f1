"""The offline model: what a session shows without a model, as quotes and counted facts."""

from .consolidator import OfflineConsolidator
from .extractor import OfflineExtractor

__all__ = ["OfflineConsolidator", "OfflineExtractor"]
