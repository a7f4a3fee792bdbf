//! The server's configuration: read, checked whole, and refused with one line before anything is written.

mod networks;
mod secret;

pub use networks::Networks;
pub use secret::{Secret, fresh_key, load_or_create};

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Why the configuration is refused: the variable, and what is wrong with it. No value of a secret is part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {message}")]
pub struct ConfigError {
    name: String,
    message: String,
}

impl ConfigError {
    pub(crate) fn new(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            message: message.into(),
        }
    }
}

/// What the command line says; it wins over the variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--listen`.
    pub listen: Option<String>,
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--database-url`.
    pub database_url: Option<String>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A checked configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Database, environments, images and generated secrets; absolute.
    pub data_dir: PathBuf,
    /// `postgres://…` or `sqlite:PATH`. It may hold a password.
    pub database_url: Secret,
    /// The master token that was given; none means the generated one.
    pub master_token: Option<Secret>,
    /// The key that contents are sealed with: 64 hex digits or base64, checked.
    pub encryption_key: Option<Secret>,
    /// Base of links in webhooks, without a slash at its end.
    pub public_url: Option<String>,
    /// Whose `X-Forwarded-For` counts.
    pub trusted_proxies: Networks,
    /// Private networks that deciders and webhooks may reach.
    pub outbound_allow: Networks,
    /// How log lines look; none leaves it to whether a terminal is there.
    pub log_format: Option<LogFormat>,
    /// Log levels, in the syntax of `RUST_LOG`.
    pub log_filter: String,
}

/// The levels without `RUST_LOG`. What PostgreSQL notes of a table that is there already is no news of Fuse.
const LOG_FILTER: &str = "info,sqlx=warn";
/// The longest master token, in characters.
const TOKEN_MAX: usize = 512;
/// A master token that is shorter can be guessed, and is warned of.
pub(crate) const TOKEN_SAFE: usize = 16;

impl Config {
    /// Reads flags and variables. Nothing is read from or written to the disk.
    ///
    /// # Errors
    /// The first setting that is missing or broken.
    pub fn read(
        flags: &Flags,
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ConfigError> {
        let env = Env(&lookup);
        restate_mode(&env)?;
        let listen = match &flags.listen {
            Some(text) => address("--listen", text)?,
            None => match env.text("ORCH_LISTEN")? {
                Some(text) => address("ORCH_LISTEN", &text)?,
                None => SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            },
        };
        let data_dir = data_dir(flags, &env)?;
        let database_url = match &flags.database_url {
            Some(url) => database("--database-url", url)?,
            None => match env.text("DATABASE_URL")? {
                Some(url) => database("DATABASE_URL", &url)?,
                None => embedded(&data_dir)?,
            },
        };
        Ok(Self {
            listen,
            data_dir,
            database_url,
            master_token: env.text("ORCH_AUTH_TOKEN")?.map(token).transpose()?,
            encryption_key: env.text("TOKEN_ENCRYPTION_KEY")?.map(key).transpose()?,
            public_url: env.text("ORCH_PUBLIC_URL")?.map(public_url).transpose()?,
            trusted_proxies: networks(&env, "FUSE_TRUSTED_PROXIES")?,
            outbound_allow: networks(&env, "FUSE_OUTBOUND_ALLOW")?,
            log_format: env.text("FUSE_LOG_FORMAT")?.map(log_format).transpose()?,
            log_filter: log_filter(&env)?,
        })
    }

    /// Where the generated master token is kept.
    #[must_use]
    pub fn token_file(&self) -> PathBuf {
        self.data_dir.join("master-token")
    }

    /// The master token: the given one, or the generated one, which is made at the first start (spec: "Access").
    ///
    /// # Errors
    /// The token's file cannot be written or read, is open to others, or holds no token.
    pub fn master_token(&self) -> Result<Secret, ConfigError> {
        if let Some(given) = &self.master_token {
            return Ok(given.clone());
        }
        let path = self.token_file();
        let kept = load_or_create(&path, secret::fresh_token)?;
        token(kept.expose().to_owned())
            .map_err(|e| ConfigError::new(path.display().to_string(), e.message))
    }
}

struct Env<'a>(&'a dyn Fn(&str) -> Option<OsString>);

impl Env<'_> {
    /// A variable that is set to nothing is more likely a slip than a wish, so it is refused.
    fn text(&self, name: &str) -> Result<Option<String>, ConfigError> {
        let Some(value) = (self.0)(name) else {
            return Ok(None);
        };
        let text = value
            .into_string()
            .map_err(|_| ConfigError::new(name, "is not UTF-8"))?;
        if text.trim().is_empty() {
            return Err(ConfigError::new(
                name,
                "is set and empty; give it a value or unset it",
            ));
        }
        Ok(Some(text))
    }

    fn folder(&self, name: &str) -> Option<PathBuf> {
        (self.0)(name).filter(|v| !v.is_empty()).map(PathBuf::from)
    }
}

fn restate_mode(env: &Env<'_>) -> Result<(), ConfigError> {
    match env.text("FUSE_RESTATE_MODE")?.as_deref() {
        None | Some("off") => Ok(()),
        Some("self" | "cloud") => Err(ConfigError::new(
            "FUSE_RESTATE_MODE",
            "self and cloud are not served by this release; set it to off",
        )),
        Some(_) => Err(ConfigError::new(
            "FUSE_RESTATE_MODE",
            "must be off, self or cloud",
        )),
    }
}

fn address(name: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    let local = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"));
    local.as_deref().unwrap_or(text).parse().map_err(|_| {
        ConfigError::new(
            name,
            "must be an address and a port, like 127.0.0.1:8080 or [::1]:8080",
        )
    })
}

fn data_dir(flags: &Flags, env: &Env<'_>) -> Result<PathBuf, ConfigError> {
    let given = match &flags.data_dir {
        Some(dir) => Some(("--data-dir", dir.clone())),
        None => env
            .text("FUSE_DATA_DIR")?
            .map(|dir| ("FUSE_DATA_DIR", PathBuf::from(dir))),
    };
    if let Some((name, dir)) = given {
        if dir.as_os_str().is_empty() {
            return Err(ConfigError::new(name, "is empty"));
        }
        return std::path::absolute(&dir).map_err(|e| ConfigError::new(name, e.to_string()));
    }
    // The desktop convention says that a relative XDG path is to be ignored.
    if let Some(base) = env.folder("XDG_DATA_HOME").filter(|p| p.is_absolute()) {
        return Ok(base.join("fuse"));
    }
    match env.folder("HOME").filter(|p| p.is_absolute()) {
        Some(home) => Ok(home.join(".local/share/fuse")),
        None => Err(ConfigError::new(
            "FUSE_DATA_DIR",
            "is not set, and there is no HOME to derive it from",
        )),
    }
}

fn embedded(data_dir: &Path) -> Result<Secret, ConfigError> {
    let dir = data_dir
        .to_str()
        .ok_or_else(|| ConfigError::new("FUSE_DATA_DIR", "is not UTF-8"))?;
    Ok(Secret::new(format!("sqlite:{dir}/fuse.db")))
}

fn database(name: &str, url: &str) -> Result<Secret, ConfigError> {
    let server = ["postgres://", "postgresql://"].iter().any(|scheme| {
        url.strip_prefix(scheme)
            .is_some_and(|rest| !rest.is_empty())
    });
    let file = url
        .strip_prefix("sqlite:")
        .is_some_and(|path| !path.is_empty() && path != ":memory:" && path != "//");
    if !server && !file {
        return Err(ConfigError::new(
            name,
            "must be postgres://… or sqlite:PATH",
        ));
    }
    Ok(Secret::new(url.to_owned()))
}

fn token(text: String) -> Result<Secret, ConfigError> {
    let refuse = |message: String| Err(ConfigError::new("ORCH_AUTH_TOKEN", message));
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        return refuse("must be visible ASCII characters without blanks".to_owned());
    }
    if text.len() > TOKEN_MAX {
        return refuse(format!("must have at most {TOKEN_MAX} characters"));
    }
    if text.starts_with(fuse_api::keys::KeySecret::PREFIX) {
        return refuse(format!(
            "must not begin like an API key ({})",
            fuse_api::keys::KeySecret::PREFIX
        ));
    }
    Ok(Secret::new(text))
}

fn key(text: String) -> Result<Secret, ConfigError> {
    let secret = Secret::new(text);
    match fuse_store::Sealer::from_text(secret.expose()) {
        Ok(_) => Ok(secret),
        Err(error) => Err(ConfigError::new("TOKEN_ENCRYPTION_KEY", error.to_string())),
    }
}

fn public_url(text: String) -> Result<String, ConfigError> {
    let parsed: Option<http::Uri> = text.parse().ok();
    let fine = parsed.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.authority().is_some_and(|a| !a.as_str().contains('@'))
            && uri.query().is_none()
    });
    if !fine || text.contains('#') {
        return Err(ConfigError::new(
            "ORCH_PUBLIC_URL",
            "must be http://… or https://… without user, query or fragment",
        ));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn networks(env: &Env<'_>, name: &str) -> Result<Networks, ConfigError> {
    match env.text(name)? {
        None => Ok(Networks::default()),
        Some(text) => Networks::parse(&text).map_err(|entry| {
            ConfigError::new(
                name,
                format!("{entry:?} is no network; it takes a list like 10.0.0.0/8,192.168.1.7"),
            )
        }),
    }
}

fn log_format(text: String) -> Result<LogFormat, ConfigError> {
    match text.as_str() {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(ConfigError::new("FUSE_LOG_FORMAT", "must be text or json")),
    }
}

fn log_filter(env: &Env<'_>) -> Result<String, ConfigError> {
    let text = env
        .text("RUST_LOG")?
        .unwrap_or_else(|| LOG_FILTER.to_owned());
    match crate::logging::check_filter(&text) {
        Ok(()) => Ok(text),
        Err(message) => Err(ConfigError::new("RUST_LOG", message)),
    }
}

#[cfg(test)]
mod tests;
