use super::*;
use std::collections::HashMap;

fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    read_with(&Flags::default(), variables)
}

fn read_with(flags: &Flags, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let mut all = HashMap::from([("HOME", "/home/op")]);
    all.extend(variables.iter().copied());
    Config::read(flags, |name| all.get(name).map(OsString::from))
}

#[test]
fn without_settings_it_is_embedded_and_on_loopback() {
    let config = read(&[]).expect("defaults");
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.data_dir, Path::new("/home/op/.local/share/fuse"));
    assert_eq!(
        config.database_url.expose(),
        "sqlite:/home/op/.local/share/fuse/fuse.db"
    );
    assert!(config.master_token.is_none());
    assert!(config.encryption_key.is_none());
    let xdg = read(&[("XDG_DATA_HOME", "/data")]).expect("xdg");
    assert_eq!(xdg.data_dir, Path::new("/data/fuse"));
    let relative = read(&[("XDG_DATA_HOME", "data")]).expect("ignored");
    assert_eq!(relative.data_dir, config.data_dir);
}

#[test]
fn a_flag_wins_over_its_variable() {
    let flags = Flags {
        listen: Some("127.0.0.1:0".into()),
        data_dir: Some("/srv/fuse".into()),
        database_url: Some("postgres://db/fuse".into()),
    };
    let variables = [
        ("ORCH_LISTEN", "10.0.0.1:1"),
        ("FUSE_DATA_DIR", "/elsewhere"),
        ("DATABASE_URL", "sqlite:/elsewhere/x.db"),
    ];
    let config = read_with(&flags, &variables).expect("flags");
    assert_eq!(config.listen.port(), 0);
    assert_eq!(config.data_dir, Path::new("/srv/fuse"));
    assert_eq!(config.database_url.expose(), "postgres://db/fuse");
}

// check: CLI-13
// check: SEAL-6
#[test]
fn a_broken_setting_is_one_line_that_names_it() {
    let long = "x".repeat(513);
    for (name, value) in [
        ("ORCH_LISTEN", "8080"),
        ("ORCH_LISTEN", ":8080"),
        ("ORCH_LISTEN", "127.0.0.1:99999"),
        ("FUSE_DATA_DIR", ""),
        ("DATABASE_URL", "mysql://x"),
        ("DATABASE_URL", "sqlite:"),
        ("DATABASE_URL", "sqlite::memory:"),
        ("DATABASE_URL", "postgres://"),
        ("ORCH_AUTH_TOKEN", ""),
        ("ORCH_AUTH_TOKEN", "sixteen chars but blanks"),
        ("ORCH_AUTH_TOKEN", "fuse_sk_0123456789abcdef"),
        ("ORCH_AUTH_TOKEN", &long),
        ("TOKEN_ENCRYPTION_KEY", ""),
        ("TOKEN_ENCRYPTION_KEY", "deadbeef"),
        ("TOKEN_ENCRYPTION_KEY", "zz"),
        ("ORCH_PUBLIC_URL", "fuse.example.com"),
        ("ORCH_PUBLIC_URL", "ftp://fuse.example.com"),
        ("ORCH_PUBLIC_URL", "https://me:pw@fuse.example.com"),
        ("ORCH_PUBLIC_URL", "https://fuse.example.com/#x"),
        ("FUSE_RESTATE_MODE", "self"),
        ("FUSE_RESTATE_MODE", "on"),
        ("FUSE_TRUSTED_PROXIES", "10.0.0.0/33"),
        ("FUSE_OUTBOUND_ALLOW", "internal"),
        ("FUSE_LOG_FORMAT", "xml"),
        ("RUST_LOG", "info,=,"),
    ] {
        let error = read(&[(name, value)]).expect_err(value).to_string();
        assert!(
            error.starts_with(&format!("{name}: ")),
            "{name}={value}: {error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
}

// check: ACCESS-12
#[test]
fn no_secret_is_shown_by_an_error_or_by_debug() {
    let secret = "hunter2-hunter2-hunter2";
    let key = "11".repeat(32);
    let config = read(&[
        ("ORCH_AUTH_TOKEN", secret),
        ("TOKEN_ENCRYPTION_KEY", &key),
        ("DATABASE_URL", "postgres://fuse:hunter2@db/fuse"),
    ])
    .expect("fine");
    let shown = format!("{config:?}");
    assert!(
        !shown.contains("hunter2") && !shown.contains(&key),
        "{shown}"
    );
    let broken = [
        ("ORCH_AUTH_TOKEN", "hunter2 and more"),
        ("TOKEN_ENCRYPTION_KEY", "hunter2"),
        ("DATABASE_URL", "mysql://fuse:hunter2@db/fuse"),
    ];
    for (name, value) in broken {
        let error = read(&[(name, value)]).expect_err("broken");
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{error:?}"
        );
    }
}

#[test]
fn a_public_url_loses_its_last_slash() {
    let config = read(&[("ORCH_PUBLIC_URL", "https://fuse.example.com/base/")]).expect("fine");
    assert_eq!(
        config.public_url.as_deref(),
        Some("https://fuse.example.com/base")
    );
}

// check: CLI-15
#[test]
fn without_a_master_token_one_is_made_once_and_read_back() {
    let dir = tempfile::tempdir().expect("dir");
    let home = dir.path().join("fuse");
    let flags = Flags {
        data_dir: Some(home.clone()),
        ..Flags::default()
    };
    let config = read_with(&flags, &[]).expect("fine");
    assert!(!home.exists(), "reading writes nothing");
    let first = config.master_token().expect("made");
    assert!(first.expose().len() >= 32);
    let again = config.master_token().expect("read back");
    assert_eq!(first.expose(), again.expose());
    let given = [("ORCH_AUTH_TOKEN", "0123456789abcdef")];
    let given = read_with(&flags, &given).expect("fine").master_token();
    assert_eq!(given.expect("the given one").expose(), "0123456789abcdef");
}
