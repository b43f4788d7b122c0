//! Organisations, extensions, numbers and trunks of the tests.

use sidetone_model::directory::{
    Destination, DirectorySnapshot, Extension, Ha1, Number, Numbering, Organisation, Secret, Srtp, Trunk,
    Video,
};
use sidetone_model::forwarding::Forwarding;
use sidetone_model::trunk_interop::TrunkInterop;
use sidetone_sip::auth::{Algorithm, Credential};
use uuid::Uuid;

use crate::tests::network::PASSWORD;

pub(crate) fn organisation(n: u128, domain: &str) -> Organisation {
    Organisation {
        id: Uuid::from_u128(n).into(),
        name: domain.into(),
        sip_domain: domain.into(),
        currency: "EUR".parse().unwrap(),
        numbering: Numbering { country_code: Some("44".into()), ..Numbering::default() },
        max_outbound_calls: None,
        max_call_seconds: None,
        language: Default::default(),
        star_codes: true,
    }
}

pub(super) fn extension(n: u128, organisation: u128, domain: &str, number: &str) -> Extension {
    let credential = Credential::new(number, domain, PASSWORD);
    Extension {
        id: Uuid::from_u128(n).into(),
        organisation_id: Uuid::from_u128(organisation).into(),
        agent_id: None,
        team_id: None,
        number: number.into(),
        name: "Ada".into(),
        ha1: Ha1 {
            md5: credential.ha1(Algorithm::Md5).to_owned(),
            sha256: credential.ha1(Algorithm::Sha256).to_owned(),
        },
        codecs: Vec::new(),
        strict_source: None,
        srtp: Srtp::Off,
        video: Video::Off,
        forwarding: Forwarding::default(),
        do_not_disturb: false,
        language: None,
        max_registrations: 10,
        notify_message_waiting: false,
        message_waiting: Default::default(),
    }
}

pub(super) fn number(n: u128, organisation: u128, text: &str, extension: u128) -> Number {
    Number {
        id: Uuid::from_u128(n).into(),
        organisation_id: Uuid::from_u128(organisation).into(),
        number: text.into(),
        destination: Destination::Extension(Uuid::from_u128(extension).into()),
    }
}

/// A shared trunk with that address; of several the first is tried first.
pub(crate) fn trunk(n: u16, address: &str) -> Trunk {
    Trunk {
        id: Uuid::from_u128(n.into()).into(),
        organisation_id: None,
        name: format!("trunk-{n}"),
        address: Some(format!("sip:{address}")),
        accept_from: Vec::new(),
        priority: n,
        username: String::new(),
        password: Secret::default(),
        realm: String::new(),
        register: false,
        short_numbers: Vec::new(),
        strict_source: None,
        srtp: Srtp::Off,
        video: Video::Off,
        max_call_seconds: None,
        interop: TrunkInterop::default(),
    }
}

/// Acme with 1001 and its number, and these trunks.
pub(crate) fn acme(trunks: Vec<Trunk>) -> DirectorySnapshot {
    DirectorySnapshot {
        revision: 1,
        organisations: vec![organisation(1, "acme.test")],
        extensions: vec![extension(11, 1, "acme.test", "1001")],
        numbers: vec![number(31, 1, "+442071230000", 11)],
        rooms: Vec::new(),
        trunks,
    }
}
