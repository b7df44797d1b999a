"""`parasol bench`: measurements, side by side in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from parasol.cli import check_json, one_line_warnings, stages, tell

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Measure: every figure beside what it is compared with, in one run.",
)


JsonFile = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON; - is stdout.")]
Quick = Annotated[bool, typer.Option("--quick", help="A small version, to see that everything runs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")]


@app.command()
def offline(json_file: JsonFile = None, quick: Quick = False, quiet: Quiet = False) -> None:
    """Bases, reduced models, error bounds and sampling on the paper's Helmholtz problem; about two minutes.

    [dim]parasol bench offline --json offline.json[/dim]
    """
    from parasol_lab.benchmarks.offline import measure_offline, offline_rows

    _measure(lambda stage: measure_offline(quick=quick, progress=stage), offline_rows, json_file, quiet)


@app.command()
def online(
    problems: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROBLEM", help="helmholtz, sine-gordon or schrodinger; all if left out."),
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="DIR", help="Keep the full solves there, for the next run.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes for the full solves.")] = None,
    fields: Annotated[bool, typer.Option("--fields", help="Train networks without POD too: work for a GPU.")] = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="Train the paper's network too: minutes, better on a GPU.")
    ] = False,
    json_file: JsonFile = None,
    quick: Quick = False,
    quiet: Quiet = False,
) -> None:
    """Maps from parameters to solutions on the paper's problems, beside the floor, and how fast they answer.

    [dim]parasol bench online helmholtz --store runs --json online.json[/dim]

    Most of the time goes into full solves: 10 000 of Helmholtz (two minutes), 1174 of sine-Gordon (ten minutes).
    """
    from parasol.checks import check_choice
    from parasol_lab.benchmarks.online import PROBLEMS, measure_online, online_rows

    chosen = [check_choice(name, PROBLEMS, "PROBLEM") for name in problems or PROBLEMS]
    folder = None if store is None else Path(store)
    _measure(
        lambda stage: measure_online(
            chosen, store=folder, jobs=jobs, quick=quick, paper=paper, fields=fields, progress=stage
        ),
        online_rows,
        json_file,
        quiet,
    )


@app.command()
def scale(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="A problem of the catalogue.")] = "helmholtz",
    sizes: Annotated[str, typer.Option(metavar="N,N,...", help="Numbers of nodes.")] = "1000,2000,4000",
    limit: Annotated[
        float, typer.Option(min=0.0, metavar="S", help="Leave out a stage that would take more seconds.")
    ] = 60.0,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Draw the growth: .png, .svg or .pdf.")
    ] = None,
    add_to: Annotated[
        str | None, typer.Option(metavar="FILE", help="Go on with an earlier run, by its --json file.")
    ] = None,
    json_file: JsonFile = None,
    quick: Quick = False,
    quiet: Quiet = False,
) -> None:
    """How every stage grows with the number of nodes, beside the ideal, and how well a plan predicts learning.

    [dim]parasol bench scale --sizes 1000,10000,100000,1000000 --limit 600 --json scale.json --out scale.png[/dim]

    Each size runs in a process of its own, for its memory; exponents are of processor time, which other programs do not change.
    """
    from parasol.cache import check_output
    from parasol.errors import InputError
    from parasol.report import FIGURE_SUFFIXES
    from parasol_lab.benchmarks.scale import draw_scale, measure_scale, scale_rows

    try:
        counts = [int(float(word)) for word in sizes.split(",")]
    except ValueError:
        raise InputError(f"--sizes {sizes!r} is no list of numbers. Use, for instance, --sizes 1000,10000.") from None
    if out is not None:
        check_output(out, FIGURE_SUFFIXES)

    def run(stage):
        some = (300, 600) if quick else counts
        facts = measure_scale(some, problem=problem, limit=limit, add_to=add_to, progress=stage)
        if out is not None:
            draw_scale(facts, out)
        return facts

    _measure(run, scale_rows, json_file, quiet)


@app.command()
def peers(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="PEER", help="Peers by the beginning of their names; all if left out."),
    ] = None,
    cache: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where environments, full solves and results are kept.")
    ] = None,
    limit: Annotated[float, typer.Option(min=1.0, metavar="S", help="Seconds that one row may take.")] = 1800.0,
    again: Annotated[bool, typer.Option("--again", help="Measure again what is already known.")] = False,
    known: Annotated[bool, typer.Option("--known", help="Show what is already known, and measure nothing.")] = False,
    given: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="Measure nothing; take what --json wrote.")
    ] = None,
    add_to: Annotated[
        str | None, typer.Option(metavar="FILE", help="Put the rows into those of an earlier run, by its --json file.")
    ] = None,
    page: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the tables between the two marks of this Markdown page.")
    ] = None,
    json_file: JsonFile = None,
    quick: Quick = False,
    quiet: Quiet = False,
) -> None:
    """Other packages beside parasol, on the same full solves and the same split: errors, times, bounds, lines of code.

    [dim]parasol bench peers pymor scikit-learn --json peers.json[/dim]

    Each package is installed into an environment of its own in the cache folder, some gigabytes in all, with the versions
    and the settings of its documentation that are listed in the table. Rows that are known are not measured again.
    """
    from parasol.errors import InputError
    from parasol.report import machine_facts
    from parasol_lab.benchmarks.peers.environments import default_cache
    from parasol_lab.benchmarks.peers.problem import Split
    from parasol_lab.benchmarks.peers.registry import read_peers, select_peers
    from parasol_lab.benchmarks.peers.runs import joined, measure_peers, read_facts
    from parasol_lab.benchmarks.peers.tables import check_page, peers_rows, write_page

    if again and known:
        raise InputError("both --again and --known are given. Give one: --known measures nothing.")
    chosen = select_peers(read_peers(), names or [])
    place = None if page is None else check_page(Path(page))
    before = None if add_to is None else read_facts(Path(add_to))

    def run(stage):
        if given is not None:
            facts = read_facts(Path(given))
        else:
            split, folder = Split.quick() if quick else Split(), default_cache() if cache is None else Path(cache)
            options = {"split": split, "limit": limit, "again": again, "known": known}
            facts = {"machine": machine_facts()} | measure_peers(chosen, cache=folder, progress=stage, **options)
        if before is not None:
            facts = joined(before, facts)
        if place is not None:
            write_page(facts, place)
        return facts

    _measure(run, peers_rows, json_file, quiet)


def _measure(run, rows, json_file: str | None, quiet: bool) -> None:
    from parasol.report import machine_facts

    check_json(json_file)
    with stages(quiet) as stage, one_line_warnings():
        facts = run(stage)
    tell({"machine": machine_facts()} | facts, json_file, quiet, rows(facts))
