"""The command `parasol`: one command per stage, no mathematics."""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

import parasol

if TYPE_CHECKING:  # everything heavy is imported where it is used, so that --help answers at once
    from parasol.pde.problem import Problem, Settings
    from parasol.pde.steady import Solution
    from parasol.space.geometry.domain import Domain


class _Group(TyperGroup):
    """Turns what goes wrong into one line on stderr and an exit status."""

    def make_context(self, *args, **options) -> Any:  # reads the words before the name of the command
        with _one_line_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx) -> Any:  # reads the rest and runs the command
        with _one_line_errors():
            return super().invoke(ctx)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise _fail("interrupted", 130) from None
    except BrokenPipeError:
        raise  # the reader of our output has gone: nothing is wrong
    except OSError as error:
        where = f" {str(error.filename)!r}" if error.filename else ""
        raise _fail(f"cannot read or write{where}: {error.strerror or error}", 1) from None
    except ValueError as error:
        from parasol.checks import ParasolError

        if not isinstance(error, ParasolError):
            raise
        raise _fail(str(error), 2) from None
    except Exception as error:
        # a usage error is known by its method, whichever click it comes from; the one that shows the help may pass
        if not hasattr(error, "format_message") or type(error).__name__ == "NoArgsIsHelpError":
            raise
        advice = f"Try: {error.ctx.command_path} --help" if getattr(error, "ctx", None) else ""  # type: ignore[attr-defined]
        raise _fail(f"{error.format_message().rstrip('.')}. {advice}", 2) from None  # type: ignore[attr-defined]


def _fail(message: str, status: int) -> typer.Exit:
    print(f"parasol: {' '.join(message.split())}", file=sys.stderr)
    return typer.Exit(status)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Declare a parametric PDE, solve it mesh-free on any geometry. List the problems, then solve one:\n\n"
        "[bold]parasol problems[/bold]\n\n"
        "[bold]parasol solve helmholtz a=0.927 k=1.697 --out u.png[/bold]"
    ),
)


def main() -> None:
    """Entry point of the command `parasol`."""
    app(prog_name="parasol")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"parasol {parasol.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None: ...


@app.command()
def problems(
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Also write the list as JSON; - is stdout.")
    ] = None,
) -> None:
    """List the catalogue: equations, domains, parameters."""
    from parasol.delivery.files import check_output
    from parasol.pde.catalogue import load_problem, problem_names

    if json_file not in (None, "-"):
        check_output(str(json_file), None)
    facts = [_describe(name, load_problem(name)) for name in problem_names()]
    if json_file != "-":
        _show_problems(facts)
    if json_file is not None:
        _write_json(facts, json_file)


def _describe(name: str, problem: Problem) -> dict[str, Any]:
    from importlib import import_module

    from parasol.pde import catalogue

    text = import_module(f"{catalogue.__name__}.{name.replace('-', '_')}").__doc__ or ""
    return {
        "name": name,
        "description": text.strip().partition("\n")[0],
        "equation": _equation(problem),
        "domain": _shape(problem.domain),
        "dimension": problem.domain.dimension,
        "bounds": problem.domain.bounds.tolist(),
        "periods": problem.domain.periods.tolist(),
        "parts": list(problem.domain.part_names),
        "parameters": [
            {"name": p.name, "low": p.low, "high": p.high, "scale": p.scale} for p in problem.parameters.scalars
        ],
        "functions": [{"name": f.name, "on": f.on, "law": str(f.law)} for f in problem.parameters.functions],
        "affine": problem.affine,
        "exact": problem.exact is not None,
        "presets": list(problem.settings),
    }


def _equation(problem: Problem) -> str:
    """The equation in short: u_xx for the second derivative along x."""
    import sympy

    u = problem.unknown
    short: dict[sympy.Basic, sympy.Basic] = {u: sympy.Symbol(str(u.func))}
    for found in problem.equation.atoms(sympy.Derivative):
        axes = "".join(str(v) * int(n) for v, n in found.variable_count)  # type: ignore[misc]
        short[found] = sympy.Symbol(f"{u.func}_{axes}")
    equation = problem.equation
    sides = (equation.lhs, equation.rhs) if isinstance(equation, sympy.Equality) else (equation, sympy.S.Zero)
    return " = ".join(str(side.doit().xreplace(short)) for side in sides).replace("**", "^")


def _shape(domain: Domain) -> str:
    """Which domains it is made of: Box - Ball."""
    from parasol.space.geometry.combine import Combination
    from parasol.space.geometry.domain import Named

    if isinstance(domain, Named):
        return _shape(domain.base)
    if isinstance(domain, Combination):
        sign = {"union": "|", "intersection": "&", "difference": "-"}[domain.kind]
        return f"{_shape(domain.a)} {sign} {_shape(domain.b)}"
    name = type(domain).__name__
    return "Disc" if name == "Ball" and domain.dimension == 2 else name


def _show_problems(facts: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("problem", "equation, domain and parameters", box=_box(), show_lines=True, title_justify="left")
    for fact in facts:
        box = " × ".join(f"[{low:.3g}, {high:.3g}]" for low, high in zip(*fact["bounds"], strict=True))
        names = [
            f"{p['name']} in [{p['low']:g}, {p['high']:g}]{' (log)' if p['scale'] == 'log' else ''}"
            for p in fact["parameters"]
        ]
        names += [f"{f['name']}: a function on the {f['on']}, {f['law']}" for f in fact["functions"]]
        equation = fact["equation"]
        seams = [axis for axis, period in zip("xyz", fact["periods"], strict=False) if period]
        where = f"{fact['domain']} in {box}" + (f", periodic in {', '.join(seams)}" if seams else "")
        lines = [
            fact["description"],
            equation if len(equation) <= 160 else equation[:157] + "...",
            f"{where}, boundary: {', '.join(fact['parts']) or 'none'}",
            ", ".join(names) or "no parameters",
        ]
        table.add_row(_text(fact["name"], "bold"), _text("\n".join(lines)))
    _console().print(table)


@app.command()
def solve(
    problem: Annotated[
        str,
        typer.Argument(metavar="PROBLEM", help="Name in the catalogue, or path/to/file.py[:name].", show_default=False),
    ],
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE",
            help="Parameters; those left out take the middle of their range.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        list[str] | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the solution: .png .svg .pdf .csv .npy .vtkhdf (repeatable)."
        ),
    ] = None,
    nodes_out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the nodes and their quality: .png .svg .pdf.")
    ] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the facts of the table as JSON; - is stdout.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(min=1, metavar="N", help="Number of nodes.")] = None,
    boundary_nodes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="How many of them on the boundary.")
    ] = None,
    method: Annotated[
        Literal["fill", "front", "hexagonal"] | None, typer.Option(help="How nodes are scattered.")
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(metavar="NAME:NUMBER", help="phs:7, imq:3, mq:3, iq:3, gaussian:3, matern:2,3.5 or wendland:1,4."),
    ] = None,
    degree: Annotated[int | None, typer.Option(metavar="P", help="Degree of the polynomials, -1 for none.")] = None,
    stencil: Annotated[int | None, typer.Option(metavar="K", help="Nodes per stencil.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Settings that come with the problem, e.g. paper; single options override it."
        ),
    ] = None,
    neumann: Annotated[
        Literal["ghosts", "one-sided"] | None, typer.Option(help="How conditions on the slope are met.")
    ] = None,
    solver: Annotated[Literal["superlu", "mkl", "auto"] | None, typer.Option(help="Sparse direct solver.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, metavar="S", help="For the nodes, and for parameters that are random functions.")
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")] = False,
) -> None:
    """Solve PROBLEM once, at the given parameters.

    [dim]parasol solve helmholtz a=0.927 k=1.697 --out u.png --out u.vtkhdf[/dim]
    """
    given = _assignments(values or [])
    targets = _targets(out or [], nodes_out, json_file)
    from parasol.pde.catalogue import load_problem
    from parasol.pde.discretize import discretize_with

    with _one_line_warnings() as said, _progress(quiet) as progress:
        progress("reading the problem")
        declared = load_problem(problem)
        _check_parameters(declared, given)
        options = {
            "n_nodes": nodes,
            "n_boundary": boundary_nodes,
            "method": method,
            "degree": degree,
            "stencil_size": stencil,
        }
        settings = _settings(declared, preset, kernel, options)
        ways = {key: value for key, value in (("neumann", neumann), ("solver", solver)) if value is not None}
        progress("scattering nodes and computing their weights")
        start = time.perf_counter()
        model = discretize_with(declared, settings, rng=seed, **ways)
        seconds = time.perf_counter() - start
        progress("solving")
        solution = model.solve(model.vector(given, rng=seed))
        progress("writing")
        facts = _facts(solution, given) | {"seed": seed, "discretise_seconds": seconds}
        facts["files"] = [*map(str, targets), *([json_file] if json_file not in (None, "-") else [])]
        facts["warnings"] = said
        _write(solution, facts, targets, nodes_out, json_file)
    if json_file == "-":
        _write_json(facts, "-")
    elif not quiet:
        _show_solution(facts)


def _assignments(values: list[str]) -> dict[str, float]:
    from parasol.checks import ParasolError

    out: dict[str, float] = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not (sign and name.strip()):
            raise ParasolError(f"{text!r} is not an assignment. Write parameters as name=value, like a=0.9.")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise ParasolError(f"{text!r} does not give a finite number. Write it like {name}=0.9.")
        if name in out:
            raise ParasolError(f"parameter {name!r} is given twice. Give it once.")
        out[name] = number
    return out


def _targets(out: list[str], nodes_out: str | None, json_file: str | None) -> list[Path]:
    """All files to write but the JSON, refused now rather than after the solve."""
    from parasol.checks import ParasolError
    from parasol.delivery.files import FIELD_SUFFIXES, check_output
    from parasol.study.figures import FIGURE_SUFFIXES, require_matplotlib

    targets = [check_output(path, (*FIGURE_SUFFIXES, *FIELD_SUFFIXES)) for path in dict.fromkeys(out)]
    targets += [check_output(nodes_out, FIGURE_SUFFIXES)] if nodes_out is not None else []
    others = [check_output(json_file, None)] if json_file not in (None, "-") else []
    resolved = [path.resolve() for path in targets + others]
    if len(set(resolved)) < len(resolved):
        raise ParasolError("two outputs have the same file name. Give each its own.")
    if any(path.suffix.lower() in FIGURE_SUFFIXES for path in targets):
        require_matplotlib()
    return targets


def _check_parameters(problem: Problem, given: dict[str, float]) -> None:
    """Refuse wrong parameters before anything expensive begins."""
    from parasol.checks import ParasolError

    for function in problem.parameters.functions:
        if function.name in given:
            raise ParasolError(
                f"parameter {function.name!r} is a function, drawn at random. Choose another with --seed."
            )
    problem.parameters.vector(given)


def _settings(problem: Problem, preset: str | None, kernel: str | None, options: dict[str, Any]) -> Settings:
    from dataclasses import replace

    from parasol.checks import ParasolError
    from parasol.pde.problem import Settings
    from parasol.space.kernels import kernel_from_text
    from parasol.space.stencils import default_scheme

    if preset is not None and preset not in problem.settings:
        known = ", ".join(problem.settings) or "none"
        raise ParasolError(f"preset {preset!r} is unknown for this problem. It has: {known}.")
    base = Settings() if preset is None else problem.settings[preset]
    chosen = {key: value for key, value in options.items() if value is not None}
    if kernel is not None:
        chosen["kernel"] = kernel_from_text(kernel)
    settings = replace(base, **chosen)
    scheme = {"kernel": settings.kernel, "degree": settings.degree, "stencil_size": settings.stencil_size}
    default_scheme(problem.domain.dimension, **scheme)  # says what does not fit before nodes are scattered
    return settings


def _facts(solution: Solution, given: dict[str, float]) -> dict[str, Any]:
    model = solution.model
    nodes, scheme, report, space = model.nodes, model.scheme, model.report, model.parameters
    return {
        "parasol": parasol.__version__,
        "problem": model.problem.name or _equation(model.problem),
        "parameters": {name: float(value) for name, value in zip(space.names, solution.mu, strict=False)},
        "left_to_middle": [name for name in space.names if name not in given],
        "functions_drawn": [f.name for f in space.functions],
        "n_nodes": nodes.n_nodes,
        "n_interior": nodes.n_interior,
        "n_boundary": nodes.n_boundary,
        "n_ghosts": model.n_unknowns - nodes.n_nodes,
        "kernel": str(scheme.kernel),
        "degree": scheme.degree,
        "stencil_size": scheme.stencil_size,
        "n_ill_conditioned": report.n_ill_conditioned,
        "median_condition": report.median_condition,
        "worst_condition": report.worst_condition,
        "affine": model.affine,
        "operator_terms": [str(theta) for theta in model.operator_thetas],
        "load_terms": [*map(str, model.load_thetas), *[f.name for f in space.functions]],
        "solver": solution.backend,
        "solve_seconds": solution.seconds,
        "relative_residual": solution.residual_norm,
        "unknown": str(model.problem.unknown.func),
        "minimum": float(solution.values.min()),
        "maximum": float(solution.values.max()),
        "error": solution.error,
    }


def _show_solution(facts: dict[str, Any]) -> None:
    from rich.table import Table

    middle, drawn = facts["left_to_middle"], facts["functions_drawn"]
    values = [f"{k} = {v:.6g}{' (middle of its range)' if k in middle else ''}" for k, v in facts["parameters"].items()]
    values += [f"{name}: a random function, seed {facts['seed']}" for name in drawn]
    ghosts = f", {facts['n_ghosts']} ghosts" if facts["n_ghosts"] else ""
    polynomials = f"degree {facts['degree']}" if facts["degree"] >= 0 else "no polynomials"
    ill = f", {facts['n_ill_conditioned']} ill-conditioned" if facts["n_ill_conditioned"] else ""
    terms = (
        f"operator: {', '.join(facts['operator_terms']) or 'none'}; load: {', '.join(facts['load_terms']) or 'none'}"
    )
    error = facts["error"]
    rows = {
        "problem": facts["problem"],
        "parameters": ", ".join(values) or "none",
        "nodes": f"{facts['n_nodes']} = {facts['n_interior']} interior + {facts['n_boundary']} boundary{ghosts}",
        "stencils": f"{facts['kernel']}, {polynomials}, {facts['stencil_size']} nodes each",
        "stencil condition": f"median {facts['median_condition']:.1e}, worst {facts['worst_condition']:.1e}{ill}",
        "affine terms": terms if facts["affine"] else "not affine: assembled anew for every parameter",
        "seconds": f"{facts['discretise_seconds']:.3g} to discretise, {facts['solve_seconds']:.3g} to solve",
        "solver": facts["solver"],
        "relative residual": f"{facts['relative_residual']:.1e}",
        f"{facts['unknown']}": f"from {facts['minimum']:.6g} to {facts['maximum']:.6g}",
        "relative error": "exact solution not known"
        if error is None
        else f"{error:.2e} (l2, against the exact solution)",
    }
    table = Table(box=_box(), show_header=False)
    for name, text in rows.items():
        table.add_row(_text(name, "bold"), _text(text))
    console = _console()
    console.print(table)
    for path in facts["files"]:
        console.print(_text(f"wrote {path}"), soft_wrap=True)


# ---- files, console, warnings --------------------------------------------------------------------------------------
def _write(solution: Solution, facts, targets: list[Path], nodes_out: str | None, json_file: str | None) -> None:
    """Write all files or none: each beside its place first, then all into their places."""
    from parasol.delivery.files import FIELD_SUFFIXES, replacing, write_field
    from parasol.study.figures import draw, draw_nodes

    with ExitStack() as files:
        for path in targets:
            temporary = files.enter_context(replacing(path))
            if nodes_out is not None and path is targets[-1]:
                draw_nodes(solution.model.nodes, temporary)
            elif path.suffix.lower() in FIELD_SUFFIXES:
                write_field(solution, temporary)
            else:
                draw(solution, temporary)
        if json_file not in (None, "-"):  # last, so that it knows of every warning
            _write_json(facts, str(files.enter_context(replacing(Path(str(json_file))))))


def _write_json(facts, path: str) -> None:
    text = json.dumps(_plain(facts), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    from parasol.delivery.files import replacing

    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _plain(value):
    """The same with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def _one_line_warnings() -> Iterator[list[str]]:
    """Show each of our warnings once, as one line without Python's source line; collects them."""
    from parasol.checks import ParasolWarning

    said: list[str] = []
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message, category, *rest, **options) -> None:
            text = " ".join(str(message).split())
            if not issubclass(category, ParasolWarning):
                usual(message, category, *rest, **options)
            elif text not in said:
                said.append(text)
                print(f"parasol: warning: {text}", file=sys.stderr)

        warnings.simplefilter("always", ParasolWarning)
        warnings.showwarning = show
        yield said


@contextmanager
def _progress(quiet: bool):
    """A function that says what is being done, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield status.update


def _console():
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def _text(text: str, style: str = ""):
    from rich.text import Text  # a Text is printed as it is: brackets in it mean nothing

    return Text(text, style=style)


def _box():
    from rich.box import SIMPLE

    return SIMPLE


if __name__ == "__main__":
    main()
