"""A real server for the Python tests."""

import os
import secrets
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
START = 60


@dataclass
class Server:
    """A running `fuse serve` with a data folder of its own."""

    url: str
    token: str
    log: list[str] = field(default_factory=list)

    def api(self, token: str | None = None) -> httpx.Client:
        """Raw calls, with the master token unless another one is given."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    def destroy_all(self) -> None:
        """Guests outlive their server, so they are ended while it runs."""
        with self.api() as api:
            while page := api.get("/v1/environments", params={"limit": 200}).json()["environments"]:
                for environment in page:
                    api.delete(f"/v1/environments/{environment['id']}")


def binary() -> Path:
    path = Path(os.environ.get("FUSE_TEST_BIN", ROOT / "target/debug/fuse"))
    if not path.is_file():
        pytest.exit(f"{path} is not there: build it with `cargo build -p fuse-cli`, or run `cargo xtask test`", 1)
    return path


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    token = f"master-{secrets.token_hex(16)}"
    folder = tmp_path_factory.mktemp("fuse-data")
    # Nothing that the caller's shell points a server at may reach this one.
    variables = {"PATH": os.environ["PATH"], "ORCH_AUTH_TOKEN": token, "TOKEN_ENCRYPTION_KEY": secrets.token_hex(32)}
    process = subprocess.Popen(
        [binary(), "serve", "--listen", "127.0.0.1:0", "--data-dir", folder, "--database-url", f"sqlite:{folder}/fuse.db"],
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    running = Server(url="", token=token)
    up = threading.Event()

    def follow():
        for line in process.stderr:
            running.log.append(line)
            if line.startswith("listening on "):
                running.url = line.removeprefix("listening on ").strip()
                up.set()
        up.set()

    threading.Thread(target=follow, daemon=True).start()
    try:
        up.wait(START)
        assert running.url, f"the server did not come up:\n{''.join(running.log)}"
        yield running
        running.destroy_all()
    finally:
        process.terminate()
        process.wait(20)
