//! Applying a file creates what it declares, once.

use serde_json::Value;
use sidetone_model::directory::{Destination, Srtp, StrictSource, Video};
use sidetone_model::ports::ApiKeys;
use sidetone_model::trunk_interop::{InboundNumbers, OutboundNumbers};
use sidetone_sip::auth::{Algorithm, Credential};

use crate::provision::ACME;
use crate::provision::declare;
use crate::provision::json;
use crate::provision::refusals;
use crate::provision::with_store;

#[test]
fn the_file_of_the_contract_becomes_the_directory() {
    with_store(async |store| {
        let report = json(&declare(store, &[ACME], false).await.unwrap());
        assert_eq!(
            (&report["created"], &report["changed"], &report["unchanged"]),
            (&8.into(), &0.into(), &0.into())
        );
        let acme = &report["organisations"][0];
        assert_eq!(acme["name"], "Acme");
        assert_eq!(acme["extensions"][0].get("password"), None, "it was given");
        let password = acme["extensions"][1]["password"].as_str().unwrap();
        assert_eq!(password.len(), 20);
        assert!(acme["api_keys"][0]["key"].as_str().unwrap().starts_with("tel_ABCDEFGHIJKL_"));
        assert_eq!(acme["api_keys"][1]["key"].as_str().unwrap().len(), 60);
        for list in ["teams", "extensions", "api_keys", "numbers"] {
            assert_eq!(acme[list][0]["id"].as_str().unwrap().len(), 36, "{list}");
        }
        assert_eq!((&acme["users"], &acme["rooms"]), (&Value::Array(vec![]), &Value::Array(vec![])));
        assert_eq!(report["trunks"][0]["name"], "carrier");

        let directory = store.directory().await.unwrap();
        assert_eq!(directory.organisations[0].sip_domain, "acme.test");
        let [ada, other] = directory.extensions.as_slice() else { panic!("two extensions") };
        assert_eq!(ada.codecs, ["opus", "G722", "PCMA", "PCMU"]);
        let trunk = &directory.trunks[0];
        assert_eq!(
            (ada.strict_source, trunk.strict_source, ada.srtp, trunk.srtp),
            (Some(StrictSource::Sdp), Some(StrictSource::Any), Srtp::Required, Srtp::Optional)
        );
        assert_eq!((ada.video, other.video, trunk.video), (Video::Pass, Video::Off, Video::Pass));
        let interop = &trunk.interop;
        assert_eq!(interop.backup_addresses, ["sip:b.carrier.example", "sip:192.0.2.9:5062"]);
        assert_eq!(
            (interop.from_domain.as_str(), interop.national_prefix.as_str()),
            ("acme.carrier.example", "0")
        );
        let formats = (InboundNumbers::National, OutboundNumbers::Prefixed);
        assert_eq!((interop.inbound_numbers, interop.outbound_numbers), formats);
        assert_eq!(
            (&interop.codecs, &interop.headers),
            (&vec!["PCMA".into()], &vec!["X-Account: 42".into(), "X-Site: 1".into()])
        );
        assert!(ada.do_not_disturb && !other.do_not_disturb);
        assert_eq!((ada.max_registrations, other.max_registrations), (3, 10));
        assert!(ada.notify_message_waiting && !other.notify_message_waiting);
        let targets: Vec<_> = ada.forwarding.targets().collect();
        assert_eq!(targets, [("busy", "1002"), ("no_answer", "+442071230001")]);
        assert_eq!((ada.forwarding.no_answer_seconds, other.forwarding.no_answer_seconds), (30, 20));
        let limits = (directory.organisations[0].max_call_seconds, trunk.max_call_seconds);
        assert_eq!(limits, (Some(7_200), Some(3_600)));
        assert!(ada.team_id.is_some() && other.team_id.is_none());
        for (extension, password) in [(ada, "correct horse"), (other, password)] {
            let credential = Credential::new(&extension.number, "acme.test", password);
            assert_eq!(extension.ha1.md5, credential.ha1(Algorithm::Md5));
            assert_eq!(extension.ha1.sha256, credential.ha1(Algorithm::Sha256));
        }
        assert_eq!(directory.numbers[0].destination, Destination::Extension(ada.id));
        let trunk = &directory.trunks[0];
        assert_eq!(trunk.organisation_id, Some(directory.organisations[0].id));
        assert_eq!(trunk.accept_from[0].address.to_string(), "192.0.2.0", "host bits are zero");

        let key = ApiKeys::find(store, "ABCDEFGHIJKL").await.unwrap().unwrap();
        let allow: Vec<String> =
            key.allow.iter().map(|n| format!("{}/{}", n.address, n.prefix_len)).collect();
        assert_eq!(allow, ["127.0.0.1/32", "192.0.2.0/24", "2001:db8::/32"]);
        assert_eq!(key.rate_per_minute, 5);
    });
}

#[test]
fn a_second_time_changes_nothing_and_shows_no_generated_secret() {
    with_store(async |store| {
        let first = json(&declare(store, &[ACME], false).await.unwrap());
        let before = store.directory().await.unwrap();
        let second = json(&declare(store, &[ACME], false).await.unwrap());
        assert_eq!(
            (&second["created"], &second["changed"], &second["unchanged"]),
            (&0.into(), &0.into(), &8.into())
        );
        let acme = &second["organisations"][0];
        assert_eq!(acme["extensions"][1].get("password"), None);
        assert_eq!(acme["api_keys"][1].get("key"), None);
        assert_eq!(acme["id"], first["organisations"][0]["id"]);
        assert_eq!(store.directory().await.unwrap(), before, "revision and all");
    });
}

#[test]
fn what_differs_is_changed_and_counted() {
    with_store(async |store| {
        declare(store, &[ACME], false).await.unwrap();
        let changed = ACME.replace("Ada", "Grace").replace("rate_per_minute = 5", "rate_per_minute = 6");
        let report = declare(store, &[&changed], false).await.unwrap();
        let text = report.to_string();
        assert_eq!(
            text,
            "changed extension 1001 of Acme\nchanged API key crm of Acme\n0 created, 2 changed, 6 unchanged\n"
        );
        assert_eq!(store.directory().await.unwrap().revision, 2);
    });
}

#[test]
fn a_dry_run_changes_nothing_and_shows_no_secret() {
    with_store(async |store| {
        let report = json(&declare(store, &[ACME], true).await.unwrap());
        assert_eq!(report["created"], 8);
        let acme = &report["organisations"][0];
        assert_eq!((acme.get("id"), acme["extensions"][1].get("password")), (None, None));
        assert_eq!(acme["api_keys"][1].get("key"), None);
        let directory = store.directory().await.unwrap();
        assert_eq!((directory.revision, directory.organisations.len()), (0, 0));
    });
}

#[test]
fn several_files_are_one_whole() {
    with_store(async |store| {
        let trunk = "[[trunks]]\nname = \"t\"\norganisation = \"Acme\"\naccept_from = [\"198.51.100.1\"]\n";
        declare(store, &[trunk, ACME], false).await.unwrap();
        assert_eq!(store.directory().await.unwrap().trunks.len(), 2);
        let bad = "[[trunks]]\nname = \"u\"\norganisation = \"Nobody\"\n";
        let more = "[[organisations]]\nname = \"Bolt\"\nsip_domain = \"bolt.test\"\n";
        let refused = refusals(declare(store, &[more, bad], false).await.unwrap_err());
        assert_eq!(
            refused,
            ["1: trunk \"u\": organisation: there is no organisation \"Nobody\", declare it"]
        );
        assert_eq!(store.directory().await.unwrap().organisations.len(), 1, "all or nothing");
    });
}
