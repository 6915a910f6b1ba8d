"""How a server is set up: by flags, by the environment and by one TOML file, in that order."""

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from grotta._check import check_at_least, check_one_of, check_positive, check_whole
from grotta.serve.catalogue import ModelSettings
from grotta.serve.limits import Limits

PREFIX = "GROTTA_SERVE_"
_EVERYWHERE = ("", "0.0.0.0", "::")  # a server that listens there cannot be reached by that name
_MODEL_KEYS = {"path", "method", "preset", "options", "image_size", "labels"}


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Settings:
    """Everything that can be set; the names are those of the flags, of ``GROTTA_SERVE_...`` and of the TOML keys."""

    models: tuple[ModelSettings, ...] = (ModelSettings("fashion", "fashion_resnet8"),)
    host: str = "127.0.0.1"
    port: int = 8000
    state: Path = Path("grotta-state")
    token: str = ""
    strict_sequences: bool = False
    shared: bool = False  # several servers share the state folder
    lease_seconds: float = 4.0
    advertise: str = ""  # where other servers reach this one
    max_streams: int = 10_000
    max_live: int = 128  # streams in memory
    memory_mb: int = 512  # of the streams in memory
    disk_mb: int = 0  # of all checkpoints; 0: no limit
    idle_seconds: float = 300.0
    checkpoint_steps: int = 50
    checkpoint_seconds: float = 30.0
    queue: int = 8  # batches of one stream that may wait to be learned from
    max_waiting: int = 256  # requests that may wait for an answer
    answer_threads: int = field(default_factory=_cores)
    adapt_threads: int = field(default_factory=lambda: max(1, _cores() // 2))
    max_body_mb: int = 64
    max_images: int = 1024
    max_pixels: int = 32_000_000
    drain_seconds: float = 20.0
    log_format: str = "json"
    log_level: str = "info"
    show_frames: bool = True  # keep the last frames for the page

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("at least one model is needed: --model NAME=PATH")
        if len({model.name for model in self.models}) < len(self.models):
            raise ValueError("each model needs a name of its own")
        check_whole("port", self.port, at_least=0, below=65536)
        for name in ("max_streams", "max_live", "memory_mb", "checkpoint_steps", "max_waiting", "max_body_mb"):
            check_whole(name, getattr(self, name), at_least=1)
        for name in ("answer_threads", "adapt_threads", "max_images", "max_pixels"):
            check_whole(name, getattr(self, name), at_least=1)
        for name in ("queue", "disk_mb"):
            check_whole(name, getattr(self, name), at_least=0)
        for name in ("lease_seconds", "idle_seconds", "checkpoint_seconds"):
            check_positive(name, getattr(self, name))
        check_at_least("drain_seconds", self.drain_seconds, 0)
        check_one_of("log_format", self.log_format, ("json", "text"))
        check_one_of("log_level", self.log_level, ("debug", "info", "warning", "error"))
        if self.shared and not self.advertise and (self.port == 0 or self.host in _EVERYWHERE):
            raise ValueError(
                f"advertise must be the URL under which the other servers reach this one: {self.host}:{self.port} "
                "is none"
            )
        if self.shared and not self.token and not self.on_loopback:
            raise ValueError("shared servers beyond loopback need a token: they ask each other for streams")
        if self.token and (len(self.token) < 16 or not self.token.isascii() or not self.token.isprintable()):
            raise ValueError("token must be at least 16 printable ASCII characters")

    @property
    def limits(self) -> Limits:
        """How large a request may be."""
        return Limits(body_bytes=self.max_body_mb << 20, images=self.max_images, pixels=self.max_pixels)

    @property
    def on_loopback(self) -> bool:
        """Whether only programs of this machine can connect."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether ``host`` is a name or address of this machine for itself.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def gather(flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None) -> Settings:
    """The settings of ``flags``, then of ``GROTTA_SERVE_...``, then of a TOML file; the rest by default.

    ``method``, ``preset`` and ``options`` are the defaults of all models that do not have their own.

    >>> gather({"port": 9000}, {"GROTTA_SERVE_PORT": "1", "GROTTA_SERVE_QUEUE": "3"}, None).port
    9000
    """
    document = _read(file) if file else {}
    known = {f.name: f for f in fields(Settings)}
    shared_keys = {"method", "preset", "options", "token_file"}
    if unknown := sorted(document.keys() - known.keys() - shared_keys):
        raise ValueError(
            f"{file}: unknown setting {unknown[0]!r}; there are {', '.join(sorted({*known, *shared_keys}))}"
        )
    from_environment: dict[str, Any] = {}
    for name in (*known, *shared_keys):
        if (text := environment.get(PREFIX + name.upper())) is not None:
            from_environment[name] = _convert(name, text)
    given = {name: value for name, value in flags.items() if value is not None}
    merged: dict[str, Any] = {}
    for layer in (document, from_environment, given):
        merged |= _with_token(layer)
    common: dict[str, Any] = {key: merged.pop(key) for key in ("method", "preset", "options") if key in merged}
    if "models" in merged:
        merged["models"] = parse_models(merged["models"], common)
    elif common:
        merged["models"] = (ModelSettings("fashion", "fashion_resnet8", **common),)
    if "state" in merged:
        merged["state"] = Path(merged["state"])
    return Settings(**{name: _checked(name, value) for name, value in merged.items()})


def parse_models(given: Any, common: Mapping[str, Any]) -> tuple[ModelSettings, ...]:
    """Models as ``["NAME=PATH", ...]`` or as TOML tables ``{NAME: {path = ...}}``.

    >>> parse_models(["a=resnet20@w.th"], {"method": "source"})[0].method
    'source'
    """
    if isinstance(given, Mapping):
        parsed = []
        for name, table in given.items():
            values = {"path": table} if isinstance(table, str) else dict(table)
            if not values.keys() <= _MODEL_KEYS or "path" not in values:
                raise ValueError(f"models.{name}: expected path and any of {', '.join(sorted(_MODEL_KEYS - {'path'}))}")
            labels = tuple(values.pop("labels", ()))
            parsed.append(ModelSettings(name, **{**common, **values, "labels": labels}))
        return tuple(parsed)
    models = []
    for word in given:
        name, equals, path = str(word).partition("=")
        if not equals or not name or not path:
            raise ValueError(f"model: expected NAME=PATH, got {word!r}")
        models.append(ModelSettings(name, path, **common))
    return tuple(models)


def _with_token(layer: Mapping[str, Any]) -> dict[str, Any]:
    """The token that a file holds in place of the file's name; a token that is given directly comes first."""
    values = dict(layer)
    if file := values.pop("token_file", None):
        values.setdefault("token", Path(file).read_text().strip())
    return values


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise ValueError(f"config: no file at {file}") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"config: {file} is not TOML: {error}") from error


def _convert(name: str, text: str) -> Any:
    """An environment variable's text as a value."""
    if name == "models":
        return text.split()
    if name == "options":
        return tomllib.loads("\n".join(text.split(";")))
    default = _default(name)
    try:
        if isinstance(default, bool):
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
        return type(default)(text) if isinstance(default, int | float) else text
    except (KeyError, ValueError):
        raise ValueError(f"{PREFIX}{name.upper()}: expected a {type(default).__name__}, got {text!r}") from None


def _default(name: str) -> Any:
    found = next((f for f in fields(Settings) if f.name == name), None)
    if found is None:
        return ""
    return found.default_factory() if found.default_factory is not MISSING else found.default


def _checked(name: str, value: Any) -> Any:
    """``value``, if it has the type of the setting's default; whole numbers pass for others."""
    default = _default(name)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, bool | int | float | str) and type(value) is not type(default):
        raise TypeError(f"{name} must be a {type(default).__name__}, got {value!r}")
    return value
