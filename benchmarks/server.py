"""`parasol serve` under load on this machine: requests a second, latencies, and memory over many requests.

    python benchmarks/server.py --requests 100000 --json server.json

The server is a process of its own; the client is one more, with as many open connections as said. Latencies are what
the client sees. The bare route /health shows what HTTP alone costs. "server CPU" is the
server's processor time for each request, which other work on the machine changes least.

At last the server is besieged: by 1000 connections that send their heads a byte a second, and by clients that take
answers of 48 MB one after the other, while /health is asked; beside it stands /health of a second server that is left
in peace on the same machine, asked in turn with the first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import parasol as ps
from parasol.delivery.server.formats import write_npy

POINTS = [[0.1 * i, -0.05 * i] for i in range(5)]


def build(path: Path, quick: bool) -> None:
    """A Helmholtz surrogate of the paper's size, or a small one."""
    problem = ps.load_problem("helmholtz")
    n_nodes, n_snapshots, n_modes = (250, 20, 8) if quick else (1036, 60, 17)
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n_nodes))
    reduced = ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, n_snapshots)), n_modes=n_modes))
    ps.save(ps.fit(reduced, "polynomial", n_labels=1000), path)


@contextmanager
def server(path: Path):
    """A running server: its port and its process."""
    places = path.with_suffix(".json")
    words = [sys.executable, "-m", "parasol", "serve", str(path), "--port", "0", "--json", str(places)]
    words += ["--max-batch", "30000", "--max-response", "80"]  # of small fields many are needed for 48 MB
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()  # type: ignore[union-attr]
            yield int(json.loads(places.read_text())["address"].rpartition(":")[2]), process.pid
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


def request(
    path: str, body: bytes | None = None, *, accept: str = "application/json", form: str = "application/json"
) -> bytes:
    """The bytes of a request."""
    verb = "GET" if body is None else "POST"
    head = f"{verb} {path} HTTP/1.1\r\nHost: here\r\nAccept: {accept}\r\nContent-Type: {form}\r\n"
    return f"{head}Content-Length: {len(body or b'')}\r\n\r\n".encode() + (body or b"")


def cases(rng: np.random.Generator) -> dict[str, tuple[bytes, int]]:
    """Requests by name, and how many parameters each asks for."""
    mus = lambda n: np.column_stack([rng.uniform(0.1, 4, n), rng.uniform(0, 2, n)])  # noqa: E731
    say = lambda **body: json.dumps(body).encode()  # noqa: E731
    one, npy = mus(1)[0].tolist(), "application/x-npy"
    evaluate = say(name="coefficients", input=[one])
    return {
        "health": (request("/health"), 0),
        "field, JSON": (request("/v1/predict", say(mus=one)), 1),
        "field, npy": (request("/v1/predict", say(mus=one), accept=npy), 1),
        "5 points": (request("/v1/predict", say(mus=one, points=POINTS)), 1),
        "field and bound": (request("/v1/predict", say(mus=one, bounds=True), accept="*/*"), 1),
        "gradient, 5 points": (request("/v1/gradient", say(mus=one, points=POINTS)), 1),
        "UM-Bridge Evaluate": (request("/Evaluate", evaluate), 1),
        "1000 fields, npy": (request("/v1/predict", write_npy(mus(1000)), accept=npy, form=npy), 1000),
        "refused": (request("/v1/predict", say(mus=[99.0, 1.0])), 0),
    }


async def ask(reader, writer, message: bytes) -> int:
    """Send a request on an open connection, read its answer, return the status."""
    writer.write(message)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head.split(b" ", 2)[1])


async def drive(port: int, messages: list[bytes], n_requests: int, n_connections: int) -> tuple[np.ndarray, float, int]:
    """Send `n_requests` of the messages in turn: latencies in seconds, seconds in all, and how many were not 200 or 422."""
    latencies, failures = np.empty(n_requests), 0
    todo = iter(range(n_requests))

    async def connection() -> None:
        nonlocal failures
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26)
        for i in todo:
            start = time.perf_counter()
            status = await ask(reader, writer, messages[i % len(messages)])
            latencies[i] = time.perf_counter() - start
            failures += status not in (200, 422)
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(connection() for _ in range(n_connections)))
    return latencies, time.perf_counter() - start, failures


def resident(pid: int, kind: str = "VmRSS") -> float:
    """MiB of memory a process holds, or with VmHWM the most it ever held."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(kind):
            return int(line.split()[1]) / 1024
    return float("nan")


def processor(pid: int) -> float:
    """Seconds of processor time a process has used: what a busy machine does not change much."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def hold(port: int, n: int) -> None:
    """Keep `n` connections open whose heads arrive a byte a second; those that are closed are opened again."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (n + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    held: list[socket.socket] = []
    while True:
        for sock in list(held):
            try:
                sock.send(b"x")
            except OSError:
                held.remove(sock)
        while len(held) < n:
            held.append(socket.create_connection(("127.0.0.1", port)))
            held[-1].send(b"GET /health HTTP/1.1\r\nx")
        time.sleep(1)


def take(port: int, messages: list[bytes], n: int, sizes) -> None:
    """Ask for `n` large answers in turn, each on a connection of its own, and put down their sizes."""
    for i in range(n):
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(messages[i % len(messages)].replace(b"Accept:", b"Connection: close\r\nAccept:", 1))
            size, buffer = 0, bytearray(2**18)
            while got := sock.recv_into(buffer):
                size += got
        sizes.put(size)


def watch_health(ports: list[int], go_on) -> np.ndarray:
    """Milliseconds that /health takes at each port in turn, every tenth time on a new connection, while `go_on(n)`."""
    out: list[list[float]] = []
    socks: list[socket.socket] = []
    while go_on(len(out)):
        if len(out) % 10 == 0:
            socks.clear()
        row = []
        for i, port in enumerate(ports):
            start = time.perf_counter()
            if len(socks) == i:
                socks.append(socket.create_connection(("127.0.0.1", port)))
            socks[i].sendall(request("/health"))
            answer = b""
            while not answer.endswith(b"}"):
                answer += socks[i].recv(4096)
            row.append(1e3 * (time.perf_counter() - start))
        out.append(row)
        time.sleep(0.005)
    return np.array(out)


def siege(port: int, pid: int, peaceful: int, n_values: int, n_large: int, n_held: int = 1000) -> dict:
    """How long /health takes, and what memory the server holds, with many half-open connections and large answers.

    `peaceful` is the port of the other server.
    """
    npy, rng = "application/x-npy", np.random.default_rng(1)
    mus = lambda n: write_npy(np.column_stack([rng.uniform(0.1, 4, n), rng.uniform(0, 2, n)]))  # noqa: E731
    large = [
        request("/v1/predict", mus(int(48e6 / (16.45 * n_values))), form=npy),
        request("/v1/predict", mus(48_000_000 // (8 * n_values)), accept=npy, form=npy),
    ]
    fork = multiprocessing.get_context("fork")  # clients that start with imports would measure these
    sizes = fork.SimpleQueue()
    holder = fork.Process(target=hold, args=(port, n_held), daemon=True)
    takers = [fork.Process(target=take, args=(port, large[::step], n_large // 2, sizes)) for step in (1, -1)]
    watch_health([port, peaceful], lambda n: n < 50)
    base = resident(pid)
    holder.start()
    time.sleep(3)
    start = time.perf_counter()
    for taker in takers:
        taker.start()
    times = watch_health([port, peaceful], lambda n: n < 20 or any(taker.is_alive() for taker in takers))
    seconds = time.perf_counter() - start
    holder.terminate()
    marks = lambda times: dict(zip(("p50", "p99", "max"), np.percentile(times, [50, 99, 100]).tolist(), strict=True))  # noqa: E731
    facts = {"answers_mb": sorted({round(1e-6 * sizes.get(), 1) for _ in range(2 * (n_large // 2))})}
    facts |= {"seconds": seconds, "half_open": n_held, "n_large": 2 * (n_large // 2)}
    facts |= {"health_ms": marks(times[:, 0]), "in_peace_ms": marks(times[:, 1]), "n_health": len(times)}
    time.sleep(1)
    return facts | {"before_mib": base, "peak_mib": resident(pid, "VmHWM"), "after_mib": resident(pid)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=100_000, help="mixed requests while memory is watched")
    parser.add_argument("--large", type=int, default=20, help="answers of 48 MB while /health is watched")
    parser.add_argument("--quick", action="store_true", help="a small surrogate, and few requests of each kind")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.parasol"
        build(path, options.quick)
        with server(path) as (port, pid):
            known = cases(np.random.default_rng(0))
            for n_connections in (1, 8):
                for name, (message, n_parameters) in known.items():
                    n = (20 if options.quick else 1000) // (10 if n_parameters > 100 else 1) or 1
                    asyncio.run(drive(port, [message], max(1, n // 10), n_connections))  # the first ones warm up
                    used = processor(pid)
                    latencies, seconds, failures = asyncio.run(drive(port, [message], n, n_connections))
                    used = processor(pid) - used
                    if failures:
                        raise SystemExit(f"{name}: {failures} of {n} requests failed.")
                    marks = dict(
                        zip(
                            ("p50", "p95", "p99", "max"), 1e3 * np.percentile(latencies, [50, 95, 99, 100]), strict=True
                        )
                    )
                    rows.append(
                        {"case": name, "connections": n_connections, "rate": n / seconds}
                        | {"parameters": n_parameters * n / seconds, "cpu": 1e3 * used / n}
                        | {mark: float(value) for mark, value in marks.items()}
                    )
            mixed = [message for name, (message, n) in known.items() if n <= 1]
            asyncio.run(drive(port, mixed, min(5000, options.requests), 4))
            before, parts = resident(pid), []
            seconds, failures = 0.0, 0
            for share in np.diff(np.linspace(0, options.requests, 11).astype(int)):
                _, spent, failed = asyncio.run(drive(port, mixed, int(share), 4))
                seconds, failures = seconds + spent, failures + failed
                parts.append(resident(pid))
            with server(path) as (peaceful, _):
                besieged = siege(port, pid, peaceful, 250 if options.quick else 1036, options.large)
    load = {"requests": options.requests, "failures": failures, "rate": options.requests / seconds}
    load |= {"before_mib": before, "after_mib": parts, "grown_mib": parts[-1] - before}
    print(
        f"{'':22}{'open':>5}{'requests/s':>12}{'parameters/s':>14}{'p50':>9}{'p95':>9}{'p99':>9}{'max':>9}{'server CPU':>12} ms"
    )
    for r in rows:
        times = "".join(f"{r[mark]:9.2f}" for mark in ("p50", "p95", "p99", "max"))
        print(f"{r['case']:22}{r['connections']:5}{r['rate']:12.0f}{r['parameters']:14.0f}{times}{r['cpu']:12.2f}")
    print(f"{load['requests']} mixed requests, {load['rate']:.0f} a second, {load['failures']} failures: ", end="")
    print(f"{before:.1f} MiB before, {parts[-1]:.1f} MiB after, at most {max(parts):.1f} between")
    print("besieged:")
    for name, value in besieged.items():
        print(f"  {name:18}", {k: round(v, 2) for k, v in value.items()} if isinstance(value, dict) else value)
    if options.json:
        facts = {"machine": platform.machine(), "rows": rows, "load": load, "siege": besieged}
        options.json.write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
