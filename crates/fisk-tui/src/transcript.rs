//! What happened in the run so far, in bounded memory.

use std::{borrow::Cow, collections::VecDeque};

use fisk_domain::event::Ending;
use fuse_terminal::{Exact, strip_and_cut};
use serde_json::Value;

use crate::wrap::{Wrap, clean_line};

/// The most lines that are kept.
pub(crate) const MAX_LINES: usize = 10_000;
/// The most bytes that are kept.
pub(crate) const MAX_BYTES: usize = 8 * 1024 * 1024;
/// A line that is longer goes on in another.
const MAX_LINE: usize = 4096;
/// Lines of one output that are kept, half of them from its end.
const MAX_OUTPUT_LINES: usize = 1000;
/// Characters of a built-in tool's input that are shown.
const MAX_INPUT: usize = 500;

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Plain,
    Dim,
    Command,
    Good,
    Bad,
    Warning,
    Selected,
}

/// A line as it is shown. Its gutter is ours, so that no text of a model can pass for a line of ours.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    pub gutter: &'static str,
    pub text: Cow<'a, str>,
    pub look: Look,
    pub wrap: Wrap,
}

/// Where a tool call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    Waiting,
    Ended(Ending),
}

#[derive(Debug)]
enum Kind {
    Said,
    Thought { characters: usize },
    Tool(Tool),
    Note(Look),
}

#[derive(Debug)]
struct Tool {
    id: String,
    head: String,
    mark: Option<String>,
    progress: Progress,
    open: bool,
}

/// One thing that happened.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Counts up, and stays when entries before it are dropped.
    pub seq: u64,
    kind: Kind,
    body: VecDeque<String>,
    /// The last line of `body`, unstripped, while more of it may come: an escape sequence may come in pieces.
    raw: Option<String>,
    /// Lines of the body that were dropped.
    dropped: usize,
}

impl Entry {
    fn size(&self) -> usize {
        match &self.kind {
            Kind::Tool(tool) => tool.head.len() + tool.id.len(),
            Kind::Said | Kind::Thought { .. } | Kind::Note(_) => 0,
        }
    }

    pub fn is_tool(&self) -> bool {
        matches!(self.kind, Kind::Tool(_))
    }

    /// How many of its first lines are gone.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    fn header(&self) -> usize {
        match &self.kind {
            Kind::Said | Kind::Note(_) => 1,
            Kind::Thought { .. } => 2,
            Kind::Tool(tool) => 3 + usize::from(tool.mark.is_some()),
        }
    }

    fn is_folded(&self, thinking: bool) -> bool {
        match &self.kind {
            Kind::Said | Kind::Note(_) => false,
            Kind::Thought { .. } => !thinking,
            Kind::Tool(tool) => !tool.open,
        }
    }

    /// How many lines are shown of it; at least one.
    pub fn lines(&self, thinking: bool) -> usize {
        if self.is_folded(thinking) {
            self.header()
        } else {
            self.header() + self.body.len()
        }
    }

    /// One of its lines.
    pub fn line(&self, at: usize, selected: Option<u64>) -> Shown<'_> {
        let ours = |text: String, look: Look| Shown {
            gutter: "",
            text: Cow::Owned(text),
            look,
            wrap: Wrap::Words,
        };
        if at == 0 {
            return ours(String::new(), Look::Plain);
        }
        if let Some(line) = at
            .checked_sub(self.header())
            .and_then(|at| self.body.get(at))
        {
            let (gutter, look, wrap) = match &self.kind {
                Kind::Said => ("  ", Look::Plain, Wrap::Words),
                Kind::Thought { .. } => ("  ~ ", Look::Dim, Wrap::Words),
                Kind::Tool(_) => ("  │ ", Look::Dim, Wrap::Exact),
                Kind::Note(look) => ("! ", *look, Wrap::Words),
            };
            return Shown {
                gutter,
                text: Cow::Borrowed(line),
                look,
                wrap,
            };
        }
        match &self.kind {
            Kind::Said | Kind::Note(_) => ours(String::new(), Look::Plain),
            Kind::Thought { characters } => ours(
                format!("~ thinking, {characters} characters (t)"),
                Look::Dim,
            ),
            Kind::Tool(tool) => match (at, &tool.mark) {
                (1, _) => Shown {
                    gutter: "> ",
                    text: Cow::Borrowed(&tool.head),
                    look: if selected == Some(self.seq) {
                        Look::Selected
                    } else {
                        Look::Command
                    },
                    wrap: Wrap::Exact,
                },
                (2, Some(mark)) => ours(mark.clone(), Look::Warning),
                _ => {
                    let (text, look) = tool.progress.words();
                    let lines = self.body.len() + self.dropped;
                    let output = match lines {
                        0 => String::new(),
                        lines => format!(", {lines} lines of output (o)"),
                    };
                    ours(format!("  {text}{output}"), look)
                }
            },
        }
    }
}

impl Progress {
    fn words(self) -> (String, Look) {
        match self {
            Self::Running => ("running".to_owned(), Look::Dim),
            Self::Waiting => ("WAITING FOR YOU".to_owned(), Look::Warning),
            Self::Ended(Ending::Ran(None | Some(0))) => ("done".to_owned(), Look::Good),
            Self::Ended(Ending::Ran(Some(code))) => (format!("exit code {code}"), Look::Bad),
            Self::Ended(Ending::Denied) => ("denied".to_owned(), Look::Bad),
            Self::Ended(Ending::Error) => ("failed".to_owned(), Look::Bad),
        }
    }
}

/// The entries, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    entries: VecDeque<Entry>,
    next: u64,
    lines: usize,
    bytes: usize,
}

impl Transcript {
    pub fn entries(&self) -> &VecDeque<Entry> {
        &self.entries
    }

    /// Where the entry of that number is, or the first one after it.
    pub fn position(&self, seq: u64) -> usize {
        self.entries.partition_point(|entry| entry.seq < seq)
    }

    fn push(&mut self, kind: Kind) {
        self.seal();
        let entry = Entry {
            seq: self.next,
            kind,
            body: VecDeque::new(),
            raw: None,
            dropped: 0,
        };
        self.next += 1;
        // An entry without a body costs as well.
        self.lines += 1;
        self.bytes += entry.size();
        self.entries.push_back(entry);
        self.trim();
    }

    /// No more text comes for the last entry.
    fn seal(&mut self) {
        if let Some(last) = self.entries.back_mut() {
            last.raw = None;
        }
    }

    pub fn say(&mut self, text: &str) {
        if !matches!(self.entries.back(), Some(entry) if matches!(entry.kind, Kind::Said)) {
            self.push(Kind::Said);
        }
        self.stream(text);
    }

    pub fn think(&mut self, text: &str) {
        if !matches!(self.entries.back(), Some(entry) if matches!(entry.kind, Kind::Thought { .. }))
        {
            self.push(Kind::Thought { characters: 0 });
        }
        if let Some(Kind::Thought { characters }) =
            self.entries.back_mut().map(|entry| &mut entry.kind)
        {
            *characters += text.chars().count();
        }
        self.stream(text);
    }

    pub fn note(&mut self, text: &str, look: Look) {
        self.push(Kind::Note(look));
        self.stream(text);
        self.seal();
    }

    pub fn call(&mut self, id: String, tool: &str, input: &Value, argv: Option<Vec<String>>) {
        let (head, mark) = match argv {
            Some(argv) => {
                let shown = Exact::argv(argv).to_string();
                match shown.split_once('\n') {
                    Some((line, mark)) => (line.to_owned(), Some(mark.to_owned())),
                    None => (shown, None),
                }
            }
            None => (strip_and_cut(&format!("{tool} {input}"), MAX_INPUT), None),
        };
        self.push(Kind::Tool(Tool {
            id,
            head,
            mark,
            progress: Progress::Running,
            open: false,
        }));
    }

    fn tool_mut(&mut self, id: &str) -> Option<usize> {
        self.entries
            .iter()
            .rposition(|entry| matches!(&entry.kind, Kind::Tool(tool) if tool.id == id))
    }

    /// Whether a call waits for the operator, or goes on.
    pub fn waiting(&mut self, id: &str, waits: bool) {
        if let Some(at) = self.tool_mut(id)
            && let Kind::Tool(tool) = &mut self.entries[at].kind
        {
            tool.progress = match waits {
                true => Progress::Waiting,
                false => Progress::Running,
            };
        }
    }

    pub fn ended(&mut self, id: &str, result: &str, ending: Ending) {
        let Some(at) = self.tool_mut(id) else {
            return;
        };
        if let Kind::Tool(tool) = &mut self.entries[at].kind {
            tool.progress = Progress::Ended(ending);
        }
        for line in output_lines(result) {
            self.lines += 1;
            self.bytes += line.len();
            self.entries[at].body.push_back(line);
        }
        self.trim();
    }

    /// Unfolds or folds the output of a tool call, of the last one where none is named.
    pub fn toggle_output(&mut self, seq: Option<u64>) {
        let entry = match seq {
            Some(seq) => self.entries.iter_mut().find(|entry| entry.seq == seq),
            None => self.entries.iter_mut().rev().find(|entry| entry.is_tool()),
        };
        if let Some(Kind::Tool(tool)) = entry.map(|entry| &mut entry.kind) {
            tool.open = !tool.open;
        }
    }

    fn stream(&mut self, text: &str) {
        let Some(entry) = self.entries.back_mut() else {
            return;
        };
        let (mut lines, mut bytes) = (self.lines, self.bytes);
        for (n, piece) in text.split('\n').enumerate() {
            if n > 0 {
                // The line before is complete.
                if entry.raw.take().is_none() {
                    entry.body.push_back(String::new());
                    lines += 1;
                }
            }
            let mut rest = piece;
            while !rest.is_empty() {
                let mut raw = match entry.raw.take() {
                    Some(raw) => {
                        if let Some(last) = entry.body.pop_back() {
                            bytes = bytes.saturating_sub(last.len());
                            lines = lines.saturating_sub(1);
                        }
                        raw
                    }
                    None => String::new(),
                };
                let mut room = MAX_LINE.saturating_sub(raw.len()).max(4).min(rest.len());
                while !rest.is_char_boundary(room) {
                    room -= 1;
                }
                raw.push_str(&rest[..room]);
                rest = &rest[room..];
                let line = clean_line(&raw);
                bytes += line.len();
                lines += 1;
                entry.body.push_back(line);
                entry.raw = (raw.len() < MAX_LINE).then_some(raw);
            }
        }
        (self.lines, self.bytes) = (lines, bytes);
        self.trim();
    }

    fn trim(&mut self) {
        while self.lines > MAX_LINES || self.bytes > MAX_BYTES {
            let only = self.entries.len() == 1;
            let Some(first) = self.entries.front_mut() else {
                return;
            };
            if let Some(line) = first.body.pop_front() {
                first.dropped += 1;
                self.lines -= 1;
                self.bytes -= line.len();
                if first.body.is_empty() {
                    first.raw = None;
                }
            } else if only {
                return;
            } else {
                self.lines -= 1;
                self.bytes -= first.size();
                self.entries.pop_front();
            }
        }
    }
}

/// The lines of a tool's result that are kept: of a command, its output.
fn output_lines(result: &str) -> Vec<String> {
    let parsed: Option<Value> = serde_json::from_str(result).ok();
    let output = parsed
        .as_ref()
        .and_then(|value| value.get("output")?.as_str())
        .unwrap_or(result);
    let output = output.strip_suffix('\n').unwrap_or(output);
    if output.is_empty() {
        return Vec::new();
    }
    let all: Vec<&str> = output.split('\n').flat_map(chunks).collect();
    let Some(left_out) = all.len().checked_sub(MAX_OUTPUT_LINES + 1) else {
        return all.into_iter().map(clean_line).collect();
    };
    let half = MAX_OUTPUT_LINES / 2;
    let mut kept: Vec<String> = all[..half].iter().map(|line| clean_line(line)).collect();
    kept.push(format!("[{} lines are not shown]", left_out + 1));
    kept.extend(all[all.len() - half..].iter().map(|line| clean_line(line)));
    kept
}

/// A line in pieces that are not too long.
fn chunks(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut at = text.len().min(MAX_LINE);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let (piece, after) = text.split_at(at);
        rest = (!after.is_empty()).then_some(after);
        Some(piece)
    })
}

#[cfg(test)]
mod tests;
