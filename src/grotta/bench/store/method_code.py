"""A digest of a method's code: of its class, its bases, and what they import; comments and docstrings do not count."""

import ast
import functools
import hashlib
import importlib
import importlib.util
import inspect
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

from grotta.bench import experiments
from grotta.bench.spec import CellSpec
from grotta.methods import method_class
from grotta.outputs.registry import output_class

# Besides its own package, imports are followed into these parts of grotta; the digest of the stream, of the images and
# of the weights cover the rest.
_PARTS = tuple(f"grotta.{part}" for part in ("augment", "functional", "memory", "methods", "nn", "outputs"))


def cell_digest(spec: CellSpec) -> str:
    """A short digest of the code of a cell's method and of its output adaptation.

    >>> fog = {"dataset": "fashion-c", "domains": ("fog",), "gamma": 0.1}
    >>> cell_digest(CellSpec(method="tent", **fog)) == cell_digest(CellSpec(method="bn", **fog))
    False
    """
    experiments.prepare(spec.method)
    method = method_class(spec.method)
    default = inspect.signature(method).parameters.get("output")
    options = {**method.presets.get(spec.preset, {}), **dict(spec.options)}
    output = options.get("output", default.default if default else None)
    return code_digest(method, *([output_class(output)] if isinstance(output, str) else []))


@functools.cache
def code_digest(*classes: type) -> str:
    """A short digest of the code of some classes: the same as long as they compute the same."""
    digest = hashlib.blake2b(digest_size=8)
    files: dict[str, Path] = {}
    for each in classes:
        files |= class_files(each)
    for name, path in sorted(files.items()):
        digest.update(f"{name}\n{code_of(path.read_text(encoding='utf-8'))}\n".encode())
    return digest.hexdigest()


def class_files(cls: type) -> dict[str, Path]:
    """The modules that a class is made of, by name: its own, those of its bases, and what they import in turn."""
    packages = {name.partition(".")[0] for name in _modules(cls)} - {"grotta"}
    own = (*_PARTS, *packages)
    todo = [name for name in _modules(cls) if name.startswith("grotta.") or _is_in(name, own)]
    files: dict[str, Path] = {}
    while todo:
        name = todo.pop()
        path = _file(name)
        if name in files or path is None:
            continue
        files[name] = path
        todo += [found for found in _imports(name, path, own) if _is_in(found, own)]
    return files


def code_of(source: str) -> str:
    """Python source without comments, docstrings and blank lines.

    >>> code_of("x = 1  # one\\n\\n\\ndef f():\\n    'Say it.'\\n    return x\\n")
    'x = 1\\ndef f():\\n    return x'
    """
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            for row in range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1):
                lines[row - 1] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _modules(cls: type) -> list[str]:
    """The modules of a class and its bases, except those of Python and torch, which have versions."""
    return [base.__module__ for base in cls.__mro__ if base.__module__.partition(".")[0] not in ("builtins", "torch")]


def _imports(name: str, path: Path, own: tuple[str, ...]) -> Iterator[str]:
    """The modules that a module imports; a name that a package passes on counts for the module that defines it."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            if source == "grotta" or _is_in(source, own):
                yield from (_origin(source, alias.name, own) for alias in node.names)


def _origin(source: str, name: str, own: tuple[str, ...]) -> str:
    """The module behind ``from source import name``."""
    if _file(f"{source}.{name}") is not None:
        return f"{source}.{name}"
    value = getattr(importlib.import_module(source), name, None)
    defined = getattr(value, "__module__", None)
    return defined if isinstance(defined, str) and _is_in(defined, own) else source


def _file(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # what is imported only on some machines
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None


def _is_in(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)
