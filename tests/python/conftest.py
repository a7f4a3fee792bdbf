"""A real server for each test module, on a port that it picks, with a data folder of its own."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = "python-tests-master-token-0123456789"


class Server:
    def __init__(self, folder: pathlib.Path) -> None:
        binary = pathlib.Path(os.environ.get("FUSE_TEST_BIN") or ROOT / "target/debug") / "fuse"
        if not binary.is_file():
            pytest.fail(f"{binary} is missing: run these tests with `cargo xtask test`")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "FUSE_DATA_DIR": str(folder / "data"),
            "ORCH_AUTH_TOKEN": TOKEN,
            "TOKEN_ENCRYPTION_KEY": "5a" * 32,
        }
        self.process = subprocess.Popen(
            [binary, "serve", "--listen", "127.0.0.1:0"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.token = TOKEN
        self.log: list[str] = []
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"listening on (http://\S+)", line):
                self.url = found[1]
                break
        else:
            pytest.fail("the server did not start:\n" + "".join(self.log))
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        for line in self.process.stderr:
            self.log.append(line)

    def stop(self) -> None:
        import fuse

        with fuse.Client(self.url, self.token) as client:
            for environment in client.environments.list():
                client.environments.destroy(environment.id)
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=10) == 0


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory() as folder:
        running = Server(pathlib.Path(folder))
        try:
            yield running
        finally:
            try:
                running.stop()
            finally:
                if running.process.poll() is None:
                    running.process.kill()
                    running.process.wait()
