//! Interventions as people read them. Everything an agent wrote is made safe here.

use fuse_api::exec::ExecResult;
use fuse_api::intervention::{
    ActionResult, Actor, Decision, ExecPayload, Intervention, LifecyclePayload, Outcome,
    ReviewFormat, ReviewPayload, State,
};
use fuse_terminal::{
    ColourChoice, Exact, MAX_OPTIONS, MAX_TEXT, Review, Style, strip, strip_and_cut, strip_lines,
};

use crate::table::Sheet;
use crate::time::relative;

/// Lines of a command's output that are shown unless all are asked for.
const OUTPUT_LINES: usize = 20;

/// How it is shown.
#[derive(Clone, Copy)]
pub struct View {
    pub colour: ColourChoice,
    /// Columns of the terminal it is for.
    pub columns: Option<usize>,
    /// Nothing is cut.
    pub full: bool,
}

/// What it is about, in one line.
pub fn summary(intervention: &Intervention) -> String {
    let payload = &intervention.payload;
    if let Some(ask) = &payload.ask {
        return strip_and_cut(&ask.question, MAX_TEXT);
    }
    if let Some(review) = &payload.review {
        let path = review
            .path
            .as_deref()
            .map(|path| Exact::value(path).whole().to_owned());
        let message = review
            .message
            .as_deref()
            .map(|message| strip_and_cut(message, MAX_TEXT));
        return match (path, message) {
            (Some(path), Some(message)) => format!("{path}: {message}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => format!("a {}", review.format.as_str()),
        };
    }
    if let Some(exec) = &payload.exec {
        return will_run(exec).whole().to_owned();
    }
    if let Some(action) = &payload.lifecycle {
        return will_do(action).whole().to_owned();
    }
    if intervention.unreadable {
        return "unreadable".to_owned();
    }
    intervention.gate.as_deref().map(strip).unwrap_or_default()
}

/// A held command.
pub fn will_run(exec: &ExecPayload) -> Exact {
    match (&exec.argv, &exec.shell) {
        (Some(argv), _) => Exact::argv(argv),
        (None, Some(shell)) => Exact::argv(["sh", "-c", shell]),
        (None, None) => Exact::argv([""; 0]),
    }
}

/// A held lifecycle action, with what it was asked with.
fn will_do(action: &LifecyclePayload) -> Exact {
    let mut words = vec![action.action.clone()];
    words.extend(action.params.as_ref().map(ToString::to_string));
    Exact::argv(words)
}

/// All that a decision needs, the content of a review excepted.
pub fn details(intervention: &Intervention, view: View) -> String {
    let mut sheet = Sheet::new(view.columns);
    let state = match intervention.state {
        State::Pending => Style::Yellow,
        State::Approved => Style::Green,
        State::Rejected | State::Expired | State::Cancelled => Style::Red,
    };
    sheet.row("id", intervention.id.as_str());
    sheet.row("environment", intervention.env_id.as_str());
    sheet.row("kind", intervention.kind.as_str());
    sheet.styled("state", intervention.state.as_str(), view.colour, state);
    if intervention.unreadable {
        sheet.styled(
            "unreadable",
            "something stored of it cannot be read; it can be rejected, not approved",
            view.colour,
            Style::Red,
        );
    }
    if let Some(gate) = &intervention.gate {
        let mode = intervention
            .mode
            .map(|mode| format!(" ({mode})"))
            .unwrap_or_default();
        sheet.row("gate", &format!("{}{mode}", strip(gate)));
    }
    let payload = &intervention.payload;
    if payload.gates.len() > 1 {
        let gates: Vec<String> = payload.gates.iter().map(|gate| strip(gate)).collect();
        sheet.row("all gates", &gates.join(", "));
    }
    if let Some(carrier) = &payload.carrier {
        sheet.row("read through", &format!("carrier {}", strip(carrier)));
    }
    if let Some(reason) = &payload.gate_reason {
        sheet.row("gate says", &strip_lines(reason));
    }
    let by = actor(&intervention.triggered_by);
    sheet.row(
        "raised",
        &format!("{} by {by}", relative(intervention.created_at)),
    );
    if intervention.state == State::Pending {
        sheet.row(
            "deadline",
            &format!(
                "{} ({})",
                relative(intervention.deadline),
                intervention.deadline
            ),
        );
    }
    content(&mut sheet, intervention, view);
    if let Some(decision) = &intervention.decision {
        decided(&mut sheet, decision, view);
    }
    if let Some(outcome) = &intervention.result {
        result(&mut sheet, outcome, view);
    }
    if !intervention.payload_hash.is_empty() {
        sheet.row("payload hash", &strip(&intervention.payload_hash));
    }
    sheet.into_text()
}

fn content(sheet: &mut Sheet, intervention: &Intervention, view: View) {
    let payload = &intervention.payload;
    if let Some(ask) = &payload.ask {
        let question = if view.full {
            strip(&ask.question)
        } else {
            strip_and_cut(&ask.question, MAX_TEXT)
        };
        sheet.row("question", &question);
        if question.ends_with('…') && !ask.question.ends_with('…') {
            sheet.row("", "[cut; --full shows all of it]");
        }
        for choice in ask.choices.iter().take(MAX_OPTIONS) {
            sheet.row("choice", &strip_and_cut(choice, MAX_TEXT));
        }
        if ask.choices.is_empty() {
            sheet.row("choices", "none: any answer");
        }
    }
    if let Some(exec) = &payload.exec {
        exact(sheet, "will run", &will_run(exec), view);
        if let Some(millis) = exec.timeout_ms {
            sheet.row("timeout", &format!("{millis} ms"));
        }
    }
    if let Some(action) = &payload.lifecycle {
        exact(sheet, "action", &will_do(action), view);
    }
    if let Some(review) = &payload.review {
        reviewed(sheet, review, view);
    }
}

fn reviewed(sheet: &mut Sheet, review: &ReviewPayload, view: View) {
    if let Some(path) = &review.path {
        exact(sheet, "path", &Exact::value(path), view);
    }
    if let Some(path) = &review.resolved_path {
        exact(sheet, "really", &Exact::value(path), view);
    }
    if let Some(message) = &review.message {
        sheet.row("message", &strip_lines(message));
    }
    sheet.row("format", review.format.as_str());
    if review.truncated {
        sheet.row("note", "the file is longer than 1 MiB and is cut");
    }
    if review.lossy {
        sheet.row("note", "bytes that are not UTF-8 were replaced");
    }
}

/// The content of a review, whole, for the end of what is shown.
pub fn review_content(review: &ReviewPayload, colour: ColourChoice) -> String {
    let content = match review.format {
        ReviewFormat::Text => Review::text(&review.content),
        ReviewFormat::Diff => Review::diff(&review.content),
    };
    let lines = content.lines().count();
    let hidden = match content.made_visible() {
        0 => String::new(),
        n => format!(", {n} hidden characters shown as escapes"),
    };
    let head = format!("content: {lines} lines{hidden}");
    format!(
        "\n{}\n{}",
        colour.paint(Style::Bold, &head),
        content.render(colour)
    )
}

fn decided(sheet: &mut Sheet, decision: &Decision, view: View) {
    let style = match decision.outcome {
        Outcome::Approve => Style::Green,
        Outcome::Reject => Style::Red,
    };
    sheet.styled("outcome", decision.outcome.as_str(), view.colour, style);
    sheet.row(
        "decided",
        &format!(
            "{} by {}",
            relative(decision.decided_at),
            actor(&decision.decided_by)
        ),
    );
    if !decision.answer.is_empty() {
        sheet.row("answer", &strip_lines(&decision.answer));
    }
    if !decision.reason.is_empty() {
        sheet.row("reason", &strip_lines(&decision.reason));
    }
    if let Some(argv) = &decision.edited_argv {
        exact(sheet, "edited to", &Exact::argv(argv), view);
    }
    if let Some(text) = &decision.edited_text {
        exact(sheet, "edited to", &Exact::value(text), view);
    }
    if let Some(grant) = &decision.grant {
        sheet.row("grant", &grant.to_string());
    }
}

fn result(sheet: &mut Sheet, result: &ActionResult, view: View) {
    if let Some(error) = &result.error {
        sheet.row("failed", &strip_lines(error));
    }
    if let Some(id) = &result.env_id {
        sheet.row("made", id.as_str());
    }
    if let Some(id) = &result.snapshot_id {
        sheet.row("made", id.as_str());
    }
    if let Some(exec) = &result.exec {
        let how = if exec.timed_out {
            " (stopped at its timeout)"
        } else {
            ""
        };
        sheet.row("exit code", &format!("{}{how}", exec.exit_code));
        let ExecResult { stdout, stderr, .. } = exec;
        said(sheet, "stdout", stdout, view);
        said(sheet, "stderr", stderr, view);
        if exec.truncated {
            sheet.row("note", "output beyond 1 MiB was dropped");
        }
    }
}

fn said(sheet: &mut Sheet, label: &str, text: &str, view: View) {
    let text = strip_lines(text.trim_end_matches('\n'));
    if text.is_empty() {
        return;
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let most = if view.full { lines.len() } else { OUTPUT_LINES };
    let shown: Vec<&str> = lines.iter().copied().take(most).collect();
    sheet.row(label, &shown.join("\n"));
    if lines.len() > most {
        sheet.row(
            "",
            &format!("[{} more lines; --full shows them]", lines.len() - most),
        );
    }
}

/// What will run or be opened: cut only with a mark, and never where all is asked for.
fn exact(sheet: &mut Sheet, label: &str, value: &Exact, view: View) {
    if view.full {
        sheet.row(label, value.whole());
    } else {
        sheet.row(label, &value.to_string());
    }
}

pub fn actor(actor: &Actor) -> String {
    let id = strip(&actor.id);
    let name = strip(&actor.name);
    if name.is_empty() || name == id {
        id
    } else {
        format!("{name} ({id})")
    }
}

#[cfg(test)]
#[path = "describe_tests.rs"]
pub mod tests;
