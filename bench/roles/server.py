"""A PostgreSQL server of the bench's own, and the databases of its cases."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


class Server:
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
        # Without fsync: what is measured is the work, not the disk. No autovacuum in the middle of a measurement.
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=''", "max_locks_per_transaction=1024",
                    "fsync=off", "autovacuum=off"]
        options = f"-p {self.port} " + " ".join(f"-c {setting}" for setting in settings)
        run(self.bin / "pg_ctl", "-D", self.data, "-w", "-l", folder / "log", "-o", options, "start")
        self.pid = int((self.data / "postmaster.pid").read_text().split()[0])
        self.helpers = len(self.children())

    def stop(self):
        command = [*self.drop, self.bin / "pg_ctl", "-D", self.data, "-m", "immediate", "stop"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def children(self):
        return Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()

    def cpu(self):
        """Seconds of CPU that sessions have used; a session counts once it has ended."""
        deadline = time.monotonic() + 5
        while len(self.children()) > self.helpers and time.monotonic() < deadline:
            time.sleep(0.005)
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[13]) + int(fields[14])) / TICK

    def url(self, database, port=None):
        # With a password, because pgroles insists on one; the server does not ask for it.
        return f"postgres://postgres:none@127.0.0.1:{port or self.port}/{database}"

    def psql(self, database, sql):
        command = [self.bin / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.url(database), "-c", sql]
        quiet = {**os.environ, "PGOPTIONS": "-c client_min_messages=error"}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=quiet)

    def populate(self, name, schemas, tables):
        """The template of a case."""
        self.psql("postgres", f"CREATE DATABASE {name}")
        for start in range(0, schemas, 100):
            self.psql(name, f"""DO $$ BEGIN FOR s IN {start}..{min(start + 100, schemas) - 1} LOOP
                EXECUTE format('CREATE SCHEMA s%s AUTHORIZATION bench_owner', s);
                IF {tables} > 0 THEN
                  FOR t IN 1..{tables} LOOP EXECUTE format('CREATE TABLE s%s.t%s (i int)', s, t); END LOOP;
                  EXECUTE format('CREATE SEQUENCE s%s.q', s);
                END IF; END LOOP; END $$""")
        self.psql(name, "VACUUM ANALYZE")

    def fresh(self, template):
        """A new copy of a case, without the roles that the last run made."""
        self.drop_database("bench")
        self.psql("postgres", r"""DO $$ DECLARE r text; BEGIN
            FOR r IN SELECT rolname FROM pg_roles WHERE rolname ~ '^s\d+-(editor|viewer)$' LOOP
            EXECUTE format('DROP ROLE %I', r); END LOOP; END $$""")
        self.psql("postgres", f"CREATE DATABASE bench TEMPLATE {template} STRATEGY file_copy")
        for catalog in ("pg_authid", "pg_shdepend", "pg_shdescription"):
            self.psql("bench", f"VACUUM ANALYZE {catalog}")
        self.psql("bench", "CHECKPOINT")

    def forget(self, template):
        for name in ("bench", template):
            self.drop_database(name)

    def drop_database(self, name):
        self.psql("postgres", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
