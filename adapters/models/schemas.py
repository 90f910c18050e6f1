"""Schemas: what an answer must be, as a strict JSON schema for the server and as a check of ours.

The check is as strict as the schema, whoever the server: exactly one object, no field too many, no
number that is taken for a text. A cut object is never completed. Why an answer does not fit is
told by a field of ours and the kind of the fault; pydantic's own message quotes the text.
"""

import json
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, WithJsonSchema

from .questions import Schema


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class StageOneV1(Strict):
    rollout_summary: str
    # A schema names it always; a server without schemas may leave it out.
    rollout_slug: Annotated[str | None, WithJsonSchema({"type": ["string", "null"]})] = None
    raw_memory: str


class StageOneV2(Strict):
    rollout_summary: str
    rollout_slug: str


STAGE_ONE: dict[str, type[StageOneV1] | type[StageOneV2]] = {"v1": StageOneV1, "v2": StageOneV2}

Model = TypeVar("Model", bound=BaseModel)


class Unfit(Exception):
    """`reason` is a code, and for a field of ours its name."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def strict(model: type[BaseModel], *, name: str) -> Schema:
    """Every field required and none beside them, as strict servers want it."""
    properties = model.model_json_schema()["properties"]
    for each in properties.values():
        each.pop("title", None)
        each.pop("default", None)
    form = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return Schema(name=name, json=form)


def fitted(model: type[Model], text: str) -> Model:
    said = one_object(text)
    try:
        return model.model_validate(said)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        # A name that the model has made up is its text, too.
        path = [str(part) for part in first["loc"]]
        known = path if path and path[0] in model.model_fields else []
        raise Unfit(":".join(["reply_schema", *known[:1], first["type"]])) from None


def is_one_object(text: str) -> bool:
    try:
        one_object(text)
    except Unfit:
        return False
    return True


def one_object(text: str) -> dict[str, Any]:
    """The one JSON object of a text: all of it, or in a fence or between words."""
    try:
        whole = DECODER.decode(text.strip())
    except _Twice:
        raise Unfit("reply_names_a_field_twice") from None
    except (ValueError, RecursionError):
        return embedded(text)
    if not isinstance(whole, dict):
        raise Unfit("reply_not_an_object")
    return whole


def embedded(text: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    at = text.find("{")
    while at >= 0:
        try:
            said, end = DECODER.raw_decode(text, at)
        except _Twice:
            raise Unfit("reply_names_a_field_twice") from None
        except (ValueError, RecursionError):
            # Looking behind it could find an object that stands inside of a cut one.
            raise Unfit("reply_not_json") from None
        found.append(said)
        at = text.find("{", end)
    if len(found) != 1:
        raise Unfit("reply_has_several_objects" if found else "reply_not_json")
    return found[0]


class _Twice(ValueError):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    said = dict(pairs)
    if len(said) < len(pairs):
        raise _Twice
    return said


def _no_number(said: str) -> None:
    raise ValueError(said)


DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)
