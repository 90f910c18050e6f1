"""Consent: a person has said that sessions may go to a provider, once for each server and model."""

from msgspec import Struct

from ..domain.address import shown
from ..domain.events import STORE_STREAM, ProviderConsented
from ..domain.refusals import NotConsented
from .ports import View
from .surroundings import Surroundings


class ConsentNeeded(Struct, frozen=True, kw_only=True):
    base_url: str
    models: list[str]


def needed(around: Surroundings, view: View) -> ConsentNeeded | None:
    """Where sessions would go without a person's word. None: nowhere, or it was given."""
    provider = around.policy.provider
    if provider is None:
        return None
    where = shown(provider.base_url)
    given = {
        event.model
        for recorded in view.events(stream=STORE_STREAM)
        if isinstance(event := recorded.event, ProviderConsented) and event.base_url == where
    }
    models = sorted({provider.extract_model, provider.consolidation_model} - given)
    return ConsentNeeded(base_url=where, models=models) if models else None


def require(around: Surroundings, *, consented: bool, actor: str) -> None:
    """Record what was said now. Raises `NotConsented` where nothing was, now or earlier."""
    with around.store.reading() as view:
        asked = needed(around, view)
    if asked is None:
        return
    if not consented:
        raise NotConsented(asked.base_url, asked.models)
    with around.store.writing(actor=actor) as tx:
        if asked := needed(around, tx):
            for model in asked.models:
                said = ProviderConsented(at=around.now(), base_url=asked.base_url, model=model)
                tx.append(STORE_STREAM, said)
