"""A SLURM of three nodes on the loopback interface, without systemd and cgroups, all in one folder.

It needs root and Debian's packages munge, slurmctld, slurmd, slurm-client, slurmdbd and mariadb-server. Every daemon is
a child of this process. Only these daemons and the jobs that they run are ended.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import psutil

from working_folder import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "slurmdbd", "mariadbd", "mariadb-install-db", "sbatch", "sacct")
# Commands inside a job read this file, because the executor plugin removes SLURM_CONF from the environment of steps.
SYSTEM_WIDE = Path("/etc/slurm/slurm.conf")
NODES = ("node1", "node2", "node3")
ACCOUNT, PARTITION = "bench", "main"
# This partition takes jobs of at most ten minutes.
SHORT_PARTITION = "short"
CPUS = 8  # of each node
MARK = "FAIRCLUST_TEST_CLUSTER"
# SLURM polls the memory of the jobs, so it takes a second or two until jobs over their memory are ended.
CONFIGURATION = """
ClusterName=fairclust
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory,CR_LLN
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
ReturnToService=2
SlurmdTimeout=8
KillWait=5
OverTimeLimit=0
MinJobAge=600
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports[1]}
AccountingStoragePass={folder}/munge.socket
AccountingStorageEnforce=associations
AccountingStoreFlags=job_comment
{nodes}
PartitionName={partition} Nodes=ALL Default=YES MaxTime=UNLIMITED DefMemPerCPU=200 State=UP
PartitionName={short} Nodes=ALL MaxTime=10 DefMemPerCPU=200 State=UP
"""
ACCOUNTING = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={ports[1]}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[2]}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""


def missing():
    """Return the reason why no cluster can be started here, or ''."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)} (`make test-slurm` installs Debian's packages)"
    if os.geteuid() != 0:
        return "SLURM's daemons need root here"
    if not SYSTEM_WIDE.exists() or _left_behind():
        return ""
    return f"this machine has a SLURM of its own, see {SYSTEM_WIDE}"


def _left_behind():
    """Tell whether the system's configuration is a link that a killed test cluster has left."""
    if not SYSTEM_WIDE.is_symlink():
        return False
    target = str(SYSTEM_WIDE.readlink())
    commands = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    return "/slurm-" in target and not any(target in command for command in commands)


def _free_ports(number):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Cluster:
    """The daemons of a cluster, as a context manager.

    `env` is what a command needs to talk to this cluster.
    """

    def __init__(self, folder, cpus=CPUS, memory_mb=24000):
        self.folder = Path(folder)
        self.processes = {}
        self.configuration = self.folder / "slurm.conf"
        # The second variable marks the processes of jobs.
        self.env = {"SLURM_CONF": str(self.configuration), MARK: str(self.folder)}
        host, self.ports = socket.gethostname().partition(".")[0], _free_ports(3 + len(NODES))
        values = {"folder": self.folder, "host": host, "ports": self.ports}
        values |= {"partition": PARTITION, "short": SHORT_PARTITION}
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} "
            f"RealMemory={memory_mb} State=UNKNOWN"
            for name, port in zip(NODES, self.ports[3:], strict=True)
        )
        for name in NODES:
            (self.folder / "spool" / name).mkdir(parents=True)
        (self.folder / "state").mkdir()
        self.configuration.write_text(CONFIGURATION.format(**values, nodes=nodes))
        accounting = self.folder / "slurmdbd.conf"
        accounting.write_text(ACCOUNTING.format(**values))
        accounting.chmod(0o600)

    def __enter__(self):
        try:
            SYSTEM_WIDE.parent.mkdir(exist_ok=True)
            SYSTEM_WIDE.unlink(missing_ok=True)  # at most the link of a dead cluster, as `missing` checks
            SYSTEM_WIDE.symlink_to(self.configuration)
            self._start_munge()
            self._start_accounting()
            self._start("slurmctld", "slurmctld", "-D", "-f", str(self.configuration))
            wait_until(lambda: "UP" in self.ask("scontrol", "ping"), 60, "slurmctld")
            for name in NODES:
                self.start_node(name)
            wait_until(lambda: self.idle_nodes() == set(NODES), 60, "three idle nodes")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def ask(self, *command):
        """Run one of SLURM's commands, and return its standard output, or '' if it fails."""
        done = subprocess.run(
            command, env={**os.environ, **self.env}, capture_output=True, text=True, timeout=60
        )
        return done.stdout if done.returncode == 0 else ""

    def idle_nodes(self):
        return set(self.ask("sinfo", "-h", "-N", "-t", "idle,mix,alloc", "-o", "%N").split())

    def start_node(self, name):
        self._start(name, "slurmd", "-D", "-N", name, "-f", str(self.configuration))

    def lose_node(self, name):
        """Kill all processes of a node by their ids, as a power cut would."""
        # Processes that supervise jobs are recognised by their sockets, which are in the node's folder.
        keepers = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                places = (str(one.laddr) for one in process.net_connections("unix"))
                mine = any(place.startswith(f"{self.folder}/spool/{name}/") for place in places)
                if process.name() == "slurmstepd" and mine:
                    keepers.append(process)
        jobs = [child for keeper in keepers for child in keeper.children(recursive=True)]
        self.processes.pop(name).kill()
        for process in [*keepers, *jobs]:
            with contextlib.suppress(psutil.Error):
                process.kill()

    def stop(self):
        """End the jobs, and then the daemons in reverse order of their start."""
        if "slurmctld" in self.processes:
            self.ask("scancel", "--user", getpass.getuser())
        for process in reversed(self.processes.values()):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()
        for process in self._job_processes():
            with contextlib.suppress(psutil.Error):
                process.kill()
        if SYSTEM_WIDE.is_symlink() and SYSTEM_WIDE.readlink() == self.configuration:
            SYSTEM_WIDE.unlink()

    def _job_processes(self):
        """Return the processes that this cluster has started for jobs."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                environ = process.environ()
                if environ.get(MARK) == self.env[MARK] and "SLURM_JOB_ID" in environ:
                    yield process

    def _start(self, name, *command):
        with (self.folder / f"{name}.out").open("w") as out:
            self.processes[name] = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _start_munge(self):
        key, place = self.folder / "munge.key", self.folder / "munge.socket"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        options = [f"--{what}-file={self.folder}/munge.{what}" for what in ("pid", "log", "seed")]
        self._start("munged", "munged", "-F", "--force", f"--key-file={key}", f"--socket={place}", *options)
        wait_until(lambda: self.ask("munge", "-n", "-S", str(place)), 20, "munged")

    def _start_accounting(self):
        data, place = self.folder / "mariadb", self.folder / "mariadb.socket"
        common = ["--no-defaults", f"--datadir={data}", "--user=root"]
        subprocess.run(
            ["mariadb-install-db", *common, "--skip-test-db", "--auth-root-authentication-method=normal"],
            check=True,
            capture_output=True,
        )
        self._start(
            "mariadbd",
            *("mariadbd", *common, f"--socket={place}", f"--port={self.ports[2]}"),
            *("--bind-address=127.0.0.1", "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900"),
        )
        client = ["mariadb", "--no-defaults", f"--socket={place}", "--user=root"]
        wait_until(lambda: self.ask(*client, "-e", "select 1"), 60, "mariadbd")
        statements = (
            "CREATE DATABASE slurm_acct_db; CREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY 'slurm'; "
            "CREATE USER 'slurm'@'localhost' IDENTIFIED BY 'slurm'; "
            "GRANT ALL ON slurm_acct_db.* TO 'slurm'@'127.0.0.1'; "
            "GRANT ALL ON slurm_acct_db.* TO 'slurm'@'localhost';"
        )
        subprocess.run([*client, "-e", statements], check=True)
        self._start("slurmdbd", "slurmdbd", "-D")
        wait_until(
            lambda: self.ask("sacctmgr", "show", "cluster"), 60, "slurmdbd"
        )  # the first line has the headings
        for what in (
            ("cluster", "fairclust"),
            ("account", ACCOUNT, "cluster=fairclust"),
            ("user", getpass.getuser(), f"account={ACCOUNT}", "cluster=fairclust"),
        ):
            self.ask("sacctmgr", "-iQ", "add", *what)


def end(process):
    """Interrupt Snakemake if it is still running."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait()
