//! `fisk run`.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read as _},
    sync::Arc,
};

use fisk_domain::{
    Toolset,
    event::{Event, Watcher},
    session::{FORMAT, Fingerprint, Finish, Record, ToolPrint},
};
use fisk_operator::{LineOptions, LinePrompter, Prompter};
use fisk_tui::{Signal, StartError, Tui, TuiOptions};
use fuse_terminal::ColourChoice;
use sha2::{Digest as _, Sha256};

use crate::{
    agent::{Agent, End, log::Log, stop::Cause, stop::Stop, system},
    cli::RunArgs,
    config::{Config, Filter, Operator},
    failure::{Done, Failure, SUSPENDED, error, warning},
    output,
    progress::Lines,
    secrets::Secrets,
    session::{Store, Warning},
    setup::{self, Application},
};

/// The longest prompt, in bytes.
const MAX_PROMPT: usize = 1024 * 1024;

/// Runs, or goes on with a run.
///
/// # Errors
/// Whatever keeps it from beginning.
pub async fn run(args: RunArgs, config: &Config, secrets: &Secrets) -> Done {
    let file = args.config.config.display().to_string();
    // What costs nothing is checked before the application is started.
    let provider = setup::provider(config, &file, secrets)?;
    let fuse = match config.harness.operator {
        Operator::Terminal => None,
        Operator::Fuse => Some(setup::fuse(config, secrets, false)?),
    };
    let prompt = args.prompt.as_deref().map(prompt_of).transpose()?;
    let application = Application::find(config, &file).await?;
    for told in application.warnings.iter().filter(|told| is_urgent(told)) {
        warning(&format!("{file}: {told}"));
    }
    let stop = Stop::new(args.checkpoint || args.resume.is_some());
    stop.listen()?;
    let system = system::prompt(config.identity.as_deref(), config.system_prompt.as_deref());
    let fingerprint = fingerprint(config, &application, &system);
    let mut log = begin(&args, config, prompt, fingerprint)?;
    let faces = faces(&args, config, fuse, &stop);
    let agent = Agent {
        provider,
        tools: Arc::clone(&application.tools),
        executor: Arc::clone(&application.executor),
        prompter: faces.prompter,
        watcher: Arc::clone(&faces.watcher),
        human_in_the_loop: config.harness.human_in_the_loop,
        system,
        limits: config.llm.limits,
        call_timeout: config.llm.call_timeout,
        tool_timeout: config.harness.tool_timeout,
        stop: stop.clone(),
    };
    let end = agent.run(&mut log).await;
    application.close().await;
    conclude(end, &log, &stop, &*faces.watcher, faces.screen)
}

/// Whether somebody who starts a run should read it each time: a gate that holds nothing is such a thing, and what the application
/// itself is like is not. `fisk info` tells everything.
fn is_urgent(told: &fisk_domain::Warning) -> bool {
    use fisk_domain::Warning;
    match told {
        Warning::Unmatched { .. } | Warning::NoTools => true,
        Warning::NotOffered { .. } | Warning::RequiredHidden { .. } => false,
    }
}

/// The run's record: a new one, or that of the session to go on with.
fn begin(
    args: &RunArgs,
    config: &Config,
    prompt: Option<String>,
    fingerprint: Fingerprint,
) -> Result<Log, Failure> {
    let said = Failure::Said;
    if let Some(name) = &args.resume {
        let store = Store::locate(config.harness.sessions_dir.as_deref()).map_err(said)?;
        let (journal, recorded) = store.resume(name).map_err(said)?;
        if let Some(Warning(text)) = &recorded.warning {
            warning(&format!("session {name:?}: {text}"));
        }
        let changes = recorded
            .replay
            .fingerprint()
            .map(|then| then.changes(&fingerprint))
            .unwrap_or_default();
        if !changes.is_empty() {
            return Err(Failure::Said(format!(
                "the session {name:?} cannot be resumed, because this is not the run it records: {}",
                changes.join("; ")
            )));
        }
        return Log::resume(recorded.replay, journal).map_err(said);
    }
    let first = |session: &str| Record::Started {
        format: FORMAT,
        session: session.to_owned(),
        fingerprint: Box::new(fingerprint),
        prompt: prompt.unwrap_or_default(),
    };
    if !args.checkpoint {
        return Log::begin(first(""), None).map_err(said);
    }
    let store = Store::locate(config.harness.sessions_dir.as_deref()).map_err(said)?;
    let (journal, record) = store.create(args.name.as_deref(), first).map_err(said)?;
    output::note(&format!("session {}", journal.name()));
    Log::begin(record, Some(journal)).map_err(said)
}

fn prompt_of(given: &str) -> Result<String, Failure> {
    let mut text = given.to_owned();
    if given == "-" {
        text.clear();
        io::stdin()
            .take(MAX_PROMPT as u64 + 1)
            .read_to_string(&mut text)
            .map_err(|error| Failure::Usage(format!("the prompt on standard input: {error}")))?;
    }
    match text.len() {
        _ if text.trim().is_empty() => Err(Failure::Usage("the prompt is empty".to_owned())),
        length if length > MAX_PROMPT => Err(Failure::Usage(format!(
            "the prompt is larger than {MAX_PROMPT} bytes, which is the most"
        ))),
        _ => Ok(text),
    }
}

/// Who is asked, and who is told.
struct Faces {
    prompter: Arc<dyn Prompter>,
    watcher: Arc<dyn Watcher>,
    /// Ends, and gives the terminal back, when it is dropped.
    screen: Option<Tui>,
}

fn faces(args: &RunArgs, config: &Config, fuse: Option<Arc<dyn Prompter>>, stop: &Stop) -> Faces {
    let lines = || Faces {
        prompter: Arc::new(LinePrompter::new(LineOptions {
            no_bell: config.harness.no_bell,
            interrupts: stop.interrupts(),
        })),
        watcher: Arc::new(Lines::of_process()),
        screen: None,
    };
    let wanted = !args.no_tui && !config.harness.no_tui && output::all_terminals();
    let mut faces = match wanted {
        true => full_screen(config, stop).unwrap_or_else(lines),
        false => lines(),
    };
    if let Some(fuse) = fuse {
        faces.prompter = fuse;
    }
    faces
}

fn full_screen(config: &Config, stop: &Stop) -> Option<Faces> {
    let heard = stop.clone();
    let options = TuiOptions {
        bell: !config.harness.no_bell,
        title: config
            .identity
            .clone()
            .unwrap_or_else(|| config.application.display().to_string()),
        colour: ColourChoice::of_process(true),
        on_signal: Arc::new(move |signal| match signal {
            Signal::Interrupt => heard.pressed(),
            Signal::HangUp => heard.request(Cause::HangUp),
        }),
    };
    match Tui::start(options) {
        Ok((tui, prompter, watcher)) => Some(Faces {
            prompter,
            watcher,
            screen: Some(tui),
        }),
        Err(StartError::NotATerminal | StartError::Background) => None,
        Err(StartError::Io(error)) => {
            warning(&format!("no full screen: {error}"));
            None
        }
    }
}

/// What is left to say once the screen is given back.
struct Conclusion {
    event: Event,
    /// For standard output.
    answer: Option<String>,
    error: Option<String>,
    code: u8,
}

impl Conclusion {
    fn failed(why: String) -> Self {
        Self {
            event: Event::Failed(why.clone()),
            answer: None,
            error: Some(why),
            code: 1,
        }
    }
}

fn conclude(end: End, log: &Log, stop: &Stop, watcher: &dyn Watcher, screen: Option<Tui>) -> Done {
    let is_over = matches!(end, End::Finished(_));
    let conclusion = match end {
        End::Finished(Finish::Answered(text)) => Conclusion {
            event: Event::Answered(text.clone()),
            answer: Some(text),
            error: None,
            code: 0,
        },
        End::Finished(Finish::Refused(text)) => Conclusion::failed(match text.trim() {
            "" => "the model refused".to_owned(),
            text => format!("the model refused: {text}"),
        }),
        End::Finished(Finish::Stopped { reason, text }) => Conclusion {
            answer: Some(text).filter(|text| !text.trim().is_empty()),
            ..Conclusion::failed(reason)
        },
        End::Spent(spent) => Conclusion::failed(spent.to_string()),
        End::Failed(why) => Conclusion::failed(why),
        End::Stopped => {
            let cause = stop.cause().unwrap_or(Cause::Interrupt);
            Conclusion {
                event: Event::Suspended(log.session().unwrap_or_default().to_owned()),
                answer: None,
                error: None,
                code: match log.session() {
                    Some(_) => SUSPENDED,
                    None => cause.exit_code(),
                },
            }
        }
    };
    watcher.event(conclusion.event);
    drop(screen);
    if let Some(text) = conclusion.answer {
        if text.trim().is_empty() {
            warning("the model ended without a word");
        }
        output::foreign(&text)?;
    }
    match (&conclusion.error, log.session()) {
        (Some(why), _) => error(why),
        (None, Some(name)) if !is_over => output::note(&format!("session {name} is suspended")),
        (None, None) if !is_over => output::note("stopped"),
        (None, _) => {}
    }
    if let Some(name) = log.session().filter(|_| !is_over) {
        output::note(&format!("go on with: fisk run --resume {name}"));
    }
    Ok(conclusion.code)
}

fn fingerprint(config: &Config, application: &Application, system: &str) -> Fingerprint {
    Fingerprint {
        provider: config.llm.provider.name().to_owned(),
        model: config.llm.model().unwrap_or_default().to_owned(),
        base_url: setup::base_url(config),
        system_prompt: digest(&[system]),
        application: application.executor.application().display().to_string(),
        version: application.model.version.clone(),
        global_flags: config.global_flags.clone(),
        include: filter(&config.include),
        exclude: filter(&config.exclude),
        confirm_tags: config.harness.confirm_tags.iter().cloned().collect(),
        human_in_the_loop: config.harness.human_in_the_loop,
        sandbox: config.harness.sandbox,
        tools: tools(&application.tools),
    }
}

fn filter(filter: &Filter) -> Vec<String> {
    let tools = filter.tools.iter().map(|tool| format!("tool {tool}"));
    let tags = filter.tags.iter().map(|tag| format!("tag {tag}"));
    tools.chain(tags).collect()
}

fn tools(tools: &Toolset) -> BTreeMap<String, ToolPrint> {
    tools
        .tools()
        .iter()
        .map(|tool| {
            let schema = tool.input_schema().to_string();
            let print = ToolPrint {
                schema: digest(&[tool.description(), &schema]),
                tags: tool.tags().clone(),
                gating: tool.gating_tags().iter().cloned().collect::<BTreeSet<_>>(),
            };
            (tool.name().to_string(), print)
        })
        .collect()
}

/// One text from several, which no other several give.
fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(hash.finalize())
}
