"""Where a notebook runs: the running interpreter, with this package on its path."""

import os
import signal
import sys
from typing import Any, ClassVar

import zmq
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from traitlets import Bool, Integer, Unicode, default

from nlstm_lab import paths


class Here(KernelSpecManager):
    """Whatever kernelspecs are installed, and wherever they point: the running interpreter."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        quiet = "--log-level=CRITICAL"  # the interrupt before its end is no error of an idle kernel
        spec = get_kernel_dict(extra_arguments=["--HistoryManager.enabled=False", quiet])  # kernels would lock a file
        return KernelSpec(**{**spec, "argv": [sys.executable, *spec["argv"][1:]]})


class Kernel(AsyncKernelManager):
    """One notebook's kernel, started in the notebooks' folder as JupyterLab would."""

    threads = Integer(0, help="threads of the numerical libraries; 0 leaves them alone").tag(config=True)
    notebook = Unicode("", help="which notebook is executed").tag(config=True)
    replace = Bool(False, help="whether committed figures of other parameters may be replaced").tag(config=True)
    alive: ClassVar[set["Kernel"]] = set()

    @default("kernel_spec_manager")
    def _here(self) -> KernelSpecManager:
        return Here(parent=self)

    async def start_kernel(self, **options: Any) -> None:  # type: ignore[override]
        environment = {**os.environ, **(options.pop("env", None) or {})}
        on_path = (str(paths.PACKAGE.parent), environment.get("PYTHONPATH"))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, on_path))
        if self.threads:
            environment |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(self.threads))
        environment["NLSTM_LAB_PAGES"] = str(paths.executed() / "widgets" / self.notebook)
        if self.replace:
            environment["NLSTM_LAB_REPLACE"] = "1"
        if self.has_trait("transport_encryption") and zmq.has("curve"):
            self.transport_encryption = "auto"  # newer kernels warn where they are not asked for it
        self.alive.add(self)
        await super().start_kernel(**{**options, "env": environment, "cwd": str(paths.notebooks())})

    async def cleanup_resources(self, restart: bool = False) -> None:  # type: ignore[override]
        self.alive.discard(self)
        await super().cleanup_resources(restart=restart)

    @classmethod
    def kill_all(cls) -> None:
        """End every kernel of this process at once; the notebooks that they ran fail."""
        for kernel in list(cls.alive):
            pid = getattr(kernel.provisioner, "pid", None)
            if pid and getattr(kernel.provisioner, "has_process", False):
                os.kill(pid, signal.SIGKILL)
