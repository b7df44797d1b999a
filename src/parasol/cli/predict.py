"""`parasol predict`: the online phase."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from parasol.cli.options import JsonFile, Quiet, SurrogateFile, Values, numbers, texts
from parasol.cli.progress import stages
from parasol.cli.reading import Option
from parasol.cli.terminal import one_line_warnings, tell
from parasol.runtime.plain import Plain

if TYPE_CHECKING:  # everything heavy is imported where it is used, so that --help answers at once
    import numpy as np

    from parasol.report.outputs import Outputs
    from parasol.runtime.surrogate import Surrogate

_AT_ONCE = 2**25  # numbers that are computed before they are written, 268 MB; more are written on the way


def predict(
    model: SurrogateFile,
    values: Values = None,
    mus: Annotated[
        str | None,
        Option(metavar="FILE", help="Many parameters instead: .csv (a first line may name them) or .npy, by rows."),
    ] = None,
    points: Annotated[
        str | None,
        Option(metavar="FILE", help="Values at these points instead of all nodes: .csv or .npy, a point a row."),
    ] = None,
    times: Annotated[str | None, Option(metavar="T,T,...", help="Some of the stored times only, like 0,2.5,5.")] = None,
    bounds: Annotated[
        bool,
        Option("--bounds", help="Write error bounds and estimates too: in .npz, .nc, and the .csv of many parameters."),
    ] = False,
    out: Annotated[
        list[str] | None,
        Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the answer: .npy .npz .csv .nc; of one parameter also .vtkhdf .png .svg .pdf .gif .mp4 (repeatable).",
        ),
    ] = None,
    extrapolate: Annotated[
        bool, Option("--extrapolate", help="Answer outside the ranges too, where nothing is promised.")
    ] = False,
    seed: Annotated[
        int, Option(min=0, python="rng", metavar="S", help="For parameters that are random functions.")
    ] = 0,
    json_file: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Ask a surrogate: one parameter, or many; no equation is solved.

    [dim]parasol predict model.parasol a=0.9 k=1.7 --out u.png --out u.vtkhdf[/dim]

    [dim]parasol predict model.parasol --mus mus.csv --points sensors.csv --bounds --out u.csv[/dim]

    Of one parameter, files are those of parasol solve. Of many: .npy (parameters, values); by
    names .npz and .nc; .csv a table with the number and the parameters of each sample first.
    Any number of parameters goes to one .npy: what does not fit in memory is written on the way.
    """
    from parasol.report.answers import AnswerReport
    from parasol.runtime.files import load

    given = texts(values or [])
    targets = None
    if out or json_file not in (None, "-"):  # an answer on the screen needs NumPy alone
        from parasol.report.outputs import answer_outputs, write_outputs

        targets = answer_outputs(out or [], json_file if json_file != "-" else None, many=mus is not None)
    with stages(quiet) as stage, one_line_warnings() as said:
        stage("reading the surrogate")
        surrogate = load(model)
        named = numbers(given, [p.name for p in surrogate.parameters.scalars if p.labels])
        asked = _asked(surrogate, named, mus, seed)
        surrogate = _restricted(surrogate, points, times)
        if targets is not None:
            targets.check_surrogate(surrogate)
        if mus is not None and targets is not None and len(asked) * surrogate.n_values > _AT_ONCE and not bounds:
            data, rows = _streamed(surrogate, asked, targets, extrapolate, stage)
            data |= {"problem": surrogate.provenance.problem, "warnings": said}
        else:
            stage("answering")
            start = time.perf_counter()
            answer = surrogate(asked, extrapolate=extrapolate)
            answer.values  # noqa: B018  computed when first asked for
            seconds = time.perf_counter() - start
            files = [] if targets is None else [str(path) for path in targets.fields]
            report = AnswerReport(answer, bounds, seconds, files, said)
            data, rows = report.to_dict(), report.rows()
            if targets is not None:
                write_outputs(report, targets, stage=stage)
    tell(data, "-" if json_file == "-" else None, quiet, rows.items(), wrote=() if targets is None else targets.paths)


def _streamed(
    surrogate: Surrogate, asked: np.ndarray, targets: Outputs, extrapolate: bool, stage: Callable[[str], Any]
) -> tuple[Plain, dict[str, str]]:
    """Answers to more parameters than should be in memory at once, written while they are computed."""
    from parasol.cache.disk import replacing
    from parasol.delivery.streaming import write_answers
    from parasol.errors import InputError
    from parasol.report.render import write_json

    size = 8e-9 * len(asked) * surrogate.n_values
    if [path.suffix.lower() for path in targets.fields] != [".npy"]:
        raise InputError(
            f"{len(asked)} answers of {surrogate.n_values} values are {size:.2g} GB. Write these to one .npy, or ask for fewer: "
            "--points and --times take some values of each."
        )
    progress = stage(f"answering {len(asked)} parameters, {size:.2g} GB")
    written = write_answers(surrogate, asked, targets.fields[0], extrapolate=extrapolate, progress=progress)
    data = written.to_dict()
    if targets.report is not None:
        with replacing(targets.report) as temporary:
            write_json(data, temporary)
    return data, written.rows()


def _asked(surrogate: Surrogate, given: dict[str, Any], mus: str | None, seed: int) -> np.ndarray:
    """One parameter vector by names, or many from a file."""
    from parasol.delivery.inputs import named_vector, read_table
    from parasol.errors import InputError

    if mus is None:
        return named_vector(surrogate, given, rng=seed)
    if given:
        raise InputError("give either NAME=VALUE or --mus, not both.")
    return read_table(mus, surrogate.parameters.names, surrogate.n_parameters)


def _restricted(surrogate: Surrogate, points: str | None, times: str | None) -> Surrogate:
    from parasol.delivery.inputs import read_table
    from parasol.errors import InputError

    chosen = {}
    if points is not None:
        if surrogate.layout.points is None:
            raise InputError("--points needs nodes, and this surrogate of bare data knows none. Leave it out.")
        names = surrogate.layout.axes
        chosen["points"] = read_table(points, names, len(names))
    if times is not None:
        try:
            chosen["times"] = [float(word) for word in times.split(",")]
        except ValueError:
            raise InputError(f"--times {times!r} is not a list of times. Write it like 0,2.5,5.") from None
    return surrogate.restricted(**chosen) if chosen else surrogate
