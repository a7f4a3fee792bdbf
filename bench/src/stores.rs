//! The two databases, and where everything of a run lies.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use fuse_backend::{Backend, Sandbox};
use fuse_store::{Sealer, Store, StoreConfig};
use std::sync::OnceLock;

use crate::postgres::Postgres;
use crate::server::{KEY, Server};

/// A database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One file.
    Sqlite,
    /// A server.
    Postgres,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// Everything that a run needs and leaves behind.
pub struct Bed {
    fuse: PathBuf,
    folder: tempfile::TempDir,
    postgres: OnceLock<Postgres>,
    folders: Mutex<Vec<PathBuf>>,
}

/// A data folder and its database.
pub struct Place {
    /// The server's data folder.
    pub data: PathBuf,
    /// The database's URL.
    pub url: String,
}

impl Bed {
    /// An empty one.
    pub fn new(fuse: PathBuf) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("fuse-bench-").tempdir();
        Ok(Self {
            fuse,
            folder: folder.context("a temporary folder")?,
            postgres: OnceLock::new(),
            folders: Mutex::default(),
        })
    }

    /// The PostgreSQL server; it starts when it is first asked for.
    pub fn postgres(&self) -> Result<&Postgres> {
        if let Some(running) = self.postgres.get() {
            return Ok(running);
        }
        let fresh = Postgres::start()?;
        Ok(self.postgres.get_or_init(|| fresh))
    }

    /// What the PostgreSQL server is, if it was needed.
    pub fn describe_postgres(&self) -> Option<String> {
        self.postgres.get()?.describe().ok()
    }

    /// A fresh folder and a fresh database.
    pub fn place(&self, kind: Kind, name: &str) -> Result<Place> {
        let data = self.data(&format!("{name}-{}", kind.name()));
        let url = match kind {
            Kind::Sqlite => {
                std::fs::create_dir_all(&data)?;
                format!("sqlite:{}", data.join("fuse.db").display())
            }
            Kind::Postgres => self.postgres()?.database(name)?,
        };
        Ok(Place { data, url })
    }

    /// A folder for environments, which are removed at the end.
    pub fn data(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        folders.push(path.clone());
        path
    }

    /// A server there.
    pub async fn serve(&self, place: &Place) -> Result<Server> {
        Server::start(&self.fuse, &place.data, &place.url).await
    }

    /// Removes the environments that are left.
    pub async fn clear(&self) {
        let folders = self
            .folders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for folder in folders
            .iter()
            .filter(|folder| folder.join("environments").is_dir())
        {
            if let Err(error) = clear(folder).await {
                eprintln!("environments in {} are left: {error:#}", folder.display());
            }
        }
    }
}

async fn clear(folder: &Path) -> Result<()> {
    let sandbox = Sandbox::new(folder)?;
    for id in sandbox.list().await? {
        sandbox.destroy(&id).await?;
    }
    Ok(())
}

/// Opens a store in this process, without its notices: nobody waits here.
pub async fn open(url: &str) -> Result<Store> {
    let (store, mut notices) = Store::open(&StoreConfig {
        database_url: url.to_owned(),
        sealer: Sealer::from_text(KEY)?,
    })
    .await?;
    tokio::spawn(async move { while notices.recv().await.is_some() {} });
    Ok(store)
}
