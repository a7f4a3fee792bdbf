"""The published client works unmodified for all that this server serves of its API."""

import threading

import pytest

import fuse


@pytest.fixture
def client(server):
    with fuse.Client(server.url, server.token) as client:
        yield client


@pytest.fixture
def environment(client, request):
    name = request.node.name.replace("_", "-")[:50].strip("-")
    made = client.environments.create(fuse.CreateRequest(task_id=name))
    yield made
    try:
        client.environments.destroy(made.id)
    except fuse.ApiError as error:
        assert fuse.is_not_found(error)


# check: ENV-17 ENV-1
def test_a_created_environment_runs_and_is_read_back(client, environment):
    assert environment.id == f"fuse-{environment.task_id}"
    assert environment.state == fuse.STATE_RUNNING
    assert environment.created_at is not None and environment.host_id
    read = client.environments.get(environment.id)
    assert read == environment
    assert read.spec.ram_mb and read.spec.image == "host"


# check: ENV-17 ENV-4
def test_lists_filter_by_task(client, environment):
    found = client.environments.list(task_id=environment.task_id)
    assert [one.id for one in found] == [environment.id]
    assert environment.id in [one.id for one in client.environments.list()]


# check: ENV-17 EXEC-1
def test_a_command_runs_and_its_failure_is_a_result(client, environment):
    done = client.environments.exec(environment.id, fuse.ExecRequest(cmd=["echo", "two words"]))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "two words\n", "")
    failed = client.environments.exec(environment.id, fuse.ExecRequest(shell="echo no >&2; exit 7"))
    assert (failed.exit_code, failed.stdout, failed.stderr) == (7, "", "no\n")
    late = client.environments.exec(
        environment.id, fuse.ExecRequest(cmd=["sleep", "20"], timeout_ms=200)
    )
    assert late.exit_code == 124


# check: ENV-17 ENV-8 ENV-9
def test_files_and_secrets_are_accepted(client):
    made = client.environments.create(
        fuse.CreateRequest(
            task_id="with-files",
            spec=fuse.Spec(cpus=1, ram_mb=256, idle_timeout_seconds=600, labels={"team": "a"}),
            files={"/workspace/note": "aGVsbG8="},
            secrets={"token": "s3cret-value"},
            startup_script="cp note seen",
        )
    )
    try:
        assert made.spec.labels == {"team": "a"}
        seen = client.environments.exec(made.id, fuse.ExecRequest(cmd=["cat", "seen"]))
        assert seen.stdout == "hello"
    finally:
        client.environments.destroy(made.id)


# check: ENV-17 ENV-11
def test_events_tell_the_state_and_end_with_the_environment(client, server, environment):
    states: list[str] = []
    begun = threading.Event()

    def watch() -> None:
        with fuse.Client(server.url, server.token) as watcher:
            for event in watcher.environments.events(environment.id):
                assert event.err is None and event.vm_id == environment.id
                states.append(event.state)
                begun.set()

    watching = threading.Thread(target=watch)
    watching.start()
    assert begun.wait(10)
    client.environments.destroy(environment.id)
    watching.join(10)
    assert not watching.is_alive()
    assert states[0] == fuse.STATE_RUNNING
    assert states[-1] == fuse.STATE_DESTROYED


# check: ENV-17 ENV-5
def test_a_destroyed_environment_is_gone(client, environment):
    client.environments.destroy(environment.id)
    with pytest.raises(fuse.ApiError) as gone:
        client.environments.get(environment.id)
    assert fuse.is_not_found(gone.value) and gone.value.request_id
    with pytest.raises(fuse.ApiError) as again:
        client.environments.destroy(environment.id)
    assert fuse.is_not_found(again.value)


# check: ENV-17 ENV-3
def test_a_live_task_id_is_a_conflict(client, environment):
    with pytest.raises(fuse.ApiError) as taken:
        client.environments.create(fuse.CreateRequest(task_id=environment.task_id))
    assert fuse.is_conflict(taken.value)


# check: ENV-17 ACCESS-3 ACCESS-4 ACCESS-5
def test_keys_are_made_listed_used_and_revoked(client, server, environment):
    made = client.api_keys.create("python")
    assert made.key.startswith("fuse_sk_") and made.label == "python"
    assert made.id in [key.id for key in client.api_keys.list()]
    with fuse.Client(server.url, made.key) as holder:
        assert holder.environments.get(environment.id).id == environment.id
        with pytest.raises(fuse.ApiError) as refused:
            holder.environments.exec(environment.id, fuse.ExecRequest(cmd=["true"]))
        assert fuse.is_unauthorized(refused.value) and refused.value.status == 403
        client.api_keys.revoke(made.id)
        client.api_keys.revoke(made.id)
        with pytest.raises(fuse.ApiError) as revoked:
            holder.environments.list()
        assert revoked.value.status == 401
    assert made.key not in "".join(server.log)


# check: ENV-10
def test_a_member_that_is_not_served_is_named(client):
    with pytest.raises(fuse.ApiError) as refused:
        client.environments.create(
            fuse.CreateRequest(task_id="exposed", expose=[fuse.ExposeSpec(port=80)])
        )
    assert refused.value.status == 501 and "expose" in refused.value.message
