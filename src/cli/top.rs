//! `sidetone top`: the live view of a server on the terminal, over its HTTP API.

use std::io::{self, Write};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use sidetone_phone::softphone;
use sidetone_terminal::{Failure, Input, Output, Top, plain};
use tokio::time::sleep_until;

use crate::cli::api_client::ApiClient;
use crate::cli::signals::Signals;
use crate::cli::terminal::{FullScreen, Keys, Pressed, is_there};
use crate::cli::{EXIT_FAILED, EXIT_WRONG};
use crate::clock::{instant as now, wall_clock};

/// The arguments of `top`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Keys: Tab and arrows choose a view and a row, / filters, Enter opens a call with the quality of
both legs and its SIP messages, Esc goes back, q ends.

The key needs calls:read, and for the other views directory:read, conferences:read and
trunks:write. It is read from --key-file, from --key, or from SIDETONE_KEY; other users of this
machine can read --key.

Exit status: 0 done, 1 when the server cannot be read (with --once) or the terminal fails, 2 for
a wrong command line.

Examples:
  sidetone top --url https://pbx.example.com --key-file key.txt
  SIDETONE_KEY=tel_... sidetone top
  sidetone top --once | grep lossy")]
pub struct TopArgs {
    /// The server: the URL of its HTTP API.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// The API key.
    #[arg(long, value_name = "KEY", conflicts_with = "key_file")]
    key: Option<String>,
    /// Read the API key from the first line of this file.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Trust the certificate authorities in this PEM file too.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Print every view once as text and end; so it is also when the standard output is no terminal.
    #[arg(long)]
    once: bool,
}

/// Shows the live view until the user quits, or prints it once.
pub fn run(args: &TopArgs) -> ExitCode {
    let client = match key(args).and_then(|key| ApiClient::new(&args.url, &key, args.ca.as_deref())) {
        Ok(client) => client,
        Err(message) => return ended(EXIT_WRONG, &message),
    };
    if client.is_open() {
        crate::cli::tell!(
            "sidetone: warning: {} is not https, so the key can be read on its way",
            client.url()
        );
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return ended(EXIT_FAILED, &format!("cannot start the runtime ({error})")),
    };
    let once = args.once || !is_there();
    let done = runtime.block_on(async { if once { print(&client).await } else { show(&client).await } });
    // A read of keys may be in progress.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => ended(EXIT_FAILED, &message),
    }
}

fn ended(status: u8, message: &str) -> ExitCode {
    crate::cli::tell!("sidetone: top: {}", softphone::clean(message));
    ExitCode::from(status)
}

fn key(args: &TopArgs) -> Result<String, String> {
    if let Some(key) = &args.key {
        return Ok(key.clone());
    }
    if let Some(file) = &args.key_file {
        return softphone::read(file).map_err(|error| error.to_string());
    }
    std::env::var("SIDETONE_KEY").ok().filter(|key| !key.is_empty()).ok_or_else(|| {
        "no key: name a file with --key-file, or set SIDETONE_KEY; keys are made in the panel under Settings, or in an \
         apply file ([[organisations.api_keys]])"
            .to_owned()
    })
}

/// A request in progress.
type Pending<'a> = Option<Pin<Box<dyn Future<Output = (u64, Result<Value, Failure>)> + 'a>>>;

/// Prints every view once.
async fn print(client: &ApiClient) -> Result<(), String> {
    let mut top = Top::new(client.url(), true, now(), wall_clock());
    let mut pending: Pending<'_> = None;
    loop {
        match take(client, &mut top, &mut pending) {
            Some(Output::Done) => break,
            // With plain text output there is no user who could quit.
            Some(Output::Quit) | None => {}
            Some(Output::Fetch(_)) => continue,
        }
        let until = top.next_timeout().unwrap_or_else(now);
        let input = tokio::select! {
            (number, answer) = next(&mut pending) => Input::Answer(number, answer),
            () = sleep_until(until.into()) => Input::Timeout,
        };
        top.handle_input(now(), input);
    }
    if let Some(problem) = top.problem() {
        return Err(format!("{}: {problem}", client.url()));
    }
    let texts: Vec<String> = top.screens(now()).iter().map(plain).collect();
    match io::stdout().write_all(texts.join("\n").as_bytes()) {
        // A closed pipe (`| head`) is not a failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("the standard output: cannot be written ({error})"))
        }
        _ => Ok(()),
    }
}

/// Shows the live view until the user quits.
async fn show(client: &ApiClient) -> Result<(), String> {
    let failed = |error: io::Error| format!("the terminal fails ({error}); --once needs none");
    let mut signals = Signals::listen().map_err(|error| format!("cannot listen for Ctrl-C ({error})"))?;
    let mut screen = FullScreen::open().map_err(failed)?;
    let mut top = Top::new(client.url(), false, now(), wall_clock());
    let (mut pending, mut keys): (Pending<'_>, Keys) = (None, Keys::default());
    loop {
        match take(client, &mut top, &mut pending) {
            Some(Output::Done | Output::Quit) => return Ok(()),
            Some(Output::Fetch(_)) => continue,
            None => {}
        }
        screen.show(&top.screen(now())).map_err(failed)?;
        // At least every second, because the time since the connection was lost is shown.
        let soon = now() + REDRAW_EVERY;
        let until = top.next_timeout().map_or(soon, |next| next.min(soon));
        let input = tokio::select! {
            (number, answer) = next(&mut pending) => Input::Answer(number, answer),
            pressed = keys.next() => match pressed.map_err(failed)? {
                Pressed::Key(key) => Input::Key(key),
                Pressed::Resized => continue,
            },
            () = sleep_until(until.into()) => Input::Timeout,
            () = signals.any() => return Ok(()),
        };
        top.handle_input(now(), input);
    }
}

/// Handles an output; starts a request, and abandons the previous one.
fn take<'a>(client: &'a ApiClient, top: &mut Top, pending: &mut Pending<'a>) -> Option<Output> {
    let output = top.poll_output();
    if let Some(Output::Fetch(fetch)) = &output {
        let (number, path) = (fetch.number, fetch.path.clone());
        *pending = Some(Box::pin(async move { (number, client.get(&path).await) }));
    }
    output
}

/// Waits for the response; never completes without a request.
async fn next(pending: &mut Pending<'_>) -> (u64, Result<Value, Failure>) {
    match pending {
        Some(question) => {
            let answer = question.await;
            *pending = None;
            answer
        }
        None => std::future::pending().await,
    }
}

/// How often the screen is drawn without any input.
const REDRAW_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
