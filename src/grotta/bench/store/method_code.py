"""A digest of a method's code: of its class, its bases, and what they import; comments and docstrings do not count."""

import ast
import functools
import hashlib
import importlib
import importlib.util
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

# Besides its own package, imports are followed into these parts of grotta; the digest of the stream, of the images and
# of the weights cover the rest.
_PARTS = tuple(f"grotta.{part}" for part in ("augment", "functional", "memory", "methods", "nn", "outputs"))


@functools.cache
def method_digest(method: type) -> str:
    """A short digest of the code of ``method``: the same as long as it computes the same.

    >>> from grotta.methods import method_class
    >>> method_digest(method_class("tent")) == method_digest(method_class("bn"))
    False
    """
    digest = hashlib.blake2b(digest_size=8)
    for name, path in sorted(method_files(method).items()):
        digest.update(f"{name}\n{code_of(path.read_text(encoding='utf-8'))}\n".encode())
    return digest.hexdigest()


def method_files(method: type) -> dict[str, Path]:
    """The modules that a method is made of, by name: those of its class and bases, and what they import in turn."""
    packages = {name.partition(".")[0] for name in _modules(method)} - {"grotta"}
    own = (*_PARTS, *packages)
    todo = [name for name in _modules(method) if name.startswith("grotta.") or _is_in(name, own)]
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


def _modules(method: type) -> list[str]:
    """The modules of a class and its bases, except those of Python and torch, which have versions."""
    return [
        base.__module__ for base in method.__mro__ if base.__module__.partition(".")[0] not in ("builtins", "torch")
    ]


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
