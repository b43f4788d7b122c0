//! A flood from a hundred addresses beside live calls (the flood of issue 13; catalogue T1).

use std::net::{Ipv4Addr, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::records::TempDir;
use crate::long::check::{Checks, note, percentile_ms, seconds, setting, spread_ms};
use crate::long::engine::{Engine, Start, apply, organisation};
use crate::long::flooder::{Flood, Make, mixed, noise};
use crate::long::office::{Loss, Office, address};
use crate::long::phone::{Answer, Phone};
use crate::long::usage::{Sampler, cpu, peak_mib, slope_mib_per_s};

/// 50,000 datagrams a second of five methods and random bytes.
#[test]
#[ignore = "long: two minutes"]
fn long_flood() {
    let rate = setting("SIDETONE_FLOOD_RATE", 50_000);
    let mut checks = Checks::default();
    let site = Site::open();
    let attacked = site.attacked(rate, || mixed(DOMAIN, 1));
    attacked.judge("flood", &mut checks);
    checks.end();
}

/// 30,000 datagrams a second of random bytes.
#[test]
#[ignore = "long: two minutes"]
fn long_t1_junk_flood() {
    let rate = setting("SIDETONE_T1_RATE", 30_000);
    let mut checks = Checks::default();
    let site = Site::open();
    let (lost, counted) = (site.kernel_drops(), site.rejected());
    let attacked = site.attacked(rate, || noise(1));
    attacked.judge("T1", &mut checks);
    // The engine cannot count datagrams that the kernel dropped.
    let known = site.rejected() - counted + (site.kernel_drops() - lost) as f64;
    let share = known * 100.0 / attacked.sent.max(1) as f64;
    let figure = format!("{share:.2} % of {} datagrams", attacked.sent);
    checks.check("T1 drop counter", (99.0..=101.0).contains(&share), figure, "99 to 101 % counted");
    checks.end();
}

/// An engine with live calls.
struct Site {
    engine: Engine,
    office: Office,
    calls: Range<usize>,
    spare: Range<usize>,
    /// Removed after the engine.
    _dir: TempDir,
}

/// The effects of the flood.
struct Attacked {
    sent: u64,
    rate: f64,
    wanted: u64,
    up: usize,
    calls: usize,
    ended: u32,
    flood: Loss,
    control: Loss,
    late: [Duration; 2],
    reinvites: Tries,
    byes: Tries,
    new_calls: Tries,
    registers: Tries,
    rss_before_mib: f64,
    rss_peak_mib: f64,
    rss_slope: f64,
    panics: f64,
}

/// Requests of one kind, and their outcomes.
#[derive(Default)]
struct Tries {
    took: Vec<Duration>,
    failed: Vec<String>,
}

impl Tries {
    fn add(&mut self, answer: Option<Answer>) {
        match answer {
            Some(answer) if answer.status == 200 => self.took.push(answer.took),
            Some(answer) => self.failed.push(answer.status.to_string()),
            None => self.failed.push("no answer".to_owned()),
        }
    }

    fn check(&self, id: &str, most_ms: f64, checks: &mut Checks) {
        let most = percentile_ms(&self.took, 1.0);
        let pass = self.failed.is_empty() && !self.took.is_empty() && most < most_ms;
        let figure = format!("{}, failed {} {:?}", spread_ms(&self.took), self.failed.len(), self.kinds());
        checks.check(id, pass, figure, &format!("all answered, < {most_ms} ms"));
    }

    fn kinds(&self) -> Vec<&String> {
        let mut kinds: Vec<&String> = self.failed.iter().collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }
}

impl Site {
    fn open() -> Site {
        let calls: usize = setting("SIDETONE_FLOOD_CALLS", 50);
        let dir = TempDir::new();
        let pairs = calls + SPARE;
        let phones = 2 * u32::try_from(pairs).unwrap();
        apply(dir.path(), &organisation(1, DOMAIN, FIRST, phones));
        let engine = Engine::start(dir.path(), &Start::default());
        let office = Office::open(&engine, 50, DOMAIN, FIRST, phones);
        office.register();
        office.connect(0..pairs);
        Site { engine, office, calls: 0..calls, spare: calls..pairs, _dir: dir }
    }

    fn rejected(&self) -> f64 {
        self.engine.metrics().of("sidetone_sip_dropped_total", "").unwrap_or(0.0)
    }

    /// Datagrams that the kernel dropped because the engine's SIP socket was full.
    fn kernel_drops(&self) -> u64 {
        let port = format!(":{:04X}", self.engine.sip.port());
        let table = std::fs::read_to_string("/proc/net/udp").unwrap();
        let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.filter(|row| row[1].ends_with(&port)).filter_map(|row| row.last()?.parse::<u64>().ok()).sum()
    }

    /// Floods, then repeats the same load without the engine's SIP: loss in that run is the machine's.
    fn attacked(&self, rate: u64, make: impl Fn() -> Make) -> Attacked {
        let lasts = seconds("SIDETONE_FLOOD_SECONDS", 60);
        let sources: Vec<Ipv4Addr> = (0..100).map(|index| address(66, index)).collect();
        let quiet = self.quiet_cpu();
        let before = crate::long::usage::Sample::of(self.engine.pid(), Duration::ZERO).unwrap();
        let panics = || self.engine.metrics().of("sidetone_panics_total", "").unwrap_or(0.0);
        self.office.audio.take_lateness();

        let sampler = Sampler::start(self.engine.pid());
        let window = self.office.window();
        let (cpu_before, began) = (cpu(self.engine.pid()).unwrap(), Instant::now());
        let flood = Flood::start(self.engine.sip, &sources, rate, make());
        let [reinvites, byes, new_calls, registers] = self.probe(lasts);
        let (sent, achieved) = flood.stop();
        // A request without a response keeps its thread, and thus the flood, running for half a minute longer.
        let lasted = began.elapsed();
        let used = (cpu(self.engine.pid()).unwrap() - cpu_before).as_secs_f64() / lasted.as_secs_f64();
        let loss = self.office.loss(&window, self.calls.clone());
        let late = self.office.audio.take_lateness();
        let samples = sampler.stop();
        let up = self.office.up(self.calls.clone());
        let ended = self.office.phones.iter().map(|phone| phone.ended()).sum();
        note(format!("the engine used {used:.2} cores, {quiet:.2} without the flood"));

        let (control, control_late) = self.control(rate, make(), &sources, (used - quiet).max(0.0), lasted);
        Attacked {
            sent,
            rate: achieved,
            wanted: rate,
            up,
            calls: self.calls.len(),
            ended,
            flood: loss,
            control,
            late: [late, control_late],
            reinvites,
            byes,
            new_calls,
            registers,
            rss_before_mib: before.rss_mib(),
            rss_peak_mib: peak_mib(&samples),
            rss_slope: slope_mib_per_s(&samples, lasted / 2),
            panics: panics(),
        }
    }

    /// The cores used by the live calls alone.
    fn quiet_cpu(&self) -> f64 {
        let before = cpu(self.engine.pid()).unwrap();
        std::thread::sleep(QUIET);
        (cpu(self.engine.pid()).unwrap() - before).as_secs_f64() / QUIET.as_secs_f64()
    }

    /// The same flood at a socket that is never read, beside threads that use the engine's share of the processors.
    fn control(
        &self,
        rate: u64,
        make: Make,
        sources: &[Ipv4Addr],
        cores: f64,
        lasts: Duration,
    ) -> (Loss, Duration) {
        let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let burners: Vec<JoinHandle<()>> = (0..2).map(|_| burn(cores / 2.0, Arc::clone(&stop))).collect();
        self.office.audio.take_lateness();
        let window = self.office.window();
        let flood = Flood::start(sink.local_addr().unwrap(), sources, rate, make);
        std::thread::sleep(lasts);
        drop(flood);
        stop.store(true, Ordering::Relaxed);
        burners.into_iter().for_each(|burner| burner.join().unwrap());
        (self.office.loss(&window, self.calls.clone()), self.office.audio.take_lateness())
    }

    /// The requests during the flood of phones with calls and of phones without: re-INVITE, BYE, a new call, REGISTER.
    fn probe(&self, lasts: Duration) -> [Tries; 4] {
        let until = Instant::now() + lasts;
        let tries: [Mutex<Tries>; 4] = Default::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for pair in self.calls.clone().cycle().take_while(|_| Instant::now() < until) {
                    tries[0].lock().unwrap().add(self.office.phones[2 * pair].reinvite());
                    std::thread::sleep(Duration::from_millis(250));
                }
            });
            scope.spawn(|| {
                for pair in self.spare.clone().cycle().take_while(|_| Instant::now() < until) {
                    let [caller, callee] = [0, 1].map(|side| &self.office.phones[2 * pair + side]);
                    if caller.is_up() {
                        tries[1].lock().unwrap().add(caller.bye());
                    }
                    settle(callee);
                    tries[2].lock().unwrap().add(caller.call(&callee.number));
                    std::thread::sleep(Duration::from_millis(500));
                }
            });
            scope.spawn(|| {
                for phone in self.office.phones.iter().cycle().take_while(|_| Instant::now() < until) {
                    tries[3].lock().unwrap().add(phone.register());
                    std::thread::sleep(Duration::from_millis(500));
                }
            });
        });
        tries.map(|tries| tries.into_inner().unwrap())
    }
}

impl Attacked {
    fn judge(&self, id: &str, checks: &mut Checks) {
        let share = self.rate * 100.0 / self.wanted as f64;
        let rate = format!("{:.0}/s offered, {} datagrams", self.rate, self.sent);
        checks.check(&format!("{id} rate"), share >= 90.0, rate, &format!("{}/s", self.wanted));
        let up = format!("{} of {} up, {} ended by the engine", self.up, self.calls, self.ended);
        checks.check(&format!("{id} calls"), self.up == self.calls, up, "no call ends");
        let [flood, control] = [self.flood, self.control].map(|loss| (loss.lost, loss.sent, loss.percent()));
        let figure = format!(
            "{} of {} ({:.3} %), control {} of {} ({:.3} %), sent {} ms late at most, control {} ms",
            flood.0,
            flood.1,
            flood.2,
            control.0,
            control.1,
            control.2,
            self.late[0].as_millis(),
            self.late[1].as_millis()
        );
        checks.check(&format!("{id} audio"), flood.2 <= control.2 + LOSS_PCT_MAX, figure, "control + 0.05 %");
        self.reinvites.check(&format!("{id} re-INVITE"), 500.0, checks);
        self.byes.check(&format!("{id} BYE"), 500.0, checks);
        self.new_calls.check(&format!("{id} new call"), 1_000.0, checks);
        self.registers.check(&format!("{id} REGISTER"), 1_000.0, checks);
        let grown = self.rss_peak_mib - self.rss_before_mib;
        let figure = format!(
            "{grown:.1} MiB more than {:.1} MiB, slope {:.2} MiB/min",
            self.rss_before_mib,
            self.rss_slope * 60.0
        );
        checks.check(&format!("{id} memory"), grown <= 30.0, figure, "+30 MiB");
        checks.check(&format!("{id} panics"), self.panics == 0.0, self.panics, "0");
    }
}

/// Waits until the phone has processed the end of its call, so that it can take the next.
fn settle(phone: &Phone) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while phone.is_up() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Uses a share of one core.
fn burn(share: f64, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let busy = PERIOD.mul_f64(share.min(1.0));
        while !stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            while began.elapsed() < busy {
                std::hint::spin_loop();
            }
            std::thread::sleep(PERIOD.saturating_sub(began.elapsed()));
        }
    })
}

const DOMAIN: &str = "flood.test";
const FIRST: u32 = 1_000;
/// Calls that are ended and placed again during the flood.
const SPARE: usize = 10;
const QUIET: Duration = Duration::from_secs(5);
const PERIOD: Duration = Duration::from_millis(10);
/// One packet in two thousand: below the effect of the scheduler of a shared machine between two runs.
const LOSS_PCT_MAX: f64 = 0.05;
