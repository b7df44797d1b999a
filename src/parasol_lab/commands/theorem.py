"""`parasol theorem`: the network of the paper's theorem, built from the equation."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from parasol.cli import (
    catalogue_names,
    check_place,
    one_line_warnings,
    print_json,
    say,
    show_rows,
    stages,
    write_safely,
)

app = typer.Typer(rich_markup_mode="rich")


ProblemName = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="Name in the catalogue, or path/to/file.py[:name].",
        show_default=False,
        autocompletion=catalogue_names,
    ),
]
Modes = Annotated[int, typer.Option(min=1, metavar="D", help="Modes of the basis.")]
Accuracy = Annotated[
    float, typer.Option(metavar="EPS", help="Largest error, relative to the largest ||c||; between 0 and 1/4.")
]
Construction = Annotated[
    Literal["smallest", "chebyshev", "shared", "paper", "all"],
    typer.Option(
        help="chebyshev: a series of c. shared: an inverse, each power computed once. paper: as in the paper's proof, "
        "corrected. smallest: chebyshev or shared. all: each of them."
    ),
]
Compress = Annotated[
    bool, typer.Option(help="Few rows by QR, so that the number of nodes does not matter, or all rows.")
]
Precondition = Annotated[
    bool, typer.Option(help="Multiply with the inverse of A at the middle of the box, or leave A as it is.")
]
SnapshotCount = Annotated[int, typer.Option(min=1, metavar="N", help="Full solves that the basis is made of.")]
Compare = Annotated[
    bool, typer.Option(help="Also count how it grows and what each idea saves, and train networks as good.")
]
Out = Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="Draw the growth: .png .svg .pdf.")]
Save = Annotated[
    str | None, typer.Option(metavar="FILE", help="Save the surrogate, with error bounds, as .parasol file.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="S", help="For nodes, snapshots and tests.")]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write what was found as JSON; - is stdout.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")]


@app.command()
def theorem(
    problem: ProblemName,
    modes: Modes = 5,
    accuracy: Accuracy = 1e-2,
    construction: Construction = "smallest",
    compress: Compress = True,
    precondition: Precondition = True,
    snapshots: SnapshotCount = 100,
    compare: Compare = True,
    out: Out = None,
    save: Save = None,
    seed: Seed = 0,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """The smallest network of the theorem for PROBLEM: built without training, its error proven over the box, tested.

    [dim]parasol theorem helmholtz --modes 5 --accuracy 1e-2 --out growth.png[/dim]
    """
    from parasol import load_problem
    from parasol.errors import InputError
    from parasol.report import FIGURE_SUFFIXES, require_matplotlib, write_json
    from parasol_lab.theorem.examination import examine, save_examined
    from parasol_lab.theorem.figure import draw_theorem
    from parasol_lab.theorem.words import comparison_rows, growth_rows, saving_rows, theorem_rows

    if out is not None:
        check_place(out, FIGURE_SUFFIXES)
        require_matplotlib()
        if not compare:
            raise InputError("--out draws what --no-compare leaves out. Leave out one of them.")
    for path in (save, json_file if json_file != "-" else None):
        if path is not None:
            check_place(path, None)
    files = []
    with stages(quiet) as stage, one_line_warnings():
        stage("reading the problem")
        examination = examine(
            load_problem(problem),
            n_modes=modes,
            accuracy=accuracy,
            construction=construction,
            compress=compress,
            precondition="solve" if precondition else "none",
            n_snapshots=snapshots,
            compare=compare,
            seed=seed,
            progress=stage,
        )
        as_asked = True
        if save is not None:
            path, as_asked = write_safely(lambda place: save_examined(examination, place, progress=stage), save)
            files.append(path)
        if out is not None:
            stage("drawing")
            files.append(draw_theorem(examination.facts, out))
    if json_file == "-":
        print_json(examination.facts)
    elif json_file is not None:
        files.append(write_json(examination.facts, json_file))
    if not quiet and json_file != "-":
        show_rows(theorem_rows(examination.facts))
        for title, rows in (
            ("bounds and networks for this system", comparison_rows(examination.facts)),
            ("what each idea saves", saving_rows(examination.facts)),
            ("growth", growth_rows(examination.facts)),
        ):
            if rows:
                say(title)
                show_rows(rows)
        for path in files:
            say(f"wrote {path}")
    if not as_asked:
        raise typer.Exit(1)
