"""Run every peer for each number of full solves and each seed, one after another; what is measured is kept and not run again."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parasol import __version__
from parasol.cache import publish
from parasol.errors import FileError, InputError
from parasol.report import Facts
from parasol_lab.benchmarks.peers.environments import (
    PeerFailed,
    PeerTooSlow,
    clean_environment,
    interpreter,
    last_words,
)
from parasol_lab.benchmarks.peers.logarithm import with_logarithm
from parasol_lab.benchmarks.peers.problem import Split, Stage, write_problem
from parasol_lab.benchmarks.peers.registry import HERE, OWN, Peer, read_peers

_HARNESS = HERE / "scripts" / "harness.py"
_REFERENCE = HERE / "scripts" / "reference.py"


def measure_peers(
    peers: Sequence[Peer] | None = None,
    *,
    cache: Path,
    split: Split | None = None,
    limit: float = 1800.0,
    again: bool = False,
    known: bool = False,
    progress: Stage,
) -> Facts:
    """A row for each peer and number of full solves; a peer that fails has one line that says why, and the others go on.

    `limit` is the seconds that one row may take; seeds that were finished by then are kept and make the row, and the next run
    goes on with the others. `again` measures what is already known, `known` nothing that is not; what is then missing is named
    under "left_out".
    """
    peers, split = read_peers() if peers is None else list(peers), split or Split()
    name = "quick" if split == Split.quick() else "helmholtz"
    data = cache / "data" / name
    key = write_problem(data, split, progress)
    rows: list[Facts] = []
    left_out: list[str] = []
    for peer in peers:
        for n in (None,) if peer.kind == "solve" else split.train:
            name = peer.name if n is None else f"{peer.name}, {n} solves"
            progress(name)
            folder = with_logarithm(data, key) if peer.logarithm else data
            asked = _request(peer, n, folder)
            files = _files(peer, asked, cache, key + " log" * peer.logarithm)
            if known and not any(file.exists() for file in files.values()):
                left_out.append(name)
            else:
                rows.append(_row(peer, n, asked, files, cache, 0.0 if known else limit, again))
    facts = json.loads((data / "problem.json").read_text())
    out: Facts = {
        "parasol": __version__,
        "split": {**facts, "train": list(split.train)},
        "rows": rows,
        "left_out": left_out,
    }
    reference = data / "reference.json"
    return {**out, "reference": json.loads(reference.read_text())} if reference.exists() else out


def _request(peer: Peer, n: int | None, data: Path) -> Facts:
    """What the harness is asked for."""
    asked = {"script": str(peer.script), "data": str(data), "n_train": n, "kind": peer.kind}
    return asked | {"options": dict(peer.options), "seeds": list(range(peer.seeds))}


def _row(
    peer: Peer, n: int | None, request: Facts, files: dict[int, Path], cache: Path, limit: float, again: bool
) -> Facts:
    row: Facts = {
        "peer": peer.name,
        "kind": peer.kind,
        "n_solves": n,
        "lines": peer.lines,
        "bound_kind": peer.bound,
        "source": peer.source,
        "versions": _versions(peer),
    }
    data = Path(request["data"])
    end = time.monotonic() + limit
    runs: list[Facts] = []
    for seed, file in files.items():
        try:
            if again or not file.exists():
                left = end - time.monotonic()
                if limit == 0 or (runs and left <= 0):
                    continue
                if peer.kind == "solve" and not (data / "reference.npy").exists():
                    _reference(data, cache, limit, quick=data.name == "quick")
                result = run_peer(peer, request | {"seeds": [seed]}, cache, left)
                file.parent.mkdir(parents=True, exist_ok=True)
                publish(file, lambda path, result=result: path.write_text(json.dumps(result)))
        except PeerTooSlow:
            if not runs:
                return {**row, "failed": f"took more than {limit:.0f} s. Give it more with --limit."}
            continue
        except PeerFailed as failed:
            return {**row, "failed": str(failed)}
        result = json.loads(file.read_text())
        runs += result.pop("runs")
        row |= result
    return {**row, "n_seeds": len(files), "runs": runs}


def _files(peer: Peer, request: Facts, cache: Path, data_key: str) -> dict[int, Path]:
    """Where the result of each seed is kept."""
    return {
        seed: cache / "results" / f"{_key(peer, request | {'seeds': [seed]}, data_key)}.json"
        for seed in request["seeds"]
    }


def run_peer(peer: Peer, request: Facts, cache: Path, limit: float) -> Facts:
    """What the harness measures of a peer, in the peer's environment; its complaints as a `PeerFailed` of one line."""
    if peer.requirements is None:
        python, environment = (
            Path(sys.executable),
            clean_environment(PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
        )
    else:
        python, environment = interpreter(peer.requirements, cache), clean_environment()
    return _run([str(python), str(_HARNESS)], request, environment, limit)


def _reference(data: Path, cache: Path, limit: float, *, quick: bool) -> None:
    """Solutions of high degree on a fine mesh, that solvers are compared with; scikit-fem's, as nothing of parasol is in them."""
    peer = next(peer for peer in read_peers() if peer.script.stem == "scikit_fem")
    assert peer.requirements is not None
    request = {"data": str(data), "refinements": 3 if quick else 6}
    try:
        command = [str(interpreter(peer.requirements, cache)), str(_REFERENCE)]
        facts = _run(command, request, clean_environment(), limit)
    except PeerFailed as failed:
        raise PeerFailed(f"there is nothing to compare with, since scikit-fem {failed}") from None
    publish(data / "reference.json", lambda path: path.write_text(json.dumps(facts)))


def _run(command: list[str], request: Facts, environment: dict[str, str], limit: float) -> Facts:
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder, "request.json"), Path(folder, "answer.json")
        asked.write_text(json.dumps(request))
        try:
            run = subprocess.run(
                [*command, str(asked), str(answer)],
                capture_output=True,
                text=True,
                timeout=limit,
                env=environment,
                cwd=folder,
            )
        except subprocess.TimeoutExpired:
            raise PeerTooSlow(f"took more than {limit:.0f} s. Give it more with --limit.") from None
        if run.returncode or not answer.exists():
            raise PeerFailed(f"failed: {last_words(run.stderr)}")
        return json.loads(answer.read_text())


def _key(peer: Peer, request: Facts, data_key: str) -> str:
    """Of everything that can change a result: script, harness, options, seeds, data and versions; paths do not count."""
    asked = {name: value for name, value in request.items() if name not in ("script", "data")}
    versions = peer.requirements.read_text() if peer.requirements is not None else __version__
    parts: list[Any] = [peer.script.read_text(), _HARNESS.read_text(), asked, versions, data_key]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]


def _versions(peer: Peer) -> str:
    """The package itself, as its requirements pin it in their first line."""
    if peer.environment == OWN or peer.requirements is None:
        return f"parasol {__version__}"
    return peer.requirements.read_text(encoding="utf-8").splitlines()[0].replace("==", " ")


def _drawn(facts: Facts) -> Facts:
    """The full solves behind the rows, by their values: the file that drew them may read otherwise by now."""
    return {name: value for name, value in facts["split"].items() if name != "asked"}


def joined(before: Facts, facts: Facts) -> Facts:
    """What an earlier run measured, with the rows of this one in place of its own, in the order of `peers.toml`."""
    if _drawn(before) != _drawn(facts):
        raise InputError("--add-to has rows of other full solves. Measure all peers again.")
    rows = {(row["peer"], row["n_solves"]): row for row in (*before["rows"], *facts["rows"])}
    order = [peer.name for peer in read_peers()]
    places = {name: order.index(name) if name in order else len(order) for name, _ in rows}
    names = {name if n is None else f"{name}, {n} solves" for name, n in rows}
    return {
        **before,
        **{name: facts[name] for name in ("machine", "parasol", "reference") if name in facts},
        "rows": sorted(rows.values(), key=lambda row: (places[row["peer"]], row["n_solves"] or 0)),
        "left_out": [name for name in before.get("left_out", ()) if name not in names],
    }


def failures(facts: Facts) -> list[str]:
    """One line for each peer that did not run, once for all of its rows."""
    return list(dict.fromkeys(f"{row['peer']}: {row['failed']}" for row in facts["rows"] if "failed" in row))


def read_facts(path: Path) -> Facts:
    """What an earlier run wrote with --json."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(
            f"cannot read {str(path)!r}: {error}. Give a file that parasol bench peers --json wrote."
        ) from None
    if not isinstance(facts, dict) or not {"rows", "split", "parasol"} <= facts.keys():
        raise FileError(f"{str(path)!r} holds no peers. Give a file that parasol bench peers --json wrote.")
    return facts
