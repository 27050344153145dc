"""Parameters of an address, each checked; what is wrong with one is said in a UserError."""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from qkvtrace.errors import UserError

if TYPE_CHECKING:
    from qkvtrace.views.scene import Place

Asked = Mapping[str, str]
Data = dict[str, Any]


def number(name: str, text: str | None, count: int | None = None) -> int:
    """A parameter as a number from 0 to below `count`; raises UserError otherwise."""
    if text is not None and text.isascii() and text.isdigit() and len(text) < 10:
        value = int(text)
        if count is None or value < count:
            return value
    most = "" if count is None else f" from 0 to {count - 1}"
    raise UserError(f"{name}: expected a number{most}, found {text!r}")


def one_of(name: str, text: str, allowed: Collection[str]) -> str:
    """A parameter that is one of `allowed`; raises UserError otherwise."""
    if text not in allowed:
        raise UserError(f"{name}: expected one of {', '.join(allowed)}, found {text!r}")
    return text


def vectors(asked: Asked, place: "Place", about: Data) -> list[str]:
    """Kinds of vectors; raises UserError unless one space can hold them."""
    widths = next(s["widths"] for s in about["sites"] if s["name"] == place.site.name)
    chosen = [one_of("vectors", name, widths) for name in asked.get("vectors", "").split(",")]
    if len({widths[vector] for vector in chosen}) > 1:
        raise UserError(f"vectors: expected those of one width, found {', '.join(chosen)}")
    return list(dict.fromkeys(chosen))


def sentence(asked: Asked, name: str, about: Data) -> int:
    """The number of a sentence."""
    return number(name, asked.get(name), len(about["sentences"]))


def pair(asked: Asked, about: Data) -> list[int]:
    """Sentence a and, if there is one, sentence b."""
    return [sentence(asked, name, about) for name in ("a", "b") if name == "a" or name in asked]


def words(asked: Asked) -> list[str] | None:
    """The words chosen, as JSON; None means all."""
    if "words" not in asked:
        return None
    try:
        chosen = json.loads(asked["words"])
    except (ValueError, RecursionError):
        chosen = None
    if not isinstance(chosen, list) or not all(isinstance(word, str) for word in chosen):
        raise UserError(f"words: expected a list of strings in JSON, found {asked['words']!r}")
    return chosen
