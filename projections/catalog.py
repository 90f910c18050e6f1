"""The projections whose rows are committed together with the event that changes them."""

from types import ModuleType

from . import (
    artifacts,
    citations,
    jobs,
    notes,
    places,
    progress,
    selection,
    shown,
    spend,
    stage1_outputs,
    threads,
)

SYNCHRONOUS: tuple[ModuleType, ...] = (
    threads,
    jobs,
    stage1_outputs,
    selection,
    artifacts,
    progress,
    notes,
    places,
    shown,
    citations,
    spend,
)
