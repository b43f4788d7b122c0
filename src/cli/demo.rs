//! `sidetone demo`: a temporary engine on loopback, real calls between built-in phones, and their records.

use std::io::{self, IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng};
use serde_json::json;
use sidetone_model::time::Timestamp;
use sidetone_phone::demo::{Access, PIN, Played, ROOM, Record, SCENES, Scene, Stage, Table};
use sidetone_store::Store;
use tokio::time::Instant;

use crate::app::Engine;
use crate::cli::EXIT_FAILED;
use crate::cli::signals::Signals;
use crate::config::{Config, Listener, Transport};
use crate::provision::{self, Declaration};

/// The arguments of `demo`.
#[derive(clap::Args, Clone, Copy, Debug)]
#[command(after_help = "\
Everything runs on 127.0.0.1 with free ports and a temporary directory that is removed at the end; no
configuration is read. A call with an unexpected verdict, which a very busy machine can cause, is placed
once more. There are no colours when NO_COLOR is set or the output is not a terminal.

With --json the standard output is one object:
  expected  whether every verdict is the expected one, the note was acknowledged and the conference held
  calls     name, about, expected_verdict, as_expected, attempts, record as GET /api/v1/cdrs/{uuid} has it, and
            quality as GET /api/v1/cdrs/{uuid}/quality?timeline=false has it
  note      as_expected, and record as GET /api/v1/calls/{uuid}/infos has it; missing says what went wrong
  conference  as_expected, room as GET /api/v1/conferences/{room} has it, and the roster of the last phone
  http      url and key of the API
  sip       address, transport, domain, extension and password for a softphone, answering_extension,
            conference_room, conference_pin

Exit status: 0 when every verdict is the expected one, the note was acknowledged and the conference held, 1 when
not or when the demo failed or was interrupted, 2 for a wrong command line.")]
pub struct DemoArgs {
    /// End after the calls instead of waiting for Ctrl-C.
    #[arg(long)]
    once: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs the demo; an error is one line.
pub fn run(args: &DemoArgs) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("cannot start the runtime ({error})")),
    };
    let done = runtime.block_on(demo(*args));
    // No data of the demo is kept: remaining tasks of an interrupted engine end with the process.
    runtime.shutdown_background();
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_FAILED),
        Err(message) => failed(&message),
    }
}

fn failed(message: &str) -> ExitCode {
    crate::cli::tell!("sidetone: demo: {message}");
    ExitCode::from(EXIT_FAILED)
}

/// Runs everything from creating the directory to its removal; returns whether every verdict is the expected
/// one.
async fn demo(args: DemoArgs) -> Result<bool, String> {
    let mut signals = Signals::listen().map_err(|error| format!("cannot listen for Ctrl-C ({error})"))?;
    let mut rng = StdRng::try_from_rng(&mut SysRng)
        .map_err(|error| format!("the system provides no random numbers ({error})"))?;
    let folder = Folder::make(&std::env::temp_dir(), rng.random()).map_err(|(path, error)| {
        format!("{}: cannot be created ({error}); set TMPDIR to a writable directory", path.display())
    })?;
    let config = config(&folder.path);
    let access = Access::generate(&mut rng);
    let calls = tokio::select! {
        calls = calls(&config, &access, args, &mut rng) => calls?,
        () = signals.any() => return Err("interrupted".to_owned()),
    };
    if args.once {
        calls.engine.stop(Duration::ZERO).await;
        return Ok(calls.played.is_as_expected());
    }
    let is_as_expected = calls.played.is_as_expected();
    tokio::select! {
        seen = stay(&calls.stage, &calls.played, args) => seen?,
        () = signals.any() => {}
    }
    // The engine is not stopped properly, because that takes seconds and its data are removed with the folder.
    std::mem::forget(calls.engine);
    Ok(is_as_expected)
}

/// The state after the calls were placed.
struct Calls {
    engine: Engine,
    stage: Stage,
    played: Played,
}

/// Starts the engine, places the calls and prints their records.
async fn calls(config: &Config, access: &Access, args: DemoArgs, rng: &mut StdRng) -> Result<Calls, String> {
    declare(config, access, rng).await?;
    let engine = Engine::start(config).await.map_err(|error| format!("cannot start: {error}"))?;
    match perform(&engine, access, args).await {
        Ok((played, stage)) => Ok(Calls { engine, stage, played }),
        Err(message) => {
            engine.stop(Duration::ZERO).await;
            Err(message)
        }
    }
}

/// The defaults, on loopback with free ports.
fn config(folder: &Path) -> Config {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut config = Config::default();
    config.node.name = "demo".to_owned();
    config.node.data_dir = folder.to_path_buf();
    config.database = (&folder.join("sidetone.db")).into();
    config.sip.listen = vec![Listener { transport: Transport::Udp, address: any }];
    config.http.listen = any;
    config
}

/// Creates the demo's organisation before the engine reads it.
async fn declare(config: &Config, access: &Access, rng: &mut StdRng) -> Result<(), String> {
    let declared = access.apply_file().parse().ok().and_then(|table| Declaration::parse(table).ok());
    let declaration = declared.ok_or("the organisation is not well declared")?;
    let failed = |error: &dyn std::fmt::Display| format!("failed to {error}");
    let store = Store::open(&config.database).await.map_err(|error| failed(&error))?;
    let applied = provision::apply(&store, &[declaration], false, wall_clock(), rng).await;
    store.close().await;
    applied.map(drop).map_err(|error| failed(&error))
}

/// Places the calls and prints their records.
async fn perform(engine: &Engine, access: &Access, args: DemoArgs) -> Result<(Played, Stage), String> {
    let failed = |error| format!("failed to {error}");
    let sip = *engine.sip.first().ok_or("the engine listens nowhere")?;
    let start = Instant::now();
    let stage = Stage::set(sip, engine.http, access.clone()).await.map_err(failed)?;
    let bar = progress_bar();
    let played = tokio::select! {
        played = stage.play() => played.map_err(failed)?,
        () = tick(&bar) => return Err("the clock has stopped".to_owned()),
    };
    bar.finish_and_clear();
    let text = if args.json {
        json(&played, engine, access)
    } else {
        let table = Table::new(wants_colour());
        summary(table, &played, start.elapsed()) + &further(table, engine.http, sip, access, args)
    };
    print(&text)?;
    Ok((played, stage))
}

/// The table, and a summary.
fn summary(table: Table, played: &Played, took: Duration) -> String {
    let Played { showings, note, conference } = played;
    let mut text = table.head();
    for showing in showings {
        text.push_str(&table.scene(showing));
    }
    let expected = showings.iter().filter(|showing| showing.is_as_expected()).count();
    let (all, seconds) = (showings.len(), took.as_secs_f64());
    text.push('\n');
    text.push_str(&table.dim(
        "✓ the verdict is the one that the call was made for; the row below it is the audio of the called\n\
             party; gap: mean interval between packets",
    ));
    text.push_str(&format!(
        "\n{expected} of {all} verdicts as expected; {all} calls over real UDP in {seconds:.1} s.\n"
    ));
    text.push_str(&format!("{} {}\n", table.mark(note.is_as_expected()), note.sentence()));
    text.push_str(&format!("{} {}\n", table.mark(conference.is_as_expected()), conference.sentence()));
    text
}

/// Further commands to try; none for a finished engine.
fn further(table: Table, http: SocketAddr, sip: SocketAddr, access: &Access, args: DemoArgs) -> String {
    if args.once {
        return String::new();
    }
    let (first, last) = (Scene::to(0), Scene::to(SCENES.len() - 1));
    let Access { domain, extension, password, answering, key, email, user_password, .. } = access;
    let [api, user, phone] =
        ["Read the records", "Log in", "Call it yourself"].map(|title| table.bold(title));
    format!(
        "\n{api}  over HTTP, as this table was made\n\n  \
           curl -s -H 'Authorization: Bearer {key}' \\\n    \
             'http://{http}/api/v1/cdrs?limit=1'\n  \
           its call_uuid in /api/v1/cdrs/{{uuid}}/quality shows the reason of its verdict, second by second\n  \
           http://{http}/api/v1/docs describes the rest\n\
         \n{user}  as {email}, password {user_password}\n\n  \
           http://{http}/ in a browser is the panel; over HTTP:\n  \
           curl -s -H 'Content-Type: application/json' \\\n    \
             -d '{{\"email\": \"{email}\", \"password\": \"{user_password}\"}}' \\\n    \
             'http://{http}/api/v1/auth/login'\n\
         \n{phone}  with a softphone on this machine\n\n  \
           server {sip} (UDP)   domain {domain}   user {extension}   password {password}\n  \
           dial {answering} for a tone, {first} to {last} for the table's phones; your calls appear here\n  \
           dial {ROOM} for a conference, its PIN is {PIN}#\n  \
           or without one: SIDETONE_PHONE_PASSWORD={password} sidetone phone --user {extension} --domain {domain} --server {sip}\n\
         \n{}\n",
        table.dim("Ctrl-C ends the engine and removes its data.")
    )
}

fn json(played: &Played, engine: &Engine, access: &Access) -> String {
    let Played { showings, note, conference } = played;
    let calls: Vec<_> = showings
        .iter()
        .map(|showing| {
            json!({
                "name": showing.scene.name,
                "about": showing.scene.about,
                "expected_verdict": showing.scene.expected.as_str(),
                "as_expected": showing.is_as_expected(),
                "attempts": showing.attempts,
                "record": showing.json,
                "quality": showing.quality,
            })
        })
        .collect();
    let text = json!({
        "expected": played.is_as_expected(),
        "calls": calls,
        "note": { "as_expected": note.is_as_expected(), "record": note.json, "missing": note.missing },
        "conference": { "as_expected": conference.is_as_expected(), "room": conference.json,
            "roster": conference.roster, "missing": conference.missing },
        "http": { "url": format!("http://{}", engine.http), "key": access.key, "user": access.email,
            "password": access.user_password },
        "sip": {
            "address": engine.sip.first().map(ToString::to_string),
            "transport": "udp",
            "domain": access.domain,
            "extension": access.extension,
            "password": access.password,
            "answering_extension": access.answering,
            "conference_room": ROOM,
            "conference_pin": PIN,
        },
    });
    format!("{text:#}\n")
}

/// Keeps the phones registered and prints new calls, until the output fails.
async fn stay(stage: &Stage, played: &Played, args: DemoArgs) -> Result<(), String> {
    let table = Table::new(wants_colour());
    let mut seen: Vec<String> =
        played.showings.iter().map(|showing| showing.record.call_uuid.clone()).collect();
    let mut registered = Instant::now();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if registered.elapsed() > REGISTER_EVERY {
            registered = Instant::now();
            stage.stay_reachable().await;
        }
        // Another client may have used up the key's rate; the next attempt follows soon.
        let Ok(latest) = stage.latest().await else { continue };
        let is_new =
            |record: &Record| !seen.contains(&record.call_uuid) && !Stage::is_of_the_conference(record);
        let new = latest.iter().rev().filter(|(record, _)| is_new(record));
        let mut rows = String::new();
        for (record, _) in new {
            // Without the quality, only the row is printed.
            let quality = stage.quality(record).await.unwrap_or_default();
            rows.push_str(&table.call("your call", record, &quality));
        }
        if !rows.is_empty() && !args.json {
            print(&rows)?;
        }
        // Older records do not return to the first page.
        seen = latest.into_iter().map(|(record, _)| record.call_uuid).collect();
    }
}

fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A closed pipe (`| head`) is not a failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("the standard output: cannot be written ({error})"))
        }
        _ => Ok(()),
    }
}

/// <https://no-color.org>.
fn wants_colour() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !unwanted && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A progress bar on a terminal; nothing if stderr is not one.
fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let length_ms = u64::try_from(Stage::play_time().as_millis()).unwrap_or(u64::MAX);
    // Removed at the end, also when the calls are interrupted.
    let bar = ProgressBar::new(length_ms).with_finish(ProgressFinish::AndClear);
    bar.set_message(format!("{} calls between built-in phones", SCENES.len()));
    match ProgressStyle::with_template("{msg} {wide_bar} {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

async fn tick(bar: &ProgressBar) {
    let start = Instant::now();
    let mut again = false;
    loop {
        bar.set_position(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
        if !again && start.elapsed() > Stage::play_time() * 3 / 2 {
            again = true;
            bar.set_message("some verdicts were not as expected: those calls again");
        }
        tokio::time::sleep(TICK_EVERY).await;
    }
}

/// A directory that is removed when dropped.
struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Creates one below `parent` that no other user may read.
    fn make(parent: &Path, number: u64) -> Result<Folder, (PathBuf, io::Error)> {
        let path = parent.join(format!("sidetone-demo-{number:016x}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Folder { path }),
            Err(error) => Err((path, error)),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // An interrupted engine may write a file in between.
        let removed = (0..REMOVALS_MAX).find_map(|_| std::fs::remove_dir_all(&self.path).ok());
        if removed.is_none()
            && let Err(error) = std::fs::remove_dir_all(&self.path)
        {
            crate::cli::tell!("sidetone: demo: {}: cannot be removed ({error})", self.path.display());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a command line is a driver: it reads the clock")]
fn wall_clock() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// How often the removal is tried while files are still being written.
const REMOVALS_MAX: usize = 20;
/// How often the API is polled for new calls.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Half the duration of a phone's binding.
const REGISTER_EVERY: Duration = Duration::from_secs(300);
/// How often the progress bar is updated.
const TICK_EVERY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_goes_with_its_value() {
        let folder = Folder::make(&std::env::temp_dir(), std::process::id().into()).unwrap();
        let path = folder.path.clone();
        std::fs::write(path.join("file"), "text").unwrap();
        drop(folder);
        assert!(!path.exists());
        let (path, _) = Folder::make(&path, 1).err().unwrap();
        assert!(path.ends_with("sidetone-demo-0000000000000001"));
    }
}
