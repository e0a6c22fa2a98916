"""A run directory as the report needs it. What is missing or odd is said, never guessed."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.history import History, Json, read_history
from kraftlog.errors import ConfigError

META = "meta.json"
HISTORY = "history.jsonl"
RESULTS = "results.json"
VERDICTS = ("PASS", "FAIL", "SKIPPED", "ERROR")


@dataclass(frozen=True, slots=True)
class Criterion:
    name: str
    measured: float | None
    target: float | None
    unit: str
    ok: bool
    ratio: float | None = None
    per: str = ""
    """What the ratio is to: the timeout that the measured time depends on."""


@dataclass(frozen=True, slots=True)
class Run:
    drill: str
    seed: str
    verdict: str
    words: str
    criteria: tuple[Criterion, ...]
    anomalies: tuple[str, ...]
    counts: Mapping[str, str]
    meta: Mapping[str, str]
    history: History


def read_run(directory: Path) -> Run:
    """ConfigError if this is no run of a drill, HistoryDamaged if its history makes no sense."""
    results = _read_object(directory / RESULTS)
    meta = _read_object(directory / META)
    verdict = _text(results.get("verdict"))
    if verdict not in VERDICTS:
        raise ConfigError(
            f"{directory / RESULTS}: verdict {verdict!r} is none of {', '.join(VERDICTS)}",
            hint="run the drill again",
        )
    path = directory / HISTORY
    return Run(
        drill=_text(results.get("drill")),
        seed=_text(results.get("seed")),
        verdict=verdict,
        words=_text(results.get("words")),
        criteria=tuple(_criterion(each) for each in _objects(results.get("criteria"))),
        anomalies=tuple(_anomaly(each) for each in _list(results.get("anomalies"))),
        counts=_flat(results.get("counts")),
        meta=_flat(meta),
        # A drill that was skipped has done nothing that could be recorded.
        history=read_history(path) if path.exists() else History(()),
    )


def _read_object(path: Path) -> Mapping[str, Json]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"{path.parent} is no run of a drill: it has no {path.name}",
            hint="give the directory that `kraftctl drill run` named",
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON: {error}", hint="run the drill again") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} is no JSON object", hint="run the drill again")
    return found


def _criterion(fields: Mapping[str, Json]) -> Criterion:
    return Criterion(
        _text(fields.get("words") or fields.get("name")),
        number(fields.get("measured")),
        number(fields.get("target")),
        _text(fields.get("unit")),
        fields.get("ok") is True,
        number(fields.get("ratio")),
        _text(fields.get("per")),
    )


def _anomaly(found: Json) -> str:
    """In words, or as the fields of a finding."""
    if not isinstance(found, Mapping):
        return _text(found)
    head = f"{_text(found.get('anomaly'))} {_text(found.get('key'))}: {_text(found.get('words'))}"
    operations = [_text(each.get("text")) for each in _objects(found.get("operations"))]
    return "\n".join([head, *operations])


def number(value: Json) -> float | None:
    """As a number, if it is one that can be written down."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flat(value: Json) -> dict[str, str]:
    return {name: _text(each) for name, each in value.items()} if isinstance(value, Mapping) else {}


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _objects(value: Json) -> list[Mapping[str, Json]]:
    return [each for each in _list(value) if isinstance(each, Mapping)]
