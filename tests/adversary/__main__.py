"""Attack parasol: `python -m adversary [--family NAME] [--seed K | --seeds N] [--minutes M]`; exit status 1 if it fell."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import adversary.boundaries
import adversary.bounds
import adversary.equations
import adversary.paths
import adversary.solving
import adversary.stores
import adversary.theorem  # noqa: F401  each registers its families
from adversary.families import FAMILIES, Outcome, run


def main(arguments: list[str] | None = None) -> int:
    """Run the attacks, print each and a table of all."""
    parser = argparse.ArgumentParser(prog="python -m adversary", description=__doc__)
    parser.add_argument("--family", action="append", help="only this one; may be repeated; a prefix will do")
    parser.add_argument("--seed", type=int, help="this seed only")
    parser.add_argument("--seeds", type=int, default=1, help="so many seeds of each family, at least its listed cases")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes; without --seeds, go on until then")
    parser.add_argument("--list", action="store_true", help="name the families")
    given = parser.parse_args(arguments)
    names = [n for n in FAMILIES if not given.family or any(n == f or n.startswith(f) for f in given.family)]
    if not names:
        parser.error(f"no family is called {', '.join(given.family)}")
    if given.list:
        for name in names:
            doc = (FAMILIES[name].attack.__doc__ or "").splitlines()[0]
            print(f"{name:28} {FAMILIES[name].case:10} {doc}")
        return 0
    end = time.perf_counter() + 60 * (given.minutes or 1e9)
    outcomes: list[Outcome] = []
    for name, seed in _schedule(names, given):
        if time.perf_counter() > end:
            break
        outcomes.append(run(name, seed))
        _show(outcomes[-1])
    return _table(outcomes)


def _schedule(names, given):
    if given.seed is not None:
        yield from ((name, given.seed) for name in names)
        return
    most = given.seeds if not given.minutes or given.seeds > 1 else 10**6
    for seed in range(given.first, given.first + max(most, max(FAMILIES[n].n_cases for n in names))):
        yield from ((name, seed) for name in names if seed - given.first < max(most, FAMILIES[name].n_cases))


def _show(outcome: Outcome) -> None:
    mark = {"passed": "ok     ", "refused": "refused", "failed": "FAILED ", "open": "open   "}[outcome.verdict]
    print(f"{mark} {outcome.family} --seed {outcome.seed} ({outcome.seconds:.1f} s): {outcome.words[:300]}", flush=True)
    if outcome.verdict in ("failed", "open"):
        print(f"        {outcome.reproduction}", flush=True)


def _table(outcomes: list[Outcome]) -> int:
    counts = Counter((o.family, o.verdict) for o in outcomes)
    verdicts = ("passed", "refused", "open", "failed")
    print(f"\n{'family':30} {'case':10} " + " ".join(f"{v:>8}" for v in verdicts))
    for name in dict.fromkeys(o.family for o in outcomes):
        print(f"{name:30} {FAMILIES[name].case:10} " + " ".join(f"{counts[name, v] or '':>8}" for v in verdicts))
    total = Counter(o.verdict for o in outcomes)
    print(f"{'all':30} {'':10} " + " ".join(f"{total[v]:>8}" for v in verdicts))
    return int(total["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
