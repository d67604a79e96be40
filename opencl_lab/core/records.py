"""JSON from files and users, checked against the types that declare documents.

The fields of a document are declared in its dataclass or `msgspec.Struct`, and nowhere else. Text
is parsed by `json`, which also accepts NaN and lone surrogates, as other programs write them.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar, get_type_hints, overload

import msgspec

from opencl_lab.core.paths import write_json
from opencl_lab.core.space import Config, Value
from opencl_lab.core.trust import ADVICE, OTHERS_WRITE, danger, warn

LARGEST = sys.float_info.max  # bounds that exclude infinity and NaN
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Finite: TypeAlias = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=LARGEST)]

CHECKSUM = "checksum"
BOUNDS = re.compile(rf"`float` [<>]= -?{re.escape(str(LARGEST))}")

T = TypeVar("T")


def timestamp() -> str:
    """Return the time in ISO 8601, in UTC and to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def parsed(text: str) -> Any:
    """Return the values of a JSON text; raise ValueError if it is not JSON."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # with Python's advice for programs
        raise ValueError("it has a number of thousands of digits") from error


@overload
def typed(kind: type[T], values: Any, strict: bool = True) -> T: ...
@overload
def typed(kind: Any, values: Any, strict: bool = True) -> Any: ...  # such as `int | None`
def typed(kind: Any, values: Any, strict: bool = True) -> Any:
    """Return JSON values as a `kind`; the ValueError says what is not as declared, and where.

    If not `strict`, texts may stand for numbers.
    """
    try:
        return msgspec.convert(values, kind, dec_hook=_made, strict=strict)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        where = place.strip(".`") + ": " if place else ""
        what = BOUNDS.sub("a finite number", what)
        raise ValueError(f"{where}{what[:1].lower()}{what[1:]}") from error


def _made(kind: Any, values: Any) -> Any:
    if kind is Config:
        return Config(typed(dict[str, Value], values))
    raise NotImplementedError(kind)


def as_json(record: Any) -> Any:
    """Return a dataclass or a `msgspec.Struct` as mappings, lists and values of JSON."""
    return json.loads(json.dumps(msgspec.to_builtins(record, enc_hook=_plain)))


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Config) else value.item()  # a NumPy scalar


def sound_fields(kind: type[Any], values: Any) -> dict[str, Any]:
    """Return those JSON values that are fields of a dataclass and have the declared types.

    Others, which another version wrote or damage changed, are left out.
    """
    found = {}
    for name, declared in get_type_hints(kind, include_extras=True).items():
        if isinstance(values, Mapping) and name in values:
            try:
                found[name] = typed(declared, values[name])
            except ValueError:
                continue
    return found


def write_sealed(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document atomically, with a checksum against damage, for `read_sealed`."""
    with suppress(OSError):
        if path.is_symlink() or danger(path) is not None:
            path.unlink()  # else it would lead elsewhere, or pass on its owner and mode
    write_json(path, {**document, CHECKSUM: _checksum(document)}, 0o666 & ~OTHERS_WRITE)


def read_sealed(kind: type[T], path: Path) -> T | None:
    """Return the document that `write_sealed` wrote, or None if there is none or it is damaged.

    One that others could have written is not read, with a warning.
    """
    path = Path(os.path.realpath(path))  # what is checked, even if links change later
    try:
        why = danger(path)
        if why is not None:
            warn("what was stored is not believed", f"{why}; {ADVICE}")
            return None
        document = typed(dict[str, Any], parsed(path.read_text(encoding="utf-8")))
        whole = document.pop(CHECKSUM, None) == _checksum(document)
        return typed(kind, document) if whole else None
    except (OSError, ValueError):
        return None


def _checksum(document: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(document, sort_keys=True).encode())
