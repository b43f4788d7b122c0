//! Registrations that are kept across a restart.

use std::time::Duration;

use sidetone_model::access::Scope;
use sidetone_model::registration::{KeptExtension, RegistrationQuery, RegistrationRecord};
use sidetone_model::time::Now;
use sidetone_sip::flow::{Flow, ListenerId, Protocol};
use sidetone_sip::registrar::{ContactUpdate, Contacts, Registrar, RegistrarConfig, Registration};

use crate::kept_bindings::ChangedBindings;
use crate::queries::{ListRegistrations, RestoreBindings, TakeChangedBindings};
use crate::routing::Directory;
use crate::tests::network::{Net, acme, address};

fn registrations(net: &mut Net) -> Vec<RegistrationRecord> {
    net.ask(ListRegistrations(Scope::Everything, RegistrationQuery::default())).items
}

/// The number of bindings that a new process restores from `kept`.
fn restored(kept: &[KeptExtension]) -> usize {
    let mut net = Net::new(acme(Vec::new()));
    let restored = net.ask(RestoreBindings(kept.to_vec()));
    assert_eq!(registrations(&mut net).len(), restored);
    restored
}

#[test]
fn bindings_of_the_same_credential_are_restored_once() {
    let mut net = Net::new(acme(Vec::new()));
    net.register();
    let before = registrations(&mut net);
    assert_eq!(before.len(), 1);
    let kept = net.ask(TakeChangedBindings(500));
    assert_eq!((kept.len(), kept[0].bindings.len()), (1, 1));
    assert_eq!(net.ask(TakeChangedBindings(500)), [], "taken once");

    let mut again = Net::new(acme(Vec::new()));
    assert_eq!(again.ask(RestoreBindings(kept.clone())), 1);
    let after = registrations(&mut again);
    assert_eq!((&after[0].contact, &after[0].source), (&before[0].contact, &before[0].source));
    assert_eq!(after[0].expires_at, before[0].expires_at);
    assert_eq!(again.ask(RestoreBindings(kept.clone())), 0, "registered already");
    assert_eq!(again.ask(TakeChangedBindings(500)), kept, "kept over the next restart too");

    let with = |change: &dyn Fn(&mut KeptExtension)| {
        let mut changed = kept.clone();
        change(&mut changed[0]);
        restored(&changed)
    };
    assert_eq!(with(&|_| {}), 1);
    assert_eq!(with(&|kept| kept.credential.clear()), 0, "another password");
    assert_eq!(with(&|kept| kept.aor = "1001@elsewhere.test".to_owned()), 0, "another address of record");
    assert_eq!(with(&|kept| kept.extension_id.0 = uuid::Uuid::nil()), 0, "no such extension");
    assert_eq!(with(&|kept| kept.bindings[0].contact = "sip:".to_owned()), 0, "damaged");
    let late = |kept: &mut KeptExtension| kept.bindings[0].expires_at = kept.bindings[0].registered_at;
    assert_eq!(with(&late), 0, "expired meanwhile");
    let many = |kept: &mut KeptExtension| {
        for number in 0..30 {
            let mut binding = kept.bindings[0].clone();
            binding.contact = format!("sip:1001@192.0.2.{number}");
            kept.bindings.push(binding);
        }
    };
    assert_eq!(with(&many), RegistrarConfig::default().bindings_max);
}

/// A connection ends with the process, so a call over it would never be answered.
#[test]
fn bindings_over_connections_are_not_kept() {
    let net = Net::new(acme(Vec::new()));
    let now = Now { instant: net.now(), wall: sidetone_model::time::Timestamp::from_micros(1_000_000) };
    let directory = Directory::new(acme(Vec::new()));
    let mut registrar = Registrar::new(RegistrarConfig::default());
    let mut changed = ChangedBindings::default();
    for (cseq, protocol) in (1..).zip([Protocol::Tcp, Protocol::Udp, Protocol::Tls, Protocol::Wss]) {
        let flow = Flow { listener: ListenerId(0), remote: address("192.0.2.9:5060"), protocol };
        let contact = ContactUpdate {
            uri: format!("sip:1001@192.0.2.9:{}", 5060 + cseq).parse().unwrap(),
            expires: None,
            q_permille: 1_000,
            instance: None,
            reg_id: None,
            has_ice: false,
        };
        let registration = Registration {
            contacts: Contacts::List(vec![contact]),
            expires: Some(600),
            call_id: "a".to_owned(),
            cseq,
            user_agent: Some("a phone".into()),
            path: Vec::new(),
            flow,
            bindings_max: None,
        };
        registrar.register(now.instant, "1001@acme.test", registration).unwrap();
    }
    while let Some(output) = registrar.poll_output() {
        changed.note(&output);
    }
    let kept = changed.take(now, 1, &directory, &registrar);
    let contacts: Vec<&str> = kept[0].bindings.iter().map(|binding| binding.contact.as_str()).collect();
    assert_eq!((kept.len(), contacts), (1, vec!["sip:1001@192.0.2.9:5062"]));
    let binding = &kept[0].bindings[0];
    assert_eq!(binding.user_agent.as_deref(), Some("a phone"));
    let lasts = binding.expires_at.as_micros() - now.wall.as_micros();
    assert_eq!(lasts, Duration::from_secs(600).as_micros() as i64);
}
