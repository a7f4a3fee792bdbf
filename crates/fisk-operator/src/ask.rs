//! The tools by which the model asks the operator something of its own.

mod input;
#[cfg(test)]
mod tests;

use fisk_domain::{Negative, PromptFailure, Rejected};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::prompter::{Confirm, Input, Prompter, Select};

/// One of the three tools. They are the agent's own and never a command of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskTool {
    /// Yes or no.
    Confirm,
    /// One of several.
    Select,
    /// A text.
    Input,
}

/// What the model asks, once its input is checked.
#[derive(Debug, Clone)]
pub enum Question {
    /// Yes or no.
    Confirm(Confirm),
    /// One of several.
    Select(Select),
    /// A text.
    Input(Input),
}

impl AskTool {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Confirm, Self::Select, Self::Input];

    /// Its name. No command of the application may have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Confirm => "ask_human_confirm",
            Self::Select => "ask_human_select",
            Self::Input => "ask_human_input",
        }
    }

    /// The tool of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// What the model reads about it.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Confirm => {
                "Ask the human operator a yes-or-no question and wait for the answer. Without an operator, or without an answer, it is no."
            }
            Self::Select => {
                "Ask the human operator to choose one of several options and wait for the answer. Without an operator, or without an answer, nothing is selected."
            }
            Self::Input => {
                "Ask the human operator for a short text and wait for the answer. Without an operator, or without an answer, there is no value. Do not ask for secrets."
            }
        }
    }

    /// The JSON schema of its input.
    pub fn input_schema(self) -> Value {
        input::schema(self)
    }

    /// Checks the model's input.
    ///
    /// # Errors
    /// [`Rejected`], which names the property and what is allowed.
    pub fn question(self, input: &Map<String, Value>) -> Result<Question, Rejected> {
        input::question(self, input)
    }

    /// Checks the model's input, asks the operator and gives the tool's result. A run that is cancelled, or that has no operator,
    /// has its negative answer before any prompt.
    ///
    /// # Errors
    /// [`Rejected`] where the input is wrong; nobody is asked then.
    pub async fn call(
        self,
        input: &Map<String, Value>,
        prompter: &dyn Prompter,
        cancel: &CancellationToken,
    ) -> Result<Value, Rejected> {
        let question = self.question(input)?;
        Ok(question.ask(prompter, cancel).await)
    }
}

impl Question {
    /// Asks the operator and gives the tool's result, which is negative where there is no answer.
    pub async fn ask(&self, prompter: &dyn Prompter, cancel: &CancellationToken) -> Value {
        let answer = if cancel.is_cancelled() {
            Err(PromptFailure::Cancelled)
        } else if !prompter.interactive() {
            Err(PromptFailure::NoOperator)
        } else {
            self.answer(prompter, cancel).await
        };
        answer.unwrap_or_else(|failure| self.negative().to_json(&failure.to_string()))
    }

    async fn answer(
        &self,
        prompter: &dyn Prompter,
        cancel: &CancellationToken,
    ) -> Result<Value, PromptFailure> {
        Ok(match self {
            Self::Confirm(question) => {
                if prompter.confirm(question, cancel).await? {
                    json!({"confirmed": true})
                } else {
                    self.negative().to_json("the operator said no")
                }
            }
            Self::Select(question) => match prompter.select(question, cancel).await? {
                Some(index) => {
                    let selected = question.options.get(index).ok_or_else(|| {
                        PromptFailure::Failed("the answer is none of the options".to_owned())
                    })?;
                    json!({ "selected": selected })
                }
                None => self
                    .negative()
                    .to_json("the operator chose none of the options"),
            },
            Self::Input(question) => match prompter.input(question, cancel).await? {
                Some(value) => json!({ "value": value }),
                None => self.negative().to_json("the operator gave no value"),
            },
        })
    }

    fn negative(&self) -> Negative {
        match self {
            Self::Confirm(_) => Negative::Confirm,
            Self::Select(_) => Negative::Select,
            Self::Input(_) => Negative::Input,
        }
    }
}
