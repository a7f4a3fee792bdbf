//! What was measured: a table for people, JSON for machines.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::stats::{median, percentile};

/// What a figure is wanted to be.
#[derive(Clone, Copy)]
pub enum Aim {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Aim {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(aim) => value >= aim,
            Self::AtMost(aim) => value <= aim,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(aim) => format!(">= {}", number(aim)),
            Self::AtMost(aim) => format!("<= {}", number(aim)),
        }
    }
}

/// One line of the table.
struct Figure {
    name: String,
    unit: &'static str,
    value: f64,
    /// The lowest and the highest of the repetitions.
    spread: Option<(f64, f64)>,
    aim: Option<Aim>,
}

/// Everything that a run measured.
#[derive(Default)]
pub struct Report {
    figures: Vec<Figure>,
    notes: Vec<String>,
}

impl Report {
    /// The median of repetitions.
    pub fn repeated(
        &mut self,
        name: impl Into<String>,
        unit: &'static str,
        values: &[f64],
        aim: Option<Aim>,
    ) {
        self.figures.push(Figure {
            name: name.into(),
            unit,
            value: median(values),
            spread: Some((percentile(values, 0.0), percentile(values, 1.0))),
            aim,
        });
    }

    /// One value, such as a percentile.
    pub fn single(
        &mut self,
        name: impl Into<String>,
        unit: &'static str,
        value: f64,
        aim: Option<Aim>,
    ) {
        self.figures.push(Figure {
            name: name.into(),
            unit,
            value,
            spread: None,
            aim,
        });
    }

    /// What a reader has to know beside the figures.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// The table.
    pub fn table(&self, machine: &[(&'static str, String)]) -> String {
        let width = self
            .figures
            .iter()
            .map(|figure| figure.name.chars().count())
            .max();
        let width = width.unwrap_or(0);
        let mut text = String::from("\n");
        for (name, value) in machine {
            let _ = writeln!(text, "{name}: {value}");
        }
        let _ = writeln!(
            text,
            "\n{:width$}  {:>10} {:<6}  {:<22}  {:<10}",
            "figure", "median", "", "lowest to highest", "aim"
        );
        for figure in &self.figures {
            let spread = figure
                .spread
                .map(|(low, high)| format!("{} to {}", number(low), number(high)));
            let aim = figure.aim.map(|aim| {
                let word = if aim.is_met(figure.value) {
                    "met"
                } else {
                    "MISSED"
                };
                format!("{:<10} {word}", aim.text())
            });
            let line = format!(
                "{:width$}  {:>10} {:<6}  {:<22}  {}",
                figure.name,
                number(figure.value),
                figure.unit,
                spread.unwrap_or_default(),
                aim.unwrap_or_default()
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    fn json(&self, machine: &[(&'static str, String)]) -> Value {
        let figures = self.figures.iter().map(|figure| {
            let (aim, met) = match figure.aim {
                Some(aim) => (json!(aim.text()), json!(aim.is_met(figure.value))),
                None => (Value::Null, Value::Null),
            };
            json!({
                "name": figure.name,
                "unit": figure.unit,
                "value": figure.value,
                "lowest": figure.spread.map(|(low, _)| low),
                "highest": figure.spread.map(|(_, high)| high),
                "aim": aim,
                "met": met,
            })
        });
        let machine = machine
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)));
        json!({
            "machine": Value::Object(machine.collect()),
            "figures": figures.collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    /// Writes the JSON, and tells where.
    pub fn write(&self, machine: &[(&'static str, String)]) -> Result<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("out");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let path = folder.join(format!("{}.json", since.as_secs()));
        let text = serde_json::to_string_pretty(&self.json(machine))?;
        fs::write(&path, text + "\n").with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

/// Three significant digits, and whole numbers whole.
fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 || value == value.trunc() && size >= 1.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_aim_is_told_in_the_table_and_in_the_json() {
        let mut report = Report::default();
        report.repeated("a", "x", &[2.0, 4.0, 3.0], Some(Aim::AtLeast(3.5)));
        report.single("b", "ms", 0.5, Some(Aim::AtMost(1.0)));
        let table = report.table(&[]);
        assert!(table.contains("MISSED") && table.contains("2 to 4"));
        let json = report.json(&[]);
        assert_eq!(json["figures"][0]["met"], json!(false));
        assert_eq!(json["figures"][0]["value"], json!(3.0));
        assert_eq!(json["figures"][1]["met"], json!(true));
    }
}
