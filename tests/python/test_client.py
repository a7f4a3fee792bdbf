"""The published Python client, unmodified, against this server."""

import secrets
import threading

import fuse
import pytest


@pytest.fixture
def client(server):
    with fuse.Client(server.url, server.token) as client:
        yield client


@pytest.fixture
def environment(client):
    made = client.environments.create(fuse.CreateRequest(task_id=f"py-{secrets.token_hex(6)}"))
    yield made
    try:
        client.environments.destroy(made.id)
    except fuse.ApiError as error:
        assert fuse.is_not_found(error)


# check: ENV-17
def test_an_environment_is_made_listed_read_and_destroyed(client):
    task = f"py-{secrets.token_hex(6)}"
    request = fuse.CreateRequest(
        task_id=task,
        spec=fuse.Spec(cpus=1, ram_mb=256, labels={"team": "a"}, idle_timeout_seconds=3600),
        secrets={"gh": "s3cr3t"},
        files={"/workspace/in.txt": "aGVsbG8K"},
        startup_script="cp in.txt out.txt",
    )
    made = client.environments.create(request)
    assert (made.id, made.task_id, made.state) == (f"fuse-{task}", task, fuse.STATE_RUNNING)
    assert (made.spec.cpus, made.spec.ram_mb, made.spec.labels) == (1, 256, {"team": "a"})
    assert made.created_at is not None and made.error == ""
    assert client.environments.get(made.id) == made
    assert [found.id for found in client.environments.list(task_id=task)] == [made.id]
    assert client.environments.list(task_id=task, state=fuse.STATE_FAILED) == []
    read = client.environments.exec(made.id, fuse.ExecRequest(cmd=["cat", "out.txt"]))
    assert read.stdout == "hello\n"
    with pytest.raises(fuse.ApiError) as taken:
        client.environments.create(fuse.CreateRequest(task_id=task))
    assert fuse.is_conflict(taken.value)
    client.environments.destroy(made.id)
    with pytest.raises(fuse.ApiError) as gone:
        client.environments.get(made.id)
    assert fuse.is_not_found(gone.value) and gone.value.status == 404


# check: ENV-17, HTTP-8
def test_pages_are_walked(client):
    made = [client.environments.create(fuse.CreateRequest(task_id=f"py-{secrets.token_hex(6)}")) for _ in range(3)]
    seen, cursor = [], ""
    while True:
        page = client.environments.list_page(limit=1, cursor=cursor)
        seen += [found.id for found in page.environments]
        cursor = page.next_cursor
        if not cursor:
            break
    assert [found for found in seen if found in {one.id for one in made}] == [one.id for one in reversed(made)]
    for one in made:
        client.environments.destroy(one.id)


# check: ENV-17, EXEC-1
def test_commands_run(client, environment):
    ran = client.environments.exec(environment.id, fuse.ExecRequest(cmd=["sh", "-c", "echo out; echo err >&2; exit 3"]))
    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, "out\n", "err\n")
    shell = client.environments.exec(environment.id, fuse.ExecRequest(shell="echo $((6 * 7))"))
    assert (shell.exit_code, shell.stdout) == (0, "42\n")
    late = client.environments.exec(environment.id, fuse.ExecRequest(cmd=["sleep", "30"], timeout_ms=200))
    assert late.exit_code == 124


# check: ENV-17, ENV-11
def test_events_are_followed_to_the_end(client, environment):
    events, first = [], threading.Event()

    def follow():
        for event in client.environments.events(environment.id):
            events.append(event)
            first.set()

    thread = threading.Thread(target=follow)
    thread.start()
    assert first.wait(20)
    client.environments.destroy(environment.id)
    thread.join(20)
    assert not thread.is_alive()
    assert events[0].state == fuse.STATE_RUNNING and events[0].vm_id == environment.id
    assert events[-1].state == fuse.STATE_DESTROYED
    assert all(event.err is None for event in events)


# check: ENV-17, ACCESS-4, ACCESS-5, ACCESS-12
def test_keys_are_made_listed_and_revoked(server, client, environment):
    made = client.api_keys.create("from python")
    assert made.key.startswith("fuse_sk_") and made.label == "from python"
    assert made.id in [key.id for key in client.api_keys.list()]
    with fuse.Client(server.url, made.key) as agent:
        assert agent.environments.get(environment.id).id == environment.id
        with pytest.raises(fuse.ApiError) as refused:
            agent.environments.exec(environment.id, fuse.ExecRequest(cmd=["true"]))
        assert (refused.value.status, refused.value.code) == (403, fuse.CODE_UNAUTHORIZED)
        client.api_keys.revoke(made.id)
        client.api_keys.revoke(made.id)
        with pytest.raises(fuse.ApiError) as revoked:
            agent.environments.list()
        assert fuse.is_unauthorized(revoked.value) and revoked.value.status == 401
    assert made.key not in "".join(server.log)


# check: ENV-10, HTTP-1
def test_what_is_not_served_and_what_is_wrong_are_told(client, environment):
    with pytest.raises(fuse.ApiError) as unserved:
        client.environments.create(fuse.CreateRequest(task_id="py-never", expose=[fuse.ExposeSpec(port=80)]))
    assert unserved.value.status == 501 and "expose" in unserved.value.message
    with pytest.raises(fuse.ApiError) as later:
        client.environments.fork(environment.id)
    assert later.value.status == 501
    with pytest.raises(fuse.ApiError) as wrong:
        client.environments.create(fuse.CreateRequest(task_id="Not A Label"))
    assert fuse.is_invalid_argument(wrong.value) and "task_id" in wrong.value.message
    assert wrong.value.request_id
    with fuse.Client(server_url(client), "no-such-token") as stranger:
        with pytest.raises(fuse.ApiError) as refused:
            stranger.environments.list()
        assert refused.value.status == 401


def server_url(client):
    return str(client._t._http.base_url)
