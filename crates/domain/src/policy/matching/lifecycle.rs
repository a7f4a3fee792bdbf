//! The actions on an environment that a gate can hold.

/// An action on the environment itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LifecycleAction {
    /// Remove it.
    Destroy,
    /// Copy it.
    Fork,
    /// Move it to another host.
    Migrate,
    /// Let it run dry.
    Drain,
    /// Keep its disk.
    Snapshot,
    /// Give its guest a new token.
    RotateToken,
}

impl LifecycleAction {
    /// Every action, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::Destroy,
        Self::Fork,
        Self::Migrate,
        Self::Drain,
        Self::Snapshot,
        Self::RotateToken,
    ];

    /// The wire's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Destroy => "destroy",
            Self::Fork => "fork",
            Self::Migrate => "migrate",
            Self::Drain => "drain",
            Self::Snapshot => "snapshot",
            Self::RotateToken => "rotate-token",
        }
    }

    /// The action of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }
}
