#!/usr/bin/env python3
"""Measures the role engine against others, and against the floor, on one server in one run.

    bench/roles/bench.py --ours target/release/stanchion [--rival 0.15.0=/path/to/pgroles] [--schemas 100,1000]

Each case is a database with N schemas of 10 tables and 1 sequence (or none: "empty"), and a manifest that binds two
profiles to each schema. Measured are wall time, peak memory and round trips of: the first diff, apply, the diff after
it, an apply with nothing to do, and generate; then diff and apply again behind a proxy that delays each round trip.
The floor is the same plan, its GRANTs merged, sent by psql as one message.

Rivals are installed by the user, outside of the project:

    cargo install pgroles-cli@0.15.0 --root ~/.cache/stanchion/rival/0.15.0
"""

import argparse
import asyncio
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROFILES = """\
default_owner: bench_owner
profiles:
  editor:
    grants:
    - {privileges: [USAGE], object: {type: schema}}
    - {privileges: [SELECT, INSERT, UPDATE, DELETE], object: {type: table, name: "*"}}
    - {privileges: [USAGE], object: {type: sequence, name: "*"}}
    default_privileges:
    - {privileges: [SELECT, INSERT, UPDATE, DELETE], on_type: table}
    - {privileges: [USAGE], on_type: sequence}
  viewer:
    grants:
    - {privileges: [USAGE], object: {type: schema}}
    - {privileges: [SELECT], object: {type: table, name: "*"}}
    default_privileges:
    - {privileges: [SELECT], on_type: table}
schemas:
"""


def manifest(schemas):
    return PROFILES + "".join(f"- {{name: s{n}, profiles: [editor, viewer]}}\n" for n in range(schemas))


class Server:
    """A PostgreSQL server of the bench's own."""

    def __init__(self, bindir, folder):
        self.bin = Path(bindir)
        self.data = folder / "data"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        # PostgreSQL refuses to run as root.
        self.drop = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        if self.drop:
            shutil.chown(folder, "postgres", "postgres")
        run = lambda *command: subprocess.run([*self.drop, *command], check=True, stdout=subprocess.DEVNULL)
        run(self.bin / "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "--no-sync")
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_locks_per_transaction=1024 -c fsync=off"
        run(self.bin / "pg_ctl", "-D", self.data, "-w", "-l", folder / "log", "-o", options, "start")

    def stop(self):
        command = [*self.drop, self.bin / "pg_ctl", "-D", self.data, "-m", "immediate", "stop"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def url(self, database, port=None):
        # With a password, because pgroles insists on one; the server does not ask for it.
        return f"postgres://postgres:none@127.0.0.1:{port or self.port}/{database}"

    def psql(self, database, sql=None, file=None):
        source = ["-f", str(file)] if file else ["-c", sql]
        command = [self.bin / "psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-d", self.url(database), *source]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def fresh(self, template):
        """A new copy of the case, without the roles that the last run made."""
        self.psql("postgres", "DROP DATABASE IF EXISTS bench WITH (FORCE)")
        self.psql("postgres", r"""DO $$ DECLARE r text; BEGIN
            FOR r IN SELECT rolname FROM pg_roles WHERE rolname ~ '^s\d+-(editor|viewer)$' LOOP
            EXECUTE format('DROP ROLE %I', r); END LOOP; END $$""")
        self.psql("postgres", f"CREATE DATABASE bench TEMPLATE {template}")
        self.psql("bench", "VACUUM ANALYZE")
        self.psql("bench", "CHECKPOINT")


def populate(server, name, schemas, tables):
    server.psql("postgres", f"CREATE DATABASE {name}")
    for start in range(0, schemas, 100):
        server.psql(name, f"""DO $$ BEGIN FOR s IN {start}..{min(start + 100, schemas) - 1} LOOP
            EXECUTE format('CREATE SCHEMA s%s AUTHORIZATION bench_owner', s);
            IF {tables} > 0 THEN
              FOR t IN 1..{tables} LOOP EXECUTE format('CREATE TABLE s%s.t%s (i int)', s, t); END LOOP;
              EXECUTE format('CREATE SEQUENCE s%s.q', s);
            END IF; END LOOP; END $$""")


class Proxy(threading.Thread):
    """Forwards to the server, delays what comes back, and counts how often the client waits."""

    def __init__(self, port, delay):
        super().__init__(daemon=True)
        self.target, self.delay, self.round_trips = port, delay, 0
        self.ready = threading.Event()
        self.start()
        self.ready.wait()

    def run(self):
        asyncio.run(self.serve())

    async def serve(self):
        server = await asyncio.start_server(self.handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        async with server:
            await server.serve_forever()

    async def handle(self, reader, writer):
        upstream, downstream = await asyncio.open_connection("127.0.0.1", self.target)
        state = {"answered": True}

        async def pump(source, sink, from_client):
            # Delays every chunk by the same time without holding back the ones behind it.
            queue = asyncio.Queue()

            async def deliver():
                while (item := await queue.get()) is not None:
                    due, chunk = item
                    await asyncio.sleep(max(0, due - time.monotonic()))
                    sink.write(chunk)
                    await sink.drain()
                sink.close()

            delivery = asyncio.create_task(deliver())
            try:
                while chunk := await source.read(1 << 16):
                    if from_client and state["answered"]:
                        self.round_trips += 1
                    state["answered"] = not from_client
                    await queue.put((time.monotonic() + self.delay / 2, chunk))
            except ConnectionError:
                pass
            await queue.put(None)
            await asyncio.gather(delivery, return_exceptions=True)

        await asyncio.gather(pump(reader, downstream, True), pump(upstream, writer, False))


def measure(command, expect=(0,)):
    """Seconds, peak memory in MB, and what was printed."""
    with tempfile.TemporaryFile() as out:
        environment = {**os.environ, "RUST_LOG": "error"}
        begun = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=environment)
        # wait4() would report the memory of this interpreter, which the child was for a moment. The kernel's own
        # high-water mark of the child is right, and has to be read while it lives.
        peak, done = 0, threading.Event()

        def watch():
            nonlocal peak
            while not done.wait(0.002):
                try:
                    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{child.pid}/status").read_text())
                except OSError:
                    return
                peak = max(peak, int(found[1]) if found else 0)

        watcher = threading.Thread(target=watch)
        watcher.start()
        child.wait()
        seconds = time.perf_counter() - begun
        done.set()
        watcher.join()
        if child.returncode not in expect:
            sys.exit(f"{' '.join(map(str, command))}: exit code {child.returncode}")
        out.seek(0)
        return seconds, peak / 1024, out.read().decode()


def merged(sql):
    """The plan with its GRANTs on tables merged by privileges and role."""
    grants, rest = {}, []
    for line in sql.splitlines():
        found = re.fullmatch(r'GRANT (.*) ON TABLE (.*) TO (.*);', line)
        if found:
            grants.setdefault((found[1], found[3]), []).append(found[2])
        else:
            rest.append(line.rstrip(";"))
    at = next((i for i, line in enumerate(rest) if line.startswith("ALTER DEFAULT")), len(rest))
    rest[at:at] = [f"GRANT {p} ON TABLE {', '.join(tables)} TO {role}" for (p, role), tables in grants.items()]
    return ["BEGIN", *rest, "COMMIT"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="the stanchion binary")
    parser.add_argument("--rival", action="append", default=[], metavar="NAME=PATH", help="a pgroles binary")
    parser.add_argument("--schemas", default="100,1000", help="sizes, comma separated")
    parser.add_argument("--runs", type=int, default=3, help="runs of each step; the median is shown")
    parser.add_argument("--rtt", type=float, default=10, help="milliseconds of a round trip behind the proxy")
    parser.add_argument("--slow-rivals", action="store_true", help="measure rivals behind the proxy too (minutes)")
    parser.add_argument("--bindir", default="/usr/lib/postgresql/15/bin", help="PostgreSQL's programs")
    args = parser.parse_args()

    folder = Path(tempfile.mkdtemp(prefix="stanchion-bench-"))
    folder.chmod(0o755)
    # A link called pgroles makes our binary speak as the others do.
    ours = folder / "pgroles"
    ours.symlink_to(Path(args.ours).resolve())
    programs = [("stanchion", ours), *(rival.split("=", 1) for rival in args.rival)]
    server = Server(args.bindir, folder)
    try:
        server.psql("postgres", "CREATE ROLE bench_owner")
        print("| case | program | step | median s | peak MB | round trips |\n|---|---|---|---:|---:|---:|", flush=True)
        for count in map(int, args.schemas.split(",")):
            file = folder / f"{count}.yaml"
            file.write_text(manifest(count))
            for tables in (0, 10):
                bench_case(args, server, folder, programs, count, tables, file)
    finally:
        server.stop()
        shutil.rmtree(folder)


def bench_case(args, server, folder, programs, count, tables, file):
    case = f"{count} schemas, {tables} tables each"
    template = f"case_{count}_{tables}"
    populate(server, template, count, tables)

    def row(program, step, samples, trips=""):
        seconds = statistics.median(sample[0] for sample in samples)
        memory = max(sample[1] for sample in samples)
        print(f"| {case} | {program} | {step} | {seconds:.3f} | {memory:.1f} | {trips} |", flush=True)

    def steps(program, binary, port, runs, label=""):
        results, proxy = {}, None
        for _ in range(runs):
            server.fresh(template)
            counts = {}
            for step, command, expect in (
                ("diff", ["diff", "-f", file], (0, 2)),
                ("apply", ["apply", "-f", file], (0,)),
                ("diff converged", ["diff", "-f", file], (0, 2)),
                ("apply no-op", ["apply", "-f", file], (0,)),
                ("generate", ["generate"], (0,)),
            ):
                proxy = Proxy(server.port, port) if port is not None else None
                url = server.url("bench", proxy and proxy.port)
                results.setdefault(step, []).append(measure([binary, *command, "--database-url", url], expect))
                if proxy:
                    counts[step] = proxy.round_trips
                if port is not None and step == "apply" and label:
                    break
        for step, samples in results.items():
            row(program, step + label, samples, counts.get(step, ""))
        return results

    plan = None
    for program, binary in programs:
        results = steps(program, binary, None, args.runs)
        plan = plan or results["diff"][0][2]
    floor = folder / "floor.sql"
    floor.write_text(" \\;\n".join(merged(plan)) + ";\n")
    samples = []
    for _ in range(args.runs):
        server.fresh(template)
        psql = [server.bin / "psql", "-X", "-q", "-d", server.url("bench"), "-v", "ON_ERROR_STOP=1", "-f", floor]
        samples.append(measure(psql))
    row("floor (psql)", "apply", samples)
    if tables:
        for program, binary in programs if args.slow_rivals else programs[:1]:
            steps(program, binary, args.rtt / 1000, 1, f", {args.rtt:g} ms round trip")


if __name__ == "__main__":
    main()
