//! What a run has put on record, and the conversation that follows from it.

use fisk_domain::session::{Record, Replay};
use fisk_llm::Message;

use crate::session::Journal;

/// The record of one run. Without a journal it is kept in memory alone, and everything else is the same.
#[derive(Debug)]
pub struct Log {
    replay: Replay,
    messages: Vec<Message>,
    journal: Option<Journal>,
}

impl Log {
    /// Begins a run with its first record, which is in the journal already where there is one.
    ///
    /// # Errors
    /// A record that begins no run.
    pub fn begin(first: Record, journal: Option<Journal>) -> Result<Self, String> {
        let mut replay = Replay::default();
        replay.apply(first).map_err(|error| error.to_string())?;
        Self::at(replay, journal)
    }

    /// Goes on where a record ended.
    ///
    /// # Errors
    /// The journal cannot be written, or its conversation is none.
    pub fn resume(replay: Replay, journal: Journal) -> Result<Self, String> {
        let mut log = Self::at(replay, Some(journal))?;
        log.record(Record::Resumed)?;
        Ok(log)
    }

    fn at(replay: Replay, journal: Option<Journal>) -> Result<Self, String> {
        let mut log = Self {
            replay,
            messages: Vec::new(),
            journal,
        };
        log.follow()?;
        Ok(log)
    }

    /// Where the run stands.
    pub fn replay(&self) -> &Replay {
        &self.replay
    }

    /// The conversation.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The name of the session, where there is one.
    pub fn session(&self) -> Option<&str> {
        self.journal.as_ref().map(Journal::name)
    }

    /// Whether the record can follow.
    ///
    /// # Errors
    /// Why not.
    pub fn admits(&self, record: &Record) -> Result<(), String> {
        self.replay
            .admits(record)
            .map_err(|error| error.to_string())
    }

    /// Puts a record into the journal, and only then takes it as a fact.
    ///
    /// # Errors
    /// It cannot follow, or the disk fails. What it announces must not happen then.
    pub fn record(&mut self, record: Record) -> Result<(), String> {
        self.admits(&record)?;
        if let Some(journal) = &mut self.journal {
            let name = journal.name().to_owned();
            journal
                .append(&record)
                .map_err(|error| format!("the session {name:?} cannot be written: {error}"))?;
        }
        self.replay
            .apply(record)
            .map_err(|error| error.to_string())?;
        self.follow()
    }

    fn follow(&mut self) -> Result<(), String> {
        for value in &self.replay.messages()[self.messages.len()..] {
            let message = serde::Deserialize::deserialize(value)
                .map_err(|error| format!("the conversation holds what is no message: {error}"))?;
            self.messages.push(message);
        }
        Ok(())
    }
}
