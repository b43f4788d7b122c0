//! The effects of a changed credential, and the reports about wrong credentials.

use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone_model::directory::{DirectorySnapshot, Ha1};
use sidetone_model::guessing::GuessLimit;
use sidetone_sip::auth::{Algorithm, Client, Credential, Realm};
use sidetone_sip::flow::{Flow, ListenerId};
use sidetone_sip::message::Method;
use sidetone_sip::ua::Draft;
use uuid::Uuid;

use crate::denied::Denial;
use crate::machine::{Input, Notice};
use crate::routing::Directory;
use crate::tests::network::{Net, SWITCH, acme, address};

fn with_password(password: &str) -> DirectorySnapshot {
    let mut directory = acme(Vec::new());
    let credential = Credential::new("1001", "acme.test", password);
    directory.extensions[0].ha1 = Ha1 {
        md5: credential.ha1(Algorithm::Md5).to_owned(),
        sha256: credential.ha1(Algorithm::Sha256).to_owned(),
    };
    directory
}

fn replace(net: &mut Net, directory: DirectorySnapshot) {
    net.feed(Input::Directory(Arc::new(Directory::new(directory))));
    net.run();
}

/// Sends REGISTER from 1001 with this password; returns the response if it was not 200.
fn register(net: &mut Net, password: &str) -> Option<String> {
    let realm = Realm::Exactly("acme.test".into());
    net.login = Client::new("1001", password, realm, StdRng::seed_from_u64(9));
    net.heard.clear();
    let aor = "<sip:1001@acme.test>";
    let draft = Draft::new(Method::Register, "sip:acme.test", aor, aor).header("Expires", "600");
    let now = net.now();
    net.phone.request(now, Flow::udp(ListenerId(0), address(SWITCH)), draft).unwrap();
    net.run();
    let said = net.heard.first().cloned();
    said.filter(|said| !said.starts_with("200"))
}

fn reasons(net: &Net) -> Vec<&'static str> {
    let denied = net.notices.iter().filter_map(|notice| match notice {
        Notice::Denied(denied) => Some(denied.denial.as_str()),
        _ => None,
    });
    denied.collect()
}

#[test]
fn a_new_password_ends_registrations_at_once_and_holds_at_once() {
    let mut net = Net::new(with_password("the first password"));
    assert_eq!(register(&mut net, "the first password"), None);
    assert_eq!(net.switch.bindings(), 1);
    // A change of other fields ends no registration.
    let mut renamed = with_password("the first password");
    renamed.extensions[0].name = "Ada Lovelace".into();
    replace(&mut net, renamed);
    assert_eq!(net.switch.bindings(), 1);

    replace(&mut net, with_password("the second password"));
    assert_eq!(net.switch.bindings(), 0);
    assert_eq!(register(&mut net, "the first password").as_deref(), Some("401 Unauthorized"));
    assert_eq!(net.switch.bindings(), 0);
    assert_eq!(register(&mut net, "the second password"), None);
    assert_eq!(net.switch.bindings(), 1);
}

#[test]
fn a_new_password_holds_even_after_too_many_wrong_ones() {
    let mut net = Net::new(with_password("the first password"));
    for _ in 0..12 {
        register(&mut net, "the second password");
    }
    assert_eq!(register(&mut net, "the second password").as_deref(), Some("403 Too Many Wrong Passwords"));
    replace(&mut net, with_password("the second password"));
    assert_eq!(register(&mut net, "the second password"), None);
    assert_eq!(net.switch.bindings(), 1);
    let reported = reasons(&net);
    assert_eq!(reported.iter().filter(|reason| **reason == "wrong_credentials").count(), 10);
    assert_eq!(reported.iter().filter(|reason| **reason == "limited").count(), 3);
}

#[test]
fn an_organisation_is_told_once_that_an_extension_s_password_is_guessed() {
    let mut net = Net::new(with_password("a password"));
    for attempt in 1..=30 {
        register(&mut net, "a guess");
        assert_eq!(net.guessed.len(), usize::from(attempt >= 10), "after {attempt} wrong passwords");
    }
    let told = net.guessed.remove(0);
    assert_eq!(
        (told.account.as_str(), told.extension_id),
        ("1001@acme.test", Some(Uuid::from_u128(11).into()))
    );
    assert_eq!(
        (told.organisation_id, told.source),
        (Uuid::from_u128(1).into(), "192.0.2.1".parse().unwrap())
    );
    let limit = (told.limit, told.failures, told.window_seconds, told.left_out);
    assert_eq!(limit, (GuessLimit::Account, 10, 300, 0));
    let limits =
        net.notices.iter().filter(|notice| matches!(notice, Notice::Guessing(_, GuessLimit::Account)));
    assert_eq!(limits.count(), 1);

    // A new password resets the count; within a minute, the organisation gets no second alert for the same account.
    replace(&mut net, with_password("another password"));
    for _ in 0..12 {
        register(&mut net, "a guess");
    }
    assert!(net.guessed.is_empty(), "{:?}", net.guessed);
    replace(&mut net, with_password("a third password"));
    net.wait(Duration::from_secs(60));
    for _ in 0..12 {
        register(&mut net, "a guess");
    }
    assert_eq!(net.guessed.iter().map(|told| told.left_out).collect::<Vec<_>>(), [1]);
}

#[test]
fn an_extension_that_is_gone_renamed_or_made_anew_is_registered_no_more() {
    let gone = DirectorySnapshot { extensions: Vec::new(), ..with_password("a password") };
    let mut renumbered = with_password("a password");
    renumbered.extensions[0].number = "1002".into();
    let mut anew = with_password("a password");
    anew.extensions[0].id = Uuid::from_u128(99).into();
    let mut moved = with_password("a password");
    moved.organisations[0].sip_domain = "acme.example".into();
    for (name, after) in [("gone", gone), ("renumbered", renumbered), ("anew", anew), ("moved", moved)] {
        let mut net = Net::new(with_password("a password"));
        assert_eq!(register(&mut net, "a password"), None, "{name}");
        assert_eq!(net.switch.bindings(), 1, "{name}");
        replace(&mut net, after);
        assert_eq!(net.switch.bindings(), 0, "{name}");
    }
}

#[test]
fn every_failure_says_whose_and_why() {
    let mut net = Net::new(with_password("a password"));
    register(&mut net, "a guess");
    let [Notice::Denied(denied)] = net.notices.as_slice() else { panic!("{:?}", net.notices) };
    let said = (denied.source.to_string(), denied.account.as_str(), denied.method, denied.denial);
    assert_eq!(said, ("192.0.2.1".to_owned(), "1001@acme.test", "REGISTER", Denial::Wrong));
    // The first challenge is normal for every phone and is not reported.
    net.notices.clear();
    register(&mut net, "a password");
    assert!(net.notices.is_empty(), "{:?}", net.notices);
}
