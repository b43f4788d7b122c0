//! `sidetone check --call`: a real call between two built-in phones through the running engine, with its verdict.
//!
//! It uses the built-in phones instead of sipp: they are part of the program, so that nothing has to be installed,
//! and they send and judge audio, which sipp's scripts do not.
//!
//! If the user specifies no extensions, it creates an organisation of its own, with two extensions and a key, and
//! deletes it afterwards, also after a failure and after Ctrl-C.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use sidetone_phone::{Answering, CallOutcome, CallPlan, Carrier, Phone, PhoneConfig, PhoneError, softphone};
use sidetone_sip::sdp::CodecPolicy;
use tokio::time::{sleep, timeout};

use crate::app::journal_dir;
use crate::cdr::journal::LOCK_FILE;
use crate::cli::api_client::ApiClient;
use crate::cli::holders::running_engine;
use crate::cli::signals::Signals;
use crate::cli::temporary::{Temporary, Tenant};
use crate::clock::instant as now;
use crate::config::{Config, Transport};

/// The arguments of the self-test.
#[derive(Args, Clone, Debug)]
pub(super) struct SelfTestArgs {
    /// Then place a call of 3 seconds between two built-in phones through the running engine, and
    /// read its verdict back.
    #[arg(long)]
    pub(super) call: bool,
    /// The calling extension; by default temporary ones are created, and deleted afterwards.
    #[arg(long, value_name = "NUMBER", requires_all = ["call", "to", "domain", "passwords", "key_file"])]
    from: Option<String>,
    /// The called extension.
    #[arg(long, value_name = "NUMBER", requires = "from")]
    to: Option<String>,
    /// The SIP domain of these extensions.
    #[arg(long, value_name = "DOMAIN", requires = "from")]
    domain: Option<String>,
    /// A file with their passwords: the caller's in the first line, the other's in the second.
    #[arg(long, value_name = "FILE", requires = "from")]
    passwords: Option<PathBuf>,
    /// A file with an API key of their organisation, with the permission calls:read.
    #[arg(long, value_name = "FILE", requires = "from")]
    key_file: Option<PathBuf>,
    /// The URL of the engine, if it is not that of [http] listen.
    #[arg(long, value_name = "URL", requires = "call")]
    url: Option<String>,
    /// The address of the engine for SIP, if it is not that of [sip] listen.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "call")]
    sip: Option<SocketAddr>,
    /// Trust the certificate authorities in this PEM file too.
    #[arg(long, value_name = "FILE", requires = "call")]
    ca: Option<PathBuf>,
}

/// Places the call; prints each step with its time. An error is one line with a remedy.
pub(super) async fn place_call(config: &Config, args: &SelfTestArgs) -> Result<(), String> {
    let mut signals = Signals::listen().map_err(|error| format!("cannot listen for Ctrl-C ({error})"))?;
    let mut steps = Steps;
    let (sip, carrier) = sip_address(config, args)?;
    let url = url(config, args)?;
    // This request needs no key; the key is created later.
    let anyone = ApiClient::new(&url, "none", args.ca.as_deref())?;
    steps.take("engine", ready(config, args, &anyone)).await?;
    let temporary = match given(args)? {
        Some(tenant) => (tenant, None),
        None => {
            let created = steps.take("extensions", Temporary::create(config, &url)).await?;
            (created.tenant.clone(), Some(created))
        }
    };
    let (tenant, temporary) = temporary;
    let test = Test { tenant, sip, carrier, url, ca: args.ca.clone(), is_new: temporary.is_some(), config };
    let outcome = test.run(&mut steps, &mut signals).await;
    if let Some(temporary) = temporary {
        let removed = steps.take("clean-up", temporary.remove()).await;
        if let (Err(_), Err(left)) = (&outcome, &removed) {
            crate::cli::tell!("sidetone: {left}");
        }
        return outcome.and(removed);
    }
    outcome
}

/// The result of a step, or an error at the first signal.
async fn unless<T>(
    signals: &mut Signals,
    step: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    tokio::select! {
        outcome = step => outcome,
        () = signals.any() => Err("check --call: interrupted".to_owned()),
    }
}

/// Prints each step and how long it took.
struct Steps;

impl Steps {
    /// Executes a step, with a limit of half a minute.
    async fn take<T: Shown>(
        &mut self,
        name: &str,
        step: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let began = now();
        let late = || Err(format!("not done within {} s; is the machine overloaded?", STEP_MAX.as_secs()));
        let outcome = timeout(STEP_MAX, step).await.unwrap_or_else(|_| late());
        let took = began.elapsed().as_secs_f64();
        match outcome {
            Ok(done) => {
                // A closed stdout does not change the result.
                let _ = writeln!(std::io::stdout(), "call {name:<11} {took:>7.3} s  {}", done.shown());
                Ok(done)
            }
            Err(problem) => Err(format!("check --call: {name}: {}", softphone::clean(&problem))),
        }
    }
}

/// The result of a step, as its line shows it.
trait Shown {
    fn shown(&self) -> String;
}

impl Shown for String {
    fn shown(&self) -> String {
        softphone::clean(self)
    }
}

impl Shown for () {
    fn shown(&self) -> String {
        "done".to_owned()
    }
}

impl Shown for Temporary {
    fn shown(&self) -> String {
        format!("{} and {} in {}, for this test alone", self.tenant.from, self.tenant.to, self.tenant.domain)
    }
}

impl Shown for Phone {
    fn shown(&self) -> String {
        format!("from {}", self.local())
    }
}

impl Shown for CallOutcome {
    fn shown(&self) -> String {
        format!("answered, {} RTP packets received", self.received)
    }
}

/// The call, and its parameters.
struct Test<'a> {
    tenant: Tenant,
    sip: SocketAddr,
    carrier: Carrier,
    url: String,
    ca: Option<PathBuf>,
    /// Whether the engine must learn of the extensions first.
    is_new: bool,
    config: &'a Config,
}

impl Test<'_> {
    async fn run(&self, steps: &mut Steps, signals: &mut Signals) -> Result<(), String> {
        let client = ApiClient::new(&self.url, &self.tenant.key, self.ca.as_deref())?;
        let Tenant { from, to, passwords: [of_from, of_to], .. } = &self.tenant;
        let called = unless(signals, steps.take("register", self.phone(to, of_to))).await?;
        let caller = match unless(signals, steps.take("register", self.phone(from, of_from))).await {
            Ok(caller) => caller,
            Err(problem) => {
                self.leave(&called, to).await;
                return Err(problem);
            }
        };
        let outcome = unless(signals, self.call(steps, &client, &caller, &called)).await;
        // An interrupted call is still up; a stopped phone has none.
        let _ = caller.hang_up().await;
        self.leave(&caller, from).await;
        self.leave(&called, to).await;
        outcome
    }

    async fn call(
        &self,
        steps: &mut Steps,
        client: &ApiClient,
        caller: &Phone,
        called: &Phone,
    ) -> Result<(), String> {
        let mut before = None;
        let call = async {
            before = newest(client, &self.tenant).await?;
            self.talk(caller, called).await
        };
        steps.take("call", call).await?;
        steps.take("verdict", self.verdict(client, before)).await?;
        Ok(())
    }

    /// A registered phone that answers and talks.
    async fn phone(&self, number: &str, password: &str) -> Result<Phone, String> {
        let config = PhoneConfig {
            codecs: CodecPolicy::new(["PCMA", "PCMU"]),
            answering: Answering::Answer { after: Duration::ZERO, talk: Some(Box::new(scenario()?)) },
            carrier: self.carrier,
            only_the_switch: true,
            calls_len_max: 1,
            ..PhoneConfig::new(self.sip, self.tenant.domain.clone(), number, password)
        };
        let sip = self.sip;
        let unreachable = |error: PhoneError| {
            format!("no phone reaches {sip} ({error}); check [sip] listen and the firewall")
        };
        let phone = Phone::start(config).await.map_err(unreachable)?;
        let until = now() + if self.is_new { HEARD_OF_MAX } else { Duration::ZERO };
        loop {
            let registered = timeout(ANSWER_MAX, phone.register(number)).await;
            match registered {
                Ok(Ok(_)) => return Ok(phone),
                // A running engine reads new extensions within two seconds.
                Ok(Err(PhoneError::Refused { status: 401 | 403 | 404 | 407, .. })) if now() < until => {
                    sleep(RETRY_EVERY).await;
                }
                Ok(Err(PhoneError::Refused { status: status @ (401 | 403 | 404 | 407), .. })) => {
                    return Err(format!(
                        "{number}@{}: the engine answers {status}; check the number, the domain and the password",
                        self.tenant.domain
                    ));
                }
                Err(_) | Ok(Err(PhoneError::Refused { status: 408, .. })) => {
                    return Err(format!(
                        "{sip}: no answer; check that the engine listens there ([sip] listen), and the firewall"
                    ));
                }
                Ok(Err(error)) => return Err(unreachable(error)),
            }
        }
    }

    /// Three seconds of audio in both directions.
    async fn talk(&self, caller: &Phone, called: &Phone) -> Result<CallOutcome, String> {
        let plan = CallPlan {
            talk: Some(Box::new(scenario()?)),
            talk_time: Some(TALK_TIME),
            ..CallPlan::to(self.tenant.to.clone())
        };
        let placed = timeout(CALL_MAX, caller.call(plan)).await;
        let outcome = placed.map_err(|_| "the call did not end; read the log of the engine".to_owned())?;
        let outcome = outcome.map_err(|error| format!("failed to {error}"))?;
        if outcome.status != 200 {
            return Err(refused(outcome.status));
        }
        let ports = &self.config.media.ports;
        for (party, received) in [("calling", outcome.received), ("called", called.heard())] {
            if received == 0 {
                return Err(format!(
                    "the {party} phone received no RTP; check the firewall for UDP {}-{} ([media] ports) and [sip] \
                     external_address",
                    ports.start(),
                    ports.end()
                ));
            }
        }
        Ok(outcome)
    }

    /// The verdict of the record, which is stored within a second after the call.
    async fn verdict(&self, client: &ApiClient, before: Option<String>) -> Result<String, String> {
        let until = now() + RECORD_MAX;
        let uuid = loop {
            let latest = newest(client, &self.tenant).await?;
            match latest.filter(|latest| Some(latest) != before.as_ref()) {
                Some(uuid) => break uuid,
                None if now() < until => sleep(RETRY_EVERY).await,
                None => {
                    return Err(
                        "the call has no record; read the log of the engine, and check the database \
                                and the disk (GET /readyz)"
                            .to_owned(),
                    );
                }
            }
        };
        let quality = client.get(&format!("/cdrs/{uuid}/quality")).await.map_err(|failure| failure.reason)?;
        let of = |side: &Value, key: &str| side.get(key).and_then(Value::as_str).unwrap_or("none").to_owned();
        let called = quality.get("callee").unwrap_or(&Value::Null);
        for (party, side) in [("calling", &quality), ("called", called)] {
            let verdict = of(side, "media_verdict");
            let words = format!("the audio of the {party} phone: {verdict}: {}", of(side, "sentence"));
            match verdict.as_str() {
                "ok" => {}
                "none"
                | "unanswered"
                | "no_inbound_media"
                | "no_outbound_media"
                | "wrong_advertised_address" => {
                    return Err(format!(
                        "{words}; check [media] ports, [sip] external_address and the firewall"
                    ));
                }
                // Audio arrived; on a busy machine its timing may be uneven.
                _ => {
                    crate::cli::tell!("sidetone: warning: {}; is the machine busy?", softphone::clean(&words))
                }
            }
        }
        Ok(format!("{} and {}, call {uuid}", of(&quality, "media_verdict"), of(called, "media_verdict")))
    }

    /// Removes the registration; the test does not wait long for it.
    async fn leave(&self, phone: &Phone, number: &str) {
        // Without a response the binding expires by itself.
        let _ = timeout(ANSWER_MAX, phone.unregister(number)).await;
    }
}

/// The explanation of a refused call.
fn refused(status: u16) -> String {
    let advice = match status {
        404 => "the called extension is not known; check --to",
        408 | 480 => "the called phone was not reached; check the firewall between the engine and this host",
        488 => "the phones and the engine share no codec; check the codecs of the extensions",
        503 => "the engine takes no calls; GET /readyz names the reason",
        _ => "read the log of the engine",
    };
    format!("the engine answers {status}: {advice}")
}

/// The UUID of the newest ended record between the two extensions.
async fn newest(client: &ApiClient, tenant: &Tenant) -> Result<Option<String>, String> {
    let page = client.get("/cdrs?limit=50").await.map_err(|failure| {
        let advice = match failure.status {
            Some(401 | 403) => "; check the key and its permission calls:read",
            _ => "",
        };
        format!("{}: GET /cdrs: {}{advice}", client.url(), failure.reason)
    })?;
    let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is =
        |item: &Value, key: &str, expected: &str| item.get(key).and_then(Value::as_str) == Some(expected);
    let own = items.iter().find(|item| {
        is(item, "caller_number", &tenant.from)
            && is(item, "destination_number", &tenant.to)
            && item.get("ended_at").is_some_and(Value::is_string)
    });
    Ok(own.and_then(|item| item.get("call_uuid")?.as_str()).map(str::to_owned))
}

/// Whether the engine of this configuration is running and accepts calls.
async fn ready(config: &Config, args: &SelfTestArgs, client: &ApiClient) -> Result<String, String> {
    // The lock of an engine on another host, which the user specifies, is not visible here.
    let is_elsewhere = args.from.is_some() && args.url.is_some();
    if !is_elsewhere && running_engine(&journal_dir(config).join(LOCK_FILE)).is_none() {
        return Err(format!(
            "no engine runs with [node] data_dir {}; start it (systemctl start sidetone), or name its configuration \
             with --config",
            config.node.data_dir.display()
        ));
    }
    let ready = timeout(ANSWER_MAX, client.read("/readyz")).await;
    let answer =
        ready.unwrap_or_else(|_| Err(sidetone_terminal::Failure::unreachable("no answer within 10 s")));
    answer.map_err(|failure| {
        format!("{} is not ready: {}; --url names another address", client.url(), failure.reason)
    })?;
    Ok(format!("{} is ready", client.url()))
}

/// The extensions that the user specifies.
fn given(args: &SelfTestArgs) -> Result<Option<Tenant>, String> {
    let (Some(from), Some(to), Some(domain), Some(passwords), Some(key)) =
        (&args.from, &args.to, &args.domain, &args.passwords, &args.key_file)
    else {
        return Ok(None);
    };
    let unreadable = |error| format!("{}: cannot be read ({error})", passwords.display());
    let text = std::fs::read_to_string(passwords).map_err(unreadable)?;
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else {
        return Err(format!("{}: two lines are needed, one password each", passwords.display()));
    };
    let key = softphone::read(key).map_err(|error| error.to_string())?;
    Ok(Some(Tenant {
        domain: domain.clone(),
        from: from.clone(),
        to: to.clone(),
        passwords: [first.to_owned(), second.to_owned()],
        key,
    }))
}

/// The address of the engine for SIP, over UDP before TCP.
fn sip_address(config: &Config, args: &SelfTestArgs) -> Result<(SocketAddr, Carrier), String> {
    if let Some(address) = args.sip {
        return Ok((address, Carrier::Udp));
    }
    let over =
        |transport| config.sip.listeners(transport).next().map(|address| reachable(address.to_owned()));
    over(Transport::Udp)
        .map(|address| (address, Carrier::Udp))
        .or_else(|| over(Transport::Tcp).map(|address| (address, Carrier::Tcp)))
        .ok_or_else(|| {
            "check --call: [sip] listen has no udp:// and no tcp:// address for the phones".to_owned()
        })
}

fn url(config: &Config, args: &SelfTestArgs) -> Result<String, String> {
    match &args.url {
        Some(url) => Ok(url.clone()),
        None if config.http.tls => {
            Err("check --call: [http] tls is on; name the engine as its certificate does, such as \
                                        --url https://pbx.example.com:8080"
                .to_owned())
        }
        None => Ok(format!("http://{}", reachable(config.http.listen))),
    }
}

/// An address that a program on this host can reach.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn scenario() -> Result<sidetone_media::simulate::Scenario, String> {
    "clean duration=1m".parse().map_err(|_| "the audio of the test cannot be made".to_owned())
}

/// How long one step may take.
const STEP_MAX: Duration = Duration::from_secs(30);
/// How long a response may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long a running engine may take to read new extensions.
const HEARD_OF_MAX: Duration = Duration::from_secs(10);
/// How long the audio lasts.
const TALK_TIME: Duration = Duration::from_secs(3);
/// How long the whole call may take.
const CALL_MAX: Duration = Duration::from_secs(25);
/// How long the record may take.
const RECORD_MAX: Duration = Duration::from_secs(15);
/// The pause between repeated attempts.
const RETRY_EVERY: Duration = Duration::from_millis(500);
