#!/usr/bin/env python3
"""Measures the role engine against pgroles, and against the floor, on one server in one run.

    make bench-roles                        everything, with what is installed; about seven minutes
    bench/roles/bench.py --ours BINARY --schemas 100 --runs 1

Each case is a database with N schemas of 10 tables and 1 sequence (or none: "empty"), and a manifest that binds two
profiles to each schema. Measured are wall time, peak memory, CPU of the program and of its sessions on the server: the
first diff, apply, the diff after it, an apply with nothing to do, and generate; then diff and apply behind a proxy that
delays and counts round trips. The floor is the same plan, its GRANTs merged, sent by psql as one message: no program
that makes these changes can be faster than the server.

Rivals are installed by the user, outside of the project, and found there:

    cargo install --locked pgroles-cli@0.15.0 --root ~/.cache/stanchion/rival/0.15.0
    cargo install --locked pgroles-cli@0.7.8 --root ~/.cache/stanchion/rival/0.7.8
"""

import argparse
import os
import re
import shutil
import tempfile
from pathlib import Path

import measure
from proxy import Proxy
from server import Server

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
STEPS = {
    "diff": (["diff"], (0, 2)),
    "apply": (["apply"], (0,)),
    "diff converged": (["diff"], (0, 2)),
    "apply no-op": (["apply"], (0,)),
    "generate": (["generate"], (0,)),
}
OURS, FLOOR = "stanchion", "floor (psql)"
# Rivals need minutes for more than this behind the proxy, and for more than that at all.
RIVALS_BEHIND_PROXY, RIVALS = 100, 1000


def manifest(schemas):
    return PROFILES + "".join(f"- {{name: s{n}, profiles: [editor, viewer]}}\n" for n in range(schemas))


def merged(sql):
    """The plan with its GRANTs on tables merged by privileges and role."""
    grants, rest = {}, []
    for line in sql.splitlines():
        found = re.fullmatch(r"GRANT (.*) ON TABLE (.*) TO (.*);", line)
        if found:
            grants.setdefault((found[1], found[3]), []).append(found[2])
        else:
            rest.append(line.rstrip(";"))
    at = next((i for i, line in enumerate(rest) if line.startswith("ALTER DEFAULT")), len(rest))
    rest[at:at] = [f"GRANT {p} ON TABLE {', '.join(tables)} TO {role}" for (p, role), tables in grants.items()]
    return ["BEGIN", *rest, "COMMIT"]


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        # A link called pgroles makes our binary speak as the others do.
        ours = folder / "pgroles"
        ours.symlink_to(Path(args.ours).resolve())
        self.rivals = dict(rival.split("=", 1) for rival in args.rival)
        self.programs = {OURS: ours, **self.rivals}
        self.server = Server(args.bindir, folder)
        self.results = {}

    def row(self, case, step, program, samples):
        sample = measure.median(samples)
        self.results[case, step, program] = sample
        trips = "" if sample.round_trips is None else sample.round_trips
        print(
            f"| {case} | {step} | {program} | {sample.seconds:.3f} | {sample.client:.2f} | {sample.server:.2f} "
            f"| {sample.memory:.1f} | {trips} |",
            flush=True,
        )

    def steps(self, binary, file, steps, port=None):
        for step in steps:
            words, expect = STEPS[step]
            files = [] if step == "generate" else ["-f", file]
            command = [binary, *words, *files, "--database-url", self.server.url("bench", port)]
            yield step, measure.run(self.server, command, expect)

    def case(self, schemas, tables):
        case = f"{schemas} schemas, {'empty' if tables == 0 else f'{tables} tables each'}"
        template, file = f"case_{schemas}_{tables}", self.folder / f"{schemas}.yaml"
        file.write_text(manifest(schemas))
        self.server.populate(template, schemas, tables)
        plan = None
        for program, binary in self.programs.items():
            if program != OURS and schemas > RIVALS:
                continue
            results = {}
            for _ in range(self.args.runs if program == OURS and schemas <= RIVALS else 1):
                self.server.fresh(template)
                for step, sample in self.steps(binary, file, STEPS):
                    results.setdefault(step, []).append(sample)
            plan = plan or results["diff"][0].output
            for step, samples in results.items():
                self.row(case, step, program, samples)
        self.floor(case, template, plan, schemas)
        if tables:
            self.behind_proxy(case, template, file, schemas)
        self.server.forget(template)

    def floor(self, case, template, plan, schemas):
        script = self.folder / "floor.sql"
        script.write_text(" \\;\n".join(merged(plan)) + ";\n")
        psql = [self.server.bin / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", script, "-d", self.server.url("bench")]
        samples = []
        for _ in range(self.args.runs if schemas <= RIVALS else 1):
            self.server.fresh(template)
            samples.append(measure.run(self.server, psql))
        self.row(case, "apply", FLOOR, samples)

    def behind_proxy(self, case, template, file, schemas):
        for program, binary in self.programs.items():
            if program != OURS and schemas > RIVALS_BEHIND_PROXY:
                continue
            self.server.fresh(template)
            for step in ("diff", "apply"):
                proxy = Proxy(self.server.port, self.args.rtt / 1000)
                for _, sample in self.steps(binary, file, [step], proxy.port):
                    sample.round_trips = proxy.round_trips
                    self.row(case, f"{step}, {self.args.rtt:g} ms", program, [sample])

    def verdict(self, sizes):
        """What was to be reached, and what was."""
        print("\n| goal | reached | |\n|---|---:|---|")

        def goal(text, value, limit, unit, below=True):
            met = value <= limit if below else value >= limit
            print(f"| {text} | {value:.2f}{unit} | {'yes' if met else 'NO'} |")

        def get(schemas, step, program=OURS):
            return self.results.get((f"{schemas} schemas, 10 tables each", step, program))

        large, small = (1000 if 1000 in sizes else sizes[0]), sizes[0]
        mine, floor = get(large, "apply"), get(large, "apply", FLOOR)
        goal(f"apply of {large} schemas within 1.2 x the floor", mine.seconds / floor.seconds, 1.2, " x")
        cpu = (mine.client + mine.server) / (floor.client + floor.server)
        goal(f"the same in CPU time, which load does not change", cpu, 1.2, " x")
        delayed = f"apply, {self.args.rtt:g} ms"
        goal(f"apply of {small} schemas at {self.args.rtt:g} ms round trip in under 0.5 s", get(small, delayed).seconds, 0.5, " s")
        goal(f"at most 12 round trips an apply of {large} schemas", get(large, delayed).round_trips, 12, "")
        mine = get(large, "diff converged")
        goal(f"converged diff of {large} schemas in less than 30 MB", mine.memory, 30, " MB")
        for rival in self.rivals:
            other = get(large, "diff converged", rival)
            goal(f"converged diff at least 4 x faster than pgroles {rival}", other.seconds / mine.seconds, 4, " x", below=False)
        for rival in self.rivals:
            print(f"| apply of {large} schemas, pgroles {rival} / ours | {get(large, 'apply', rival).seconds / get(large, 'apply').seconds:.1f} x | |")
        if sizes[-1] > large:
            for step in ("apply", "diff converged"):
                growth = (get(sizes[-1], step).seconds / sizes[-1]) / (get(large, step).seconds / large)
                goal(f"{step}: a schema of {sizes[-1]} costs as much as one of {large}", growth, 1.5, " x")


def main():
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "stanchion" / "rival"
    installed = [f"{path.parts[-3]}={path}" for path in sorted(cache.glob("*/bin/pgroles"), reverse=True)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", default=target / "release" / "stanchion", help="the stanchion binary")
    parser.add_argument("--rival", action="append", metavar="NAME=PATH", help="a pgroles binary")
    parser.add_argument("--schemas", default="100,1000,5000", help="sizes, comma separated")
    parser.add_argument("--runs", type=int, default=3, help="runs of our steps and of the floor; the median is shown")
    parser.add_argument("--rtt", type=float, default=10, help="milliseconds of a round trip behind the proxy")
    parser.add_argument("--bindir", default="/usr/lib/postgresql/15/bin", help="PostgreSQL's programs")
    args = parser.parse_args()
    args.rival = installed if args.rival is None else args.rival

    folder = Path(tempfile.mkdtemp(prefix="stanchion-bench-"))
    folder.chmod(0o755)
    bench = Bench(args, folder)
    try:
        bench.server.psql("postgres", "CREATE ROLE bench_owner")
        print("| case | step | program | s | CPU s | server CPU s | peak MB | round trips |")
        print("|---|---|---|---:|---:|---:|---:|---:|", flush=True)
        sizes = sorted(map(int, args.schemas.split(",")))
        for schemas in sizes:
            for tables in (0, 10):
                bench.case(schemas, tables)
        bench.verdict(sizes)
    finally:
        bench.server.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
