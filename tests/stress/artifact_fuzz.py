"""Thousands of damaged and hostile surrogate files: each is refused with a reason or loads and answers, at once.

`PYTHONPATH=tests python tests/stress/artifact_fuzz.py 10000` tries that many, a few thousand a minute, and fails on the first surprise.
"""

import hashlib
import io
import json
import sys
import tempfile
import time
import tracemalloc
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

import parasol as ps
from hidden_layer import HiddenLayer

MOST_SECONDS, MOST_BYTES = 20.0, 200e6  # of one file; the files are smaller than 0.3 MB
TEXTS = ("", "x" * 3000, "9**9**9**9", "(" * 500 + "a" + ")" * 500, "-" * 5000 + "a", "a" + "*a" * 5000, "9" * 10000)
TEXTS = (*TEXTS, "__import__('os')", "a.b", "a if a else k", "lambda: 1", "'a'*10**9", "[a]*10", "a/0", "1e999", "\x00")
NUMBERS = (None, True, -1, 0, 1, 2, 7, 1e-300, 1e308, -1e308, 10**30, -(10**18), 2**31, 2**63, 0.5)
KINDS = ("Surrogate", "Basis", "Network", "Formula", "Frame", "Scheme", "PHS", "os.system", "Readings", "Certificate")


def surrogates():
    """Three kinds of content: a certified reduced model, functions as parameters, a network with a conformal bound."""
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=150))
    basis = ps.pod(ps.solve_many(model, ps.sample(model, 10)), n_modes=4)
    yield ps.fit(ps.reduce(model, basis, n_anchors=4), "polynomial", n_labels=60)
    problem = ps.load_problem("schrodinger")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=250))
    basis = ps.pod(ps.solve_many(model, model.sample(8)), n_modes=3)
    yield ps.fit(ps.reduce(model, basis, n_anchors=3), "linear", n_labels=40)
    mus = np.random.default_rng(0).random((60, 2))
    solutions = np.sin(mus @ np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]))
    yield ps.fit_snapshots(mus, solutions, HiddenLayer(), quantities={"sum": np.ones(3)}, n_modes=2)


def entries(data):
    """The entries of a ZIP by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(parts, **options):
    """A ZIP of (name, content) pairs, names repeated where they are."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", **options) as file:
        warnings.simplefilter("ignore")
        for name, content in parts:
            file.writestr(name, content)
    return buffer.getvalue()


def rehashed(parts, manifest):
    """The file with hashes that fit its arrays: what somebody would write who knows the format."""
    manifest["sha256"] = {name: hashlib.sha256(parts[name]).hexdigest() for name in parts if name != "manifest.json"}
    return packed({**parts, "manifest.json": json.dumps(manifest)}.items())


def flipped(data, rng):
    out = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        out[rng.integers(len(out))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def cut(data, rng):
    return data[: rng.integers(len(data))] if rng.random() < 0.7 else data[rng.integers(len(data)) :]


def spliced(data, rng):
    a, b, n = rng.integers(len(data)), rng.integers(len(data)), int(rng.integers(1, 4000))
    return data[:a] + data[b : b + n] + (data[a:] if rng.random() < 0.5 else data[a + n :])


def directory(data, rng):
    """Wrong numbers in the directory at the end: sizes, offsets, counts, methods, flags."""
    out, start = bytearray(data), data.rindex(b"PK\x01\x02")
    place = int(rng.integers(start, len(out) - 4))
    out[place : place + 4] = int(rng.choice([0, 1, 0xFFFFFFFF, 0x7FFFFFFF, len(data)])).to_bytes(4, "little")
    return bytes(out)


def rezipped(data, rng):
    parts = list(entries(data).items())
    name, content = parts[rng.integers(len(parts))]
    choice = rng.integers(6)
    if choice == 0:  # twice the same name
        parts.append((name, content if rng.random() < 0.5 else b"other"))
    elif choice == 1:
        parts.append((str(rng.choice(["../../evil", "/etc/passwd", "C:\\x", "arrays/../a", "a" * 300, "ä"])), b"x"))
    elif choice == 2:
        parts.remove((name, content))
    elif choice == 3:
        parts.append(("arrays/0001.npy" if rng.random() < 0.5 else "bomb", bytes(3 * 10**6)))
        return packed(parts, compression=zipfile.ZIP_DEFLATED)
    elif choice == 4:
        parts = [(n, b"" if n == name else c) for n, c in parts]
    else:
        rng.shuffle(parts)
    return packed(parts)


def hostile_value(rng, tree):
    choice = rng.integers(9)
    if choice == 0:
        return TEXTS[rng.integers(len(TEXTS))]
    if choice == 1:
        return [[], {}, [None] * 1000, {"dict": {}}, {"kind": "Formula"}][rng.integers(5)]
    if choice == 2:
        return {"array": int(rng.integers(-1, 80))}
    if choice == 3:
        return {"float": str(rng.choice(["nan", "inf", "-inf", "1", "x"]))}
    if choice == 4:
        return {
            "csr": [{"array": int(i)} for i in rng.integers(0, 20, 3)],
            "shape": [int(n) for n in rng.integers(0, 99, 2)],
        }
    if choice == 5:
        return {"kind": str(rng.choice(KINDS)), "fields": {}}
    if choice == 6:
        return json.loads(json.dumps(random_place(json.loads(json.dumps(tree)), rng)[2]))
    if choice == 7:
        deep = []
        for _ in range(int(rng.choice([50, 900, 20000]))):
            deep = [deep]
        return deep
    return NUMBERS[rng.integers(len(NUMBERS))]


def random_place(tree, rng):
    """A container somewhere in the tree, a key of it, and what is there."""
    while True:
        key = rng.choice(list(tree)) if isinstance(tree, dict) else int(rng.integers(len(tree)))
        key = str(key) if isinstance(tree, dict) else key
        inner = tree[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.15:
            return tree, key, inner
        tree = inner


def reworded(data, rng):
    """The manifest changed in one or two places, the hashes made to fit."""
    parts = entries(data)
    manifest = json.loads(parts["manifest.json"])
    try:
        for _ in range(rng.integers(1, 3)):
            where = manifest if rng.random() < 0.1 else manifest.get("content")
            if not isinstance(where, dict | list) or not where:  # the first change has hit the root
                where = manifest
            holder, key, old = random_place(where, rng)
            if isinstance(holder, dict) and rng.random() < 0.15:
                del holder[key]
            elif isinstance(old, int | float) and not isinstance(old, bool) and rng.random() < 0.5:
                holder[key] = old * float(rng.choice([-1, 0, 1e6, 1e300])) if rng.random() < 0.5 else old + 1
            else:
                holder[key] = hostile_value(rng, manifest)
        return rehashed(parts, manifest)
    except RecursionError:  # json cannot write what it would not read; by hand one can
        text = parts["manifest.json"].replace(b'"kind"', b'"deep":' + b"[" * 20000 + b"]" * 20000 + b',"kind"', 1)
        return packed({**parts, "manifest.json": text}.items())


def changed_array(array, rng):
    out = np.array(array)
    choice = rng.integers(8)
    if choice == 0 and out.size and out.dtype.kind == "f":
        out.flat[rng.integers(out.size)] = rng.choice([np.nan, np.inf, 1e308, -1e308, 0.0, -1.0])
    elif choice == 1 and out.size and out.dtype.kind == "i":
        out.flat[rng.integers(out.size)] = rng.choice([-1, 2**31 - 1, -(2**31), 10**6])
    elif choice == 2:
        out = out[: rng.integers(len(out) + 1)] if out.ndim else out
    elif choice == 3:
        out = np.ascontiguousarray(out.T) if rng.random() < 0.5 else out.reshape(-1)
    elif choice == 4:
        out = out.astype(rng.choice(["f4", "f8", "i8", "?", "U3", "c16", "f2"]))
    elif choice == 5:
        out = np.concatenate([out, out]) if out.ndim else out
    elif choice == 6:
        out = -out if out.dtype.kind in "if" else ~out
    else:
        out = np.zeros_like(out)
    return out


def rearranged(data, rng):
    """One array changed, or swapped with another, the hashes made to fit."""
    parts = entries(data)
    names = [name for name in parts if name != "manifest.json"]
    name, other = (names[i] for i in rng.integers(len(names), size=2))
    buffer = io.BytesIO()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.save(buffer, changed_array(np.load(io.BytesIO(parts[name])), rng))
    content = buffer.getvalue()
    if rng.random() < 0.2:
        content = parts[other]
    elif rng.random() < 0.3:  # a header that promises more, or fewer, or other numbers
        shape = str(rng.choice(["(1000000000000,)", "(0, 4000000000)", "(-2, -3)", "(99,)", "()", "(2**40,)", "None"]))
        text = f"{{'descr': '<f8', 'fortran_order': {rng.random() < 0.5}, 'shape': {shape}, }}".ljust(117) + "\n"
        content = content[:8] + len(text).to_bytes(2, "little") + text.encode() + content[128:]
    return rehashed({**parts, name: content}, json.loads(parts["manifest.json"]))


MUTATIONS = (flipped, cut, spliced, directory, rezipped, reworded, reworded, reworded, rearranged, rearranged)


def attempt(path):
    """What became of a file: "refused" with a reason, or "loaded" and all questions answered or refused."""
    try:
        surrogate = ps.load(path)
    except ps.ParasolError as error:
        return "refused" if "\n" not in str(error) else "refused in several lines"
    mu = [*[p.middle for p in surrogate.parameters.scalars]]
    mu += [0.1] * (surrogate.n_parameters - len(mu))
    for mus in (mu, [mu, mu]):
        for ask in (
            lambda mus: surrogate(mus).values,
            lambda mus: surrogate(mus).bound,
            lambda mus: surrogate(mus).quantities,
            lambda mus: surrogate(mus).quantity_bounds,
            lambda mus: surrogate(mus, dtype=np.float32).values,
            surrogate.gradient,
        ):
            try:
                ask(mus)
            except ps.ParasolError:
                continue
    return "loaded"


def fuzz(n_files, seed=0, report=None):
    """Try that many files; returns how many of each mutation were refused and loaded."""
    rng = np.random.default_rng(seed)
    counts = Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        originals = [ps.save(s, Path(folder) / f"{i}.parasol").read_bytes() for i, s in enumerate(surrogates())]
        for original in originals:  # what is not damaged loads, and what tests import is imported
            path = Path(folder) / "good"
            path.write_bytes(original)
            assert attempt(path) == "loaded"
        tracemalloc.start()
        path = Path(folder) / "bad"
        for i in range(n_files):
            mutation = MUTATIONS[i % len(MUTATIONS)]
            data = mutation(originals[(i // len(MUTATIONS)) % len(originals)], rng)
            path.write_bytes(data)
            tracemalloc.reset_peak()
            before, start = tracemalloc.get_traced_memory()[0], time.perf_counter()
            try:
                fate = attempt(path)
            except BaseException:
                kept = Path(tempfile.gettempdir()) / f"parasol-fuzz-{seed}-{i}.parasol"
                kept.write_bytes(data)
                print(f"file {i} ({mutation.__name__}) surprises; kept as {kept}", file=sys.stderr)
                raise
            seconds, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1] - before
            assert seconds < MOST_SECONDS, f"file {i} ({mutation.__name__}) took {seconds:.1f} s"
            assert peak < MOST_BYTES, f"file {i} ({mutation.__name__}) took {peak / 1e6:.0f} MB"
            counts[mutation.__name__, fate] += 1
            counts["slowest ms"] = max(counts["slowest ms"], int(1e3 * seconds))
            counts["largest kB"] = max(counts["largest kB"], int(peak / 1e3))
            if report is not None and i % 500 == 499:
                report(i + 1)
        tracemalloc.stop()
    return counts


if __name__ == "__main__":
    found = fuzz(
        int(sys.argv[1]), seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0, report=lambda n: print(n, flush=True)
    )
    for key, count in sorted(found.items(), key=str):
        print(key if isinstance(key, str) else " ".join(key), count)
