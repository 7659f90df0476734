"""Processes forked off one that has imported everything: each costs a fraction of a second, and starts as a fresh one.

That one is started by whoever needs it first in a process of pytest. Workers of dask are forked off it, too, where a
test asks for it with `forked_workers`, and kernels (`kernels`): those of JupyterLab, and those of the runner where a
test asks for it with `forked_kernels`.
"""

import json
import multiprocessing
import os
import select
import signal
import socket
import sys

from nlstm_lab import paths

OWN = sorted(path.relative_to(paths.PACKAGE.parent).with_suffix("") for path in paths.PACKAGE.rglob("*.py"))
server = multiprocessing.get_context("forkserver")
server.set_forkserver_preload(
    [
        "pytest",
        "torch._dynamo",  # what an optimizer imports when it is made, for seconds
        *("safetensors.torch", "matplotlib.pyplot", "seaborn", "captum.attr", "IPython.core.interactiveshell"),
        *("distributed.nanny", "ipykernel.kernelapp", "ipykernel.ipkernel"),
        *(".".join(path.parts).removesuffix(".__init__") for path in OWN if path.name != "__main__"),
    ]
)


class _Forked:
    """What dask starts its workers with: processes in the environment and folder of now."""

    Process = staticmethod(
        lambda target, args=(), name=None: server.Process(
            target=_run, name=name, args=(dict(os.environ), os.getcwd(), None, target, args)
        )
    )

    def __getattr__(self, name):
        return getattr(server, name)


def forked_workers(monkeypatch):
    """Until the test ends, dask forks its workers off what has imported everything."""
    for module in ("distributed.nanny", "distributed.process"):
        monkeypatch.setattr(f"{module}.get_mp_context", _Forked)


def started(target, *arguments, output=None):
    """A process that runs `target` in the environment and folder of now; what it prints goes into a file."""
    process = server.Process(target=_run, args=(dict(os.environ), os.getcwd(), output, target, arguments))
    process.start()
    return process


def _run(environment, folder, output, target, arguments):
    if output is not None:
        with output.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
    _enter(environment, folder)
    target(*arguments)


def _enter(environment, folder):
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    import torch

    torch.set_num_threads(1)
    if address := os.environ.get(ADDRESS):
        from nlstm_lab import execute

        execute.kernel_spec = kernel_of(address)


def command_line(*arguments):
    """`nlstm-lab` with these arguments."""
    from nlstm_lab import cli

    sys.argv = ["nlstm-lab", *arguments]
    cli.main()


# A kernel of JupyterLab is two processes: one that JupyterLab starts, waits for and may kill, and the forked one, which
# runs the notebook. The first asks for the second through a socket, and each ends with the other.

ASK = """
import json, os, socket, sys, time
address, *words = sys.argv[1:]
with socket.socket(socket.AF_UNIX) as asking:
    while asking.connect_ex(address):
        time.sleep(0.1)
    asking.sendall(json.dumps([words, dict(os.environ), os.getcwd()]).encode() + b"\\n")
    raise SystemExit(int(asking.recv(16) or 1))
"""

ADDRESS = "NLSTM_LAB_TESTS_KERNELS"  # the environment variable that tells forked processes of `forked_kernels`


def _spec(address):
    return {
        "argv": [sys.executable, "-ISc", ASK, address, "{connection_file}"],
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "interrupt_mode": "message",
        "metadata": {"debugger": True},
    }


def kernelspec(folder, address):
    """Write the kernelspec `python3` whose kernels are forked by `kernels(address)`; for JUPYTER_PATH."""
    file = folder / "kernels" / "python3" / "kernel.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(_spec(address)))


def kernel_of(address):
    """The runner's kernelspec, of kernels that `kernels(address)` forks."""
    from jupyter_client.kernelspec import KernelSpec

    from nlstm_lab import execute

    original = execute.kernel_spec
    return lambda job: KernelSpec(**_spec(address), env=original(job).env)


def forked_kernels(monkeypatch, address):
    """Until the test ends, the runner's kernels are forked, here and in forked processes."""
    monkeypatch.setenv(ADDRESS, address)
    monkeypatch.setattr("nlstm_lab.execute.kernel_spec", kernel_of(address))


def kernels(address):
    """Fork a kernel for everyone who asks at this address, until this process is ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        while True:
            asking, _ = listening.accept()
            if not os.fork():
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _watch(asking)
            asking.close()


def _watch(asking):
    """Fork the kernel, wait until it or who asked for it has ended, and end the other."""
    words, environment, folder = json.loads(asking.makefile().readline())
    kernel = os.fork()
    if not kernel:
        asking.close()
        _enter(environment, folder)
        _serve(words)
        os._exit(0)
    ended = os.pidfd_open(kernel)
    if asking in select.select([asking, ended], [], [])[0]:
        os.kill(kernel, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(kernel, 0)[1])
    try:
        asking.sendall(str(abs(code)).encode())
    finally:
        os._exit(0)


def _serve(words):
    import matplotlib
    from ipykernel.kernelapp import IPKernelApp

    app = IPKernelApp.instance()
    app.initialize(["-f", *words, "--HistoryManager.enabled=False", "--log-level=CRITICAL"])
    matplotlib.use("module://matplotlib_inline.backend_inline")  # what a kernel names before it is imported
    app.start()
