//! Who decides: whoever sits at the keyboard, or a script.

use std::io::{BufRead, Write};

use anyhow::{Result, bail};

/// A decision about a held command.
pub enum Verdict {
    /// Let it run.
    Approve,
    /// Do not, and say why.
    Reject(String),
}

/// The person of the story.
pub enum Person {
    /// Reads the keyboard.
    Keyboard,
    /// Rejects at first, then approves.
    Script {
        /// Whether the rejection was given already.
        rejected: bool,
    },
}

impl Person {
    /// The one who is there.
    pub fn at_the_keyboard() -> Self {
        Self::Keyboard
    }

    /// The one who always tells the same story.
    pub fn scripted() -> Self {
        Self::Script { rejected: false }
    }

    /// Decides about a held command.
    pub fn decides(&mut self) -> Result<Verdict> {
        match self {
            Self::Script { rejected: false } => {
                *self = Self::Script { rejected: true };
                let reason = "show me first what it replaces";
                println!("\nthe person rejects: {reason}");
                Ok(Verdict::Reject(reason.to_owned()))
            }
            Self::Script { rejected: true } => {
                println!("\nthe person approves");
                Ok(Verdict::Approve)
            }
            Self::Keyboard => loop {
                match read("\nYou decide: [a]pprove or [r]eject? ")?.as_str() {
                    "a" | "approve" => return Ok(Verdict::Approve),
                    "r" | "reject" => loop {
                        let reason = read("The reason, for the agent: ")?;
                        if !reason.is_empty() {
                            return Ok(Verdict::Reject(reason));
                        }
                    },
                    _ => {}
                }
            },
        }
    }

    /// Answers a question with one of `choices`.
    pub fn answers(&self, choices: &[&str]) -> Result<String> {
        match self {
            Self::Script { .. } => {
                let answer = choices.first().copied().unwrap_or_default();
                println!("\nthe person answers: {answer}");
                Ok(answer.to_owned())
            }
            Self::Keyboard => loop {
                let answer = read(&format!("\nYour answer ({}): ", choices.join(" or ")))?;
                if choices.contains(&answer.as_str()) {
                    return Ok(answer);
                }
            },
        }
    }
}

fn read(prompt: &str) -> Result<String> {
    print!("{prompt}");
    std::io::stdout().flush()?;
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line)? == 0 {
        bail!("the input ended before you decided");
    }
    Ok(line.trim().to_owned())
}
