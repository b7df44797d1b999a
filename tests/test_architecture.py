import ast
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import parasol as ps

ROOT = Path(__file__).parents[1]


def test_importing_parasol_is_light():
    code = (
        "import parasol, sys\n"
        "assert not {'jax', 'torch', 'tensorflow'} & set(sys.modules)\n"
        "assert not {'scipy', 'sympy', 'matplotlib', 'h5py'} & set(sys.modules)\n"
        "parasol.scatter, parasol.discretize, parasol.load_problem('helmholtz')\n"
        "assert not {'jax', 'torch', 'tensorflow', 'matplotlib', 'h5py'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ps.__all__)
def test_every_public_name_exists_and_is_described(name):
    assert getattr(ps, name).__doc__


def test_names_that_messages_and_guides_give_are_public():
    """`ps.learning.discretisation_error`, which warnings name, was there only after something had imported the room."""
    files = [*(ROOT / "src" / "parasol").rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    files = [file for file in files if not {"decisions", "_build"} & set(file.parts)]
    found = {name for file in files for name in re.findall(r"\bps\.([A-Za-z]\w+)", file.read_text(encoding="utf-8"))}
    assert "learning" in found
    assert found - set(ps.__all__) == {"reduce_in_time"}  # of version 0.1.0


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'solvee'"):
        _ = ps.solvee


def test_nothing_outside_the_catalogue_knows_the_paper_s_problems():
    for file in (ROOT / "src" / "parasol").rglob("*.py"):
        if not {"catalogue"} & set(file.parts):
            text = file.read_text().lower()
            assert "schrodinger" not in text, file


def _public(module: str) -> set[str]:
    """The names of parasol that everybody may use: its own, those of its rooms as their stubs list them, all of `checks`."""
    if module == "parasol.faces":
        return {"face"}
    names = (
        vars(import_module(module))
        if module in ("parasol.checks", "parasol.errors")
        else getattr(import_module(module), "__all__", ())
    )
    return {*names, "__version__"}


@pytest.mark.parametrize("file", sorted((ROOT / "src" / "parasol_lab").rglob("*.py")), ids=lambda file: file.name)
def test_the_laboratory_uses_public_names_only(file):
    for line in ast.walk(ast.parse(file.read_text())):
        if isinstance(line, ast.Import):
            assert not any(name.name.startswith("parasol.") for name in line.names)
        if isinstance(line, ast.ImportFrom) and str(line.module).partition(".")[0] == "parasol":
            assert {name.name for name in line.names} <= _public(str(line.module))


def test_names_that_have_moved_still_work_and_say_where_they_are():
    import parasol_lab.theorem

    with pytest.warns(DeprecationWarning, match=r"use parasol_lab\.theorem\.construct\."):
        assert ps.construct is parasol_lab.theorem.construct


def test_no_pickle():
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text()
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text


def test_one_version_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert project["version"] == ps.__version__
    assert f"version: {ps.__version__}\n" in citation


# ---- sizes and types -----------------------------------------------------------------------------------------------
def functions(*rooms):
    """Every function of some rooms with its file; of all rooms where none is named."""
    for path in sorted(path for room in rooms or ("",) for path in (ROOT / "src" / "parasol" / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                some = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
                yield path, node, [a for a in some if a is not None and a.arg not in ("self", "cls")]


def test_functions_are_short_and_take_few_parameters():
    for path, node, parameters in functions():
        command = path.parent.name == "cli"  # whose options take a line or more each
        first = node.body[1 if command and len(node.body) > 1 else 0].lineno if command else node.lineno
        assert node.end_lineno - first < 80, f"{path.name}: {node.name} is too long"
        constructor = path.name == "matrices.py" and node.name == "__init__"  # what a user's matrices come with
        if not command and not constructor and node.name not in ("learn", "discretize"):
            assert len(parameters) <= 10, f"{path.name}: {node.name} takes {len(parameters)} parameters"


def check_typed(path, node, parameters):
    missing = [a.arg for a in parameters if a.annotation is None]
    assert not missing, f"{path.name}: {node.name} does not say what {', '.join(missing)} may be"
    assert node.returns is not None or node.name in ("__init__", "__post_init__"), f"{path.name}: {node.name}"


def test_what_answers_and_what_learns_is_typed():
    for path, node, parameters in functions("runtime", "learning"):
        check_typed(path, node, parameters)


def test_public_functions_are_typed():
    listed = set()
    for stub in (ROOT / "src" / "parasol").rglob("__init__.pyi"):
        for line in ast.walk(ast.parse(stub.read_text(encoding="utf-8"))):
            if isinstance(line, ast.ImportFrom):
                listed |= {(*str(line.module).split("."), name.name) for name in line.names}
    checked = 0
    for path, node, parameters in functions():
        if (*path.relative_to(ROOT / "src").with_suffix("").parts, node.name) in listed:
            check_typed(path, node, parameters)
            checked += 1
    assert checked > 60


def test_no_public_name_is_that_of_a_module_beside_it():
    # Python puts a module into its package when somebody imports it: the name would then be the module
    for stub in (ROOT / "src").rglob("__init__.pyi"):
        package = ".".join(stub.parent.relative_to(ROOT / "src").parts)
        for line in ast.parse(stub.read_text(encoding="utf-8")).body:
            for name in line.names if isinstance(line, ast.ImportFrom) and line.module != package else ():
                beside = stub.parent / str(name.asname)
                assert not any(path.exists() for path in (beside, beside.with_suffix(".py"))), (
                    f"{package}.{name.asname}"
                )
