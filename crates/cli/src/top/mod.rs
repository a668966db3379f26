//! `sateen top`: a database while it runs, on the terminal.
//!
//! 1. [`run`] finds the socket, and prints once if it was asked to or if nobody looks.
//! 2. `live` starts a thread that asks for the status every second, so that a stuck process does
//!    not keep keys from working.
//! 3. `draw` draws the model after each answer and each key, and when the size of the terminal has
//!    changed. In between `top` only waits: it shares its processors with what it watches.

mod draw;
mod model;
mod on_disk;
#[cfg(test)]
mod tests;
pub(crate) mod units;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::Terminal;
use ratatui::backend::{Backend, TermionBackend, TestBackend};
use ratatui::termion::event::Key;
use ratatui::termion::input::TermRead;
use ratatui::termion::raw::IntoRawMode;
use ratatui::termion::screen::IntoAlternateScreen;
use sateen_inspect::{Client, ClientError, ExplanationReport, Status};

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::store;
use model::Model;

/// Interval between two questions.
const PERIOD: Duration = Duration::from_secs(1);
/// How often `top` looks at the size of the terminal, and whether a signal wants it to end.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Seconds that `w` explains.
const SINCE: Duration = Duration::from_secs(600);
/// The size of the screen that `--once` prints.
const COLUMNS: u16 = 100;
const ROWS: u16 = 40;

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Show the databases in these directories, one at a time
    #[arg(required_unless_present = "socket")]
    databases: Vec<PathBuf>,
    /// Ask this socket instead of the one in a directory
    #[arg(long, value_name = "PATH", conflicts_with = "databases")]
    socket: Option<PathBuf>,
    /// Print one screen and exit
    #[arg(long)]
    once: bool,
    /// Print the status and rates as JSON, once
    #[arg(long)]
    pub(crate) json: bool,
}

/// A database that can be shown.
#[derive(Clone, Debug)]
struct Shown {
    client: Client,
    /// Its directory; `None` if only its socket was named.
    directory: Option<PathBuf>,
}

impl Shown {
    fn of(directory: PathBuf) -> Shown {
        Shown { client: Client::of_database(&directory), directory: Some(directory) }
    }

    fn name(&self) -> String {
        sateen::shown_path(self.directory.as_deref().unwrap_or(self.client.socket()))
    }
}

pub(crate) fn run(arguments: &Top, output: &mut dyn Write) -> Result<()> {
    let shown: Vec<Shown> = match &arguments.socket {
        Some(socket) => vec![Shown { client: Client::of_socket(socket), directory: None }],
        None => arguments.databases.iter().cloned().map(Shown::of).collect(),
    };
    if arguments.once || arguments.json || !std::io::stdout().is_terminal() {
        return shown.iter().try_for_each(|shown| once(shown, arguments.json, output));
    }
    let screen = std::io::stdout().into_raw_mode()?.into_alternate_screen()?;
    let mut terminal = Terminal::new(TermionBackend::new(screen))?;
    terminal.hide_cursor()?;
    let ended = live(&mut terminal, shown);
    // The drop of the backend gives the terminal back as it was. Only then can a message be read.
    terminal.show_cursor()?;
    drop(terminal);
    output.flush()?;
    ended
}

/// Prints two looks' difference, or what is on disk. Fails if nothing can be said.
fn once(shown: &Shown, json: bool, output: &mut dyn Write) -> Result<()> {
    if let Some(directory) = &shown.directory {
        store::refuse_missing(directory)?;
    }
    let mut model = Model::new(&shown.name());
    for look in 0..2 {
        match shown.client.status() {
            Ok(status) => model.take(status),
            Err(error) => {
                not_served(&mut model, shown, &error);
                if model.status.is_none() && model.on_disk.is_none() {
                    return Err(Failure::failed(error.to_string()));
                }
                break;
            }
        }
        if look == 0 {
            std::thread::sleep(PERIOD);
        }
    }
    if json {
        let mut value = model.to_json();
        if let Some(text) = &model.on_disk {
            value["on_disk"] = text.as_str().into();
        }
        return Ok(writeln!(output, "{value}")?);
    }
    let mut terminal = Terminal::new(TestBackend::new(COLUMNS, ROWS))
        .map_err(|error| Failure::failed(error.to_string()))?;
    let drawn = terminal.draw(|frame| draw::draw(frame, &model));
    drawn.map_err(|error| Failure::failed(error.to_string()))?;
    write!(output, "{}", lines(terminal.backend()))?;
    Ok(())
}

/// Returns the text of a screen, without the keys and without blanks at the ends.
fn lines(backend: &TestBackend) -> String {
    let buffer = backend.buffer();
    let width = usize::from(buffer.area.width.max(1));
    let rows = buffer.content().chunks(width);
    let rows = rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>());
    let mut rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
    rows.pop();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows.join("\n") + "\n"
}

fn not_served(model: &mut Model, shown: &Shown, error: &ClientError) {
    model.failure = Some(error.to_string());
    let is_closed = matches!(error, ClientError::NotServed(_));
    if let Some(directory) = shown.directory.as_deref().filter(|_| is_closed)
        && model.on_disk.is_none()
    {
        model.on_disk = Some(on_disk::describe(directory));
    }
}

/// What the loop of [`live`] waits for.
enum Told {
    Status(usize, std::result::Result<Box<Status>, ClientError>),
    Why(usize, std::result::Result<ExplanationReport, ClientError>),
    Key(Key),
    /// The terminal is gone.
    NoMoreKeys,
}

/// What it is asked for.
enum Asked {
    Status(usize, Client),
    Why(usize, Client),
}

/// Shows databases until the user ends it.
fn live<B>(terminal: &mut Terminal<B>, mut shown: Vec<Shown>) -> Result<()>
where
    B: Backend<Error = std::io::Error>,
{
    let ended = interrupt::watch()?;
    let (ask, asked) = channel();
    let (tell, told) = channel();
    read_keys(tell.clone())?;
    std::thread::Builder::new().name("ask".to_owned()).spawn(move || answer(&asked, &tell))?;
    let mut at = 0;
    let mut turn = 0;
    let Some(first) = shown.first() else { return Ok(()) };
    let mut model = Model::new(&first.name());
    let mut next = Instant::now();
    let mut waits = false;
    let mut size = terminal.size()?;
    terminal.draw(|frame| draw::draw(frame, &model))?;
    while !ended.load(Ordering::Relaxed) {
        if !waits && !model.is_paused && Instant::now() >= next {
            waits = ask.send(Asked::Status(turn, shown[at].client.clone())).is_ok();
            next = Instant::now() + PERIOD;
        }
        let until_next = next.saturating_duration_since(Instant::now());
        let asks = !waits && !model.is_paused;
        let patience = if asks { until_next.min(LOOK_EVERY) } else { LOOK_EVERY };
        match told.recv_timeout(patience) {
            Ok(Told::Status(of, answer)) => {
                waits = false;
                match answer {
                    _ if of != turn => {}
                    Ok(status) => {
                        learn(&mut shown, at, &status);
                        model.take(*status);
                    }
                    Err(error) => not_served(&mut model, &shown[at], &error),
                }
            }
            Ok(Told::Why(of, Ok(report))) if of == turn => model.why = Some(report.text),
            Ok(Told::Why(of, Err(error))) if of == turn => model.why = Some(error.to_string()),
            Ok(Told::Why(..)) => {}
            Ok(Told::Key(key)) => match action(key) {
                Action::Quit => return Ok(()),
                Action::Pause => model.is_paused = !model.is_paused,
                Action::Sort => model.order = model.order.next(),
                Action::Why if model.why.take().is_none() => {
                    let _ended = ask.send(Asked::Why(turn, shown[at].client.clone()));
                }
                Action::Next => {
                    at = (at + 1) % shown.len().max(1);
                    turn += 1;
                    let order = model.order;
                    model = Model::new(&shown[at].name());
                    model.order = order;
                    (next, waits) = (Instant::now(), false);
                }
                Action::Why => {}
                Action::Nothing => continue,
            },
            Ok(Told::NoMoreKeys) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                let now = terminal.size()?;
                if std::mem::replace(&mut size, now) == now {
                    continue;
                }
            }
        }
        terminal.draw(|frame| draw::draw(frame, &model))?;
    }
    // Once the terminal is as it was, the user can read why.
    Err(Failure::interrupted("ended by a signal"))
}

/// Adds the other databases of the process. The one that answered is at `at`; if only its socket
/// was named, its directory is known now.
fn learn(shown: &mut Vec<Shown>, at: usize, status: &Status) {
    if let Some(answered) = shown.get_mut(at) {
        answered.directory.get_or_insert_with(|| PathBuf::from(&status.path));
    }
    for path in &status.databases {
        let known = |shown: &Shown| shown.name() == *path;
        let same = |shown: &Shown| {
            let absolute = shown.directory.as_deref().and_then(|path| path.canonicalize().ok());
            absolute.is_some_and(|absolute| sateen::shown_path(&absolute) == *path)
        };
        if !shown.iter().any(|shown| known(shown) || same(shown)) {
            shown.push(Shown::of(PathBuf::from(path)));
        }
    }
}

/// Asks until the screen is closed.
fn answer(asked: &Receiver<Asked>, tell: &Sender<Told>) {
    while let Ok(asked) = asked.recv() {
        let told = match asked {
            Asked::Status(turn, client) => Told::Status(turn, client.status().map(Box::new)),
            Asked::Why(turn, client) => Told::Why(turn, client.explain(SINCE)),
        };
        if tell.send(told).is_err() {
            return;
        }
    }
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Quit,
    Pause,
    Sort,
    Why,
    Next,
    Nothing,
}

fn action(key: Key) -> Action {
    match key {
        Key::Ctrl('c') | Key::Char('q') | Key::Esc => Action::Quit,
        Key::Char('p' | ' ') => Action::Pause,
        Key::Char('s') => Action::Sort,
        Key::Char('w') => Action::Why,
        Key::Char('n' | '\t') => Action::Next,
        _ => Action::Nothing,
    }
}

/// Tells of the keys that the user presses. A thread reads them, because a read waits for a key.
fn read_keys(tell: Sender<Told>) -> Result<()> {
    let read = move || {
        let keys = std::io::stdin().keys().map_while(std::result::Result::ok);
        for key in keys {
            if tell.send(Told::Key(key)).is_err() {
                return;
            }
        }
        let _ended = tell.send(Told::NoMoreKeys);
    };
    std::thread::Builder::new().name("keys".to_owned()).spawn(read)?;
    Ok(())
}
