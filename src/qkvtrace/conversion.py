"""From nested dicts, as Hydra and YAML have them, to the dataclasses of the settings."""

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar

from qkvtrace.errors import UserError

T = TypeVar("T")


def from_config(kind: type[T], config: Mapping[str, Any], key: str = "") -> T:
    """Build the frozen dataclass `kind` from plain nested dicts, as Hydra composes them.

    `key` is where the dict stands in the whole configuration.

    Keys that `kind` does not have (another command's) are an error, as are missing keys and wrong
    types. Raises UserError naming the key, what it should hold and what it holds.
    """
    return typing.cast(T, _value(key, kind, config))


def _value(key: str, kind: Any, value: Any) -> Any:
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(key, kind, value)
    choices = typing.get_args(kind)
    if typing.get_origin(kind) is types.UnionType:
        for choice in choices:
            if _fits(choice, value):
                return _value(key, choice, value)
    elif _fits(kind, value):
        if typing.get_origin(kind) is tuple:
            return tuple(_value(key, choices[0], item) for item in value)
        return float(value) if kind is float else value
    raise UserError(f"{key}: expected {_described(kind)}, found {value!r}")


def _dataclass(key: str, kind: type, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise UserError(f"{key}: expected a group of settings, found {value!r}")
    prefix = f"{key}." if key else ""
    hints = typing.get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    unknown = [name for name in value if name not in names]
    if unknown:
        raise UserError(f"{prefix}{unknown[0]}: no such setting; there are {', '.join(names)}")
    missing = [name for name in names if value.get(name, "???") == "???"]
    if missing:
        raise UserError(f"{prefix}{missing[0]}: expected a value, found none")
    return kind(**{name: _value(prefix + name, hints[name], value[name]) for name in names})


def _fits(kind: Any, value: Any) -> bool:
    origin = typing.get_origin(kind)
    if origin is Literal:
        return value in typing.get_args(kind)
    if origin is tuple:
        return isinstance(value, Sequence) and not isinstance(value, str)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _described(kind: Any) -> str:
    origin = typing.get_origin(kind)
    if origin is Literal:
        return "one of " + ", ".join(map(str, typing.get_args(kind)))
    if origin is types.UnionType:
        return " or ".join(_described(choice) for choice in typing.get_args(kind))
    if origin is tuple:
        return f"a list ({_described(typing.get_args(kind)[0])} each)"
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    return names.get(kind, "null")
