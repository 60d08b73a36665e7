"""Fingerprint the code that a run executes, so that results of different code are never mixed.

The fingerprint covers every module that the run imports, directly or indirectly, without comments and docstrings.
Libraries count by their version. Only import statements are followed: of modules that are imported by a name computed
at run time, only the built-in agents count.
"""

import ast
import functools
import hashlib
import importlib.metadata
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import fairduel
from fairduel.agents import AGENTS
from fairduel.errors import BadInputError

_PACKAGE = Path(fairduel.__file__).parent
_OWN = fairduel.__name__
_RUN = f"{_OWN}.simulation.cell"
_STANDARD_LIBRARY = Path(ast.__file__).parent
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}
"""Distributions named unlike their module; looking these names up takes 0.2 s."""
_LIBRARY_FOLDERS = {"site-packages", "dist-packages"}


class _Import(NamedTuple):
    """``import module``, or one name of ``from module import name``."""

    module: str
    name: str
    level: int
    """How many dots stand before the module."""


class _Source(NamedTuple):
    """The part of a module's source that counts: a digest of its statements, and their imports."""

    digest: str
    imports: tuple[_Import, ...]


class _Module(NamedTuple):
    """A module whose source counts."""

    source: _Source
    is_package: bool


class _DataLoader(Protocol):
    def get_data(self, path: str) -> bytes: ...


def code_digest(modules: Iterable[str] = (), package: Path = _PACKAGE) -> str:
    """Return the fingerprint of a run that also uses these ``modules`` of the user.

    >>> code_digest() == code_digest([])
    True
    >>> len(code_digest())
    64
    """
    found, libraries = _follow(modules, package, *_own_closure(package))
    lines = [f"python {sys.version_info[0]}.{sys.version_info[1]}"]
    lines += [f"{name} {module.source.digest}" for name, module in sorted(found.items())]
    lines += [f"{name} {_version(name)}" for name in sorted(libraries)]
    return _digest("\n".join(lines))


@functools.cache
def _own_closure(package: Path) -> tuple[dict[str, _Module], frozenset[str]]:
    return _follow([_RUN, *AGENTS.modules], package, {}, frozenset())


def _follow(
    modules: Iterable[str], package: Path, known: dict[str, _Module], known_libraries: frozenset[str]
) -> tuple[dict[str, _Module], frozenset[str]]:
    """Follow every import; return the known modules and libraries with those found added."""
    starts = list(modules)
    users = {_top(start) for start in starts}
    found, libraries, seen = dict(known), set(known_libraries), set(known)
    left = list(starts)
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        if _top(name) == _OWN:
            module = _own_module(name, package)
        else:
            spec = _spec(name)
            if spec is not None and _is_standard(spec):
                continue
            if spec is not None and _is_installed(spec) and _top(name) not in users:
                libraries.add(_top(name))
                continue
            module = _users_module(name, spec) if spec is not None else None
            if module is None and name in starts and name in sys.modules:
                raise BadInputError(
                    f"module {name!r} has no source file, so its versions cannot be told apart; move the class to a "
                    ".py file."
                )
            # Importing a module runs its package's __init__ first. Ours only re-export names, so they are skipped
            # unless named: otherwise every run would depend on all that simulation/__init__.py imports.
            left += [name.rpartition(".")[0]] if "." in name else []
        if module is not None:
            found[name] = module
            left += _imported(name, module)
    return found, frozenset(libraries)


def _imported(importer: str, module: _Module) -> Iterator[str]:
    """Yield the modules that ``importer`` may import; an imported name may itself be a module."""
    package = importer if module.is_package else importer.rpartition(".")[0]
    for imported in module.source.imports:
        base = imported.module
        if imported.level:
            above = package.split(".")[: 1 - imported.level or None]
            base = ".".join([*above, *([base] if base else [])])
        yield base
        if imported.name:
            yield f"{base}.{imported.name}"


def _own_module(name: str, package: Path) -> _Module | None:
    place = package.joinpath(*name.split(".")[1:])
    for path, is_package in ((place / "__init__.py", True), (place.with_suffix(".py"), False)):
        if path.is_file():
            return _Module(_read_source(path.read_bytes()), is_package)
    return None


def _users_module(name: str, spec: ModuleSpec) -> _Module | None:
    """Return the module at ``spec``, or ``None`` if it has no file, like a package without ``__init__.py``."""
    if not spec.has_location or spec.origin is None:
        return None
    content = cast("_DataLoader", spec.loader).get_data(spec.origin)
    is_package = spec.submodule_search_locations is not None
    if not spec.origin.endswith(".py"):
        return _Module(_Source(hashlib.sha256(content).hexdigest(), ()), is_package)
    try:
        return _Module(_read_source(content), is_package)
    except SyntaxError as error:
        raise BadInputError(f"module {name!r} is not valid Python: {error}.") from error


def _spec(name: str) -> ModuleSpec | None:
    """Locate a module without importing it."""
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if loaded is not None:
        return cast("ModuleSpec", loaded)
    parent, _, _ = name.rpartition(".")
    path = None
    if parent:
        above = _spec(parent)
        if above is None or above.submodule_search_locations is None:
            return None
        path = list(above.submodule_search_locations)
    for finder in sys.meta_path:
        found = finder.find_spec(name, path)
        if found is not None:
            return found
    return None


def _is_standard(spec: ModuleSpec) -> bool:
    if spec.origin in ("built-in", "frozen"):
        return True
    return _place(spec).is_relative_to(_STANDARD_LIBRARY) and not _is_installed(spec)


def _is_installed(spec: ModuleSpec) -> bool:
    return not _LIBRARY_FOLDERS.isdisjoint(_place(spec).parts)


def _place(spec: ModuleSpec) -> Path:
    places = [spec.origin] if spec.has_location and spec.origin else list(spec.submodule_search_locations or [""])
    return Path(places[0])


@functools.lru_cache(maxsize=4096)
def _read_source(content: bytes) -> _Source:
    words: list[str] = []
    imports: list[_Import] = []
    _spell(ast.parse(content), words, imports)
    return _Source(_digest("\0".join(words)), tuple(imports))


def _spell(node: ast.AST, words: list[str], imports: list[_Import]) -> None:
    """Append a syntax tree's nodes to ``words``, without docstrings, and its imports to ``imports``."""
    if isinstance(node, ast.Import):
        imports += [_Import(alias.name, "", 0) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        imports += [_Import(node.module or "", alias.name, node.level) for alias in node.names]
    words.append(type(node).__name__)
    for field in node._fields:
        value = getattr(node, field, None)
        entries = [entry for entry in value if not _is_docstring(entry)] if isinstance(value, list) else [value]
        words.append(str(len(entries)))
        for entry in entries:
            if isinstance(entry, ast.AST):
                _spell(entry, words, imports)
            else:
                words.append(repr(entry))


def _is_docstring(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@functools.cache
def _version(library: str) -> str:
    """Return the version of the distribution that provides a module of this name."""
    try:
        return importlib.metadata.version(_DISTRIBUTIONS.get(library, library))
    except importlib.metadata.PackageNotFoundError:
        homes = importlib.metadata.packages_distributions().get(library, [])
        return " ".join(f"{home} {importlib.metadata.version(home)}" for home in sorted(set(homes)))


def _top(name: str) -> str:
    return name.partition(".")[0]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
