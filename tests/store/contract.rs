//! Call records, the directory, keys and the journal in the store; the rows that other modules begin with.

use std::sync::atomic::Ordering;

use sidetone::cdr::journal::Journal;
use sidetone::cdr::writer::CdrWriter;
use sidetone_model::access::{Permission, Scope};
use sidetone_model::call::{BillingMode, Direction, EndedBy, HangupCause, Transport};
use sidetone_model::cdr::Cdr;
use sidetone_model::device::Device;
use sidetone_model::directory::{Destination, Ha1, Network, Numbering, Secret, Srtp, StrictSource, Video};
use sidetone_model::forwarding::{ForwardReason, Forwarding};
use sidetone_model::ids::{
    AgentId, CampaignId, ContactId, ExtensionId, NodeId, OrganisationId, TeamId, TrunkId,
};
use sidetone_model::language::Language;
use sidetone_model::money::Amount;
use sidetone_model::page::Window;
use sidetone_model::ports::{ApiKeys, CdrLog, CdrSink};
use sidetone_model::quality::MediaVerdict;
use sidetone_model::time::Timestamp;
use sidetone_model::trunk_interop::TrunkInterop;
use sidetone_store::{
    ApiKeyRow, ApiKeyText, Change, ExtensionRow, NumberRow, OrganisationRow, Store, StoreError, TrunkRow,
};
use uuid::Uuid;

use crate::common::database::{TestDatabase, kinds};
use crate::common::records::{TempDir, answered, at, ended, organisation};

/// Runs one case on a fresh database of every kind.
pub fn with_store(mut case: impl AsyncFnMut(&Store)) {
    with_database(async |store, _| case(store).await);
}

/// Runs one case on a fresh database of every kind, with its location for other clients.
pub fn with_database(mut case: impl AsyncFnMut(&Store, &TestDatabase)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for kind in kinds() {
            let dir = TempDir::new();
            let database = TestDatabase::new(kind, dir.path()).await;
            let store = Store::open(&database.database).await.unwrap();
            eprintln!("on {kind:?}");
            case(&store, &database).await;
            store.close().await;
        }
    });
}

fn everything() -> Cdr {
    let id = Uuid::from_u128;
    Cdr {
        extension_id: Some(ExtensionId(id(1))),
        trunk_id: Some(TrunkId(id(2))),
        direction: Direction::Inbound,
        transport: Transport::Whatsapp,
        billing_mode: BillingMode::Rated,
        dialled_number: Some("00441".to_owned()),
        agent_id: Some(AgentId(id(3))),
        team_id: Some(TeamId(id(4))),
        campaign_id: Some(CampaignId(id(5))),
        contact_id: Some(ContactId(id(6))),
        node_id: Some(NodeId(id(7))),
        bridge_cause: Some(HangupCause::UserBusy),
        sip_status: Some(486),
        ended_by: Some(EndedBy::System),
        fax: true,
        transferred_from: Some(ended(3).call_uuid),
        transferred_to: Some(ended(4).call_uuid),
        forwarded_by: Some("1001".into()),
        forward_reason: Some(ForwardReason::DoNotDisturb),
        forwarded_to: Some("1002".into()),
        device_a: Device { user_agent: Some("Example Phone 7".to_owned()), network: None },
        device_b: Device { user_agent: None, network: Some("192.0.2.0/24".to_owned()) },
        sell_amount: Amount::from_scaled(123_456_789),
        cost_amount: Amount::from_scaled(-1),
        ..ended(1)
    }
}

#[test]
fn a_record_comes_back_as_it_was_written() {
    with_store(async |store| {
        let mut bare = answered(2);
        (bare.answered_at, bare.codec_a, bare.codec_b, bare.caller_number) = (None, None, None, None);
        (bare.destination_number, bare.node_id, bare.sip_status, bare.currency) = (None, None, None, None);
        for cdr in [everything(), bare] {
            assert_eq!(store.store(std::slice::from_ref(&cdr)).await.map(|stored| stored.new), Ok(1));
            assert_eq!(CdrLog::find(store, cdr.call_uuid).await, Ok(Some(cdr)));
        }
        assert_eq!(CdrLog::find(store, ended(9).call_uuid).await, Ok(None));
    });
}

#[test]
fn every_word_of_the_model_can_be_stored() {
    with_store(async |store| {
        for (number, (verdict, _)) in (100..).zip(MediaVerdict::ALL) {
            let mut cdr = ended(number);
            cdr.quality.verdict = Some(verdict);
            assert_eq!(store.store(std::slice::from_ref(&cdr)).await.map(|stored| stored.new), Ok(1));
            assert_eq!(CdrLog::find(store, cdr.call_uuid).await, Ok(Some(cdr)));
        }
    });
}

#[test]
fn a_record_is_stored_once_with_one_event() {
    with_database(async |store, database| {
        let batch = [ended(1), ended(2), ended(1)];
        assert_eq!(store.store(&batch).await.map(|stored| stored.new), Ok(2));
        let mut changed = ended(2);
        changed.billsec = 1;
        let stored = store.store(&[changed, ended(3)]).await;
        assert_eq!(stored.map(|stored| stored.new), Ok(1), "the first one stays");
        let kept = CdrLog::find(store, ended(2).call_uuid).await.unwrap().unwrap();
        assert_eq!(kept.billsec, 60);

        let rows = database.texts("SELECT kind, CAST(at_us AS TEXT), data FROM events ORDER BY id").await;
        assert_eq!(rows.len(), 3);
        let [kind, at_us, data] = rows[0].clone().try_into().unwrap();
        let data: serde_json::Value = serde_json::from_str(&data.unwrap()).unwrap();
        assert_eq!(kind.as_deref(), Some("call.ended"));
        assert_eq!(at_us, Some(at(62).as_micros().to_string()));
        assert_eq!(data["call_uuid"], ended(1).call_uuid.to_string());
        assert!(data.get("cost_amount").is_none() && data.get("margin").is_none());
    });
}

#[test]
fn the_list_is_newest_first_with_the_id_as_tiebreak_and_pages_are_disjoint() {
    with_store(async |store| {
        let mut all: Vec<Cdr> = (0..25).map(ended).collect();
        for (index, cdr) in all.iter_mut().enumerate() {
            // Five instants, five records each.
            cdr.started_at = at((index % 5) as i64);
        }
        store.store(&all).await.unwrap();
        all.sort_by_key(|cdr| std::cmp::Reverse((cdr.started_at, cdr.call_uuid)));
        let scope = Scope::Organisation(organisation(1));
        let mut seen = Vec::new();
        for page in 0..5 {
            let page = store.list(scope, Window::at(page * 7, 7).into()).await.unwrap();
            assert_eq!((page.total, page.limit), (25, 7));
            seen.extend(page.items);
        }
        assert_eq!(seen, all);
    });
}

#[test]
fn a_scope_sees_its_own_records_alone_and_so_does_the_total() {
    with_store(async |store| {
        let mut foreign = ended(50);
        foreign.organisation_id = organisation(2);
        store.store(&[ended(1), foreign.clone(), ended(2)]).await.unwrap();
        let list = async |number| {
            store.list(Scope::Organisation(organisation(number)), Window::default().into()).await.unwrap()
        };
        assert_eq!(list(1).await.total, 2);
        assert_eq!(list(2).await.items, [foreign]);
        assert_eq!(list(3).await.items, []);
        assert_eq!(list(3).await.total, 0);
    });
}

#[test]
fn a_page_beyond_the_end_is_empty_and_knows_the_total() {
    with_store(async |store| {
        store.store(&[ended(1)]).await.unwrap();
        for offset in [1, u64::MAX] {
            let page =
                store.list(Scope::Organisation(organisation(1)), Window::at(offset, 1).into()).await.unwrap();
            assert_eq!((page.items.len(), page.total, page.offset), (0, 1, offset));
        }
    });
}

pub fn acme() -> OrganisationRow {
    OrganisationRow {
        name: "Acme".to_owned(),
        sip_domain: "acme.test".to_owned(),
        currency: "EUR".parse().unwrap(),
        credit: "25.00".parse().ok(),
        numbering: Numbering { country_code: Some("44".to_owned()), ..Numbering::default() },
        max_outbound_calls: Some(30),
        max_call_seconds: Some(7_200),
        star_codes: None,
    }
}

fn line(organisation_id: OrganisationId, team_id: Option<TeamId>) -> ExtensionRow {
    ExtensionRow {
        organisation_id,
        number: "1001".to_owned(),
        name: "Ada".to_owned(),
        team_id,
        ha1: Some(Ha1 { md5: "m".to_owned(), sha256: "s".to_owned() }),
        codecs: vec!["PCMA".to_owned(), "PCMU".to_owned()],
        strict_source: Some(StrictSource::Sdp),
        srtp: Srtp::Required,
        video: Video::Pass,
        forwarding: Some(Forwarding { busy: Some("1002".to_owned()), ..Forwarding::default() }),
        do_not_disturb: Some(true),
        language: Some(Language::German),
        max_registrations: 10,
        notify_message_waiting: false,
    }
}

fn key(organisation_id: OrganisationId, short_id: &str) -> ApiKeyRow {
    ApiKeyRow {
        organisation_id,
        name: "crm".to_owned(),
        text: Some(ApiKeyText {
            prefix: "tel".to_owned(),
            short_id: short_id.to_owned(),
            secret_sha256: [0xA5; 32],
            last4: "wxyz".to_owned(),
        }),
        permissions: vec![Permission::CallsRead, Permission::MarginRead],
        preset: None,
        allow: vec![
            Network { address: "127.0.0.1".parse().unwrap(), prefix_len: 32 },
            Network { address: "2001:db8::".parse().unwrap(), prefix_len: 32 },
        ],
        rate_per_minute: 600,
    }
}

#[test]
fn the_directory_is_what_was_declared() {
    with_store(async |store| {
        let mut write = store.write().await.unwrap();
        let (organisation, _) = write.declare_organisation(&acme(), at(0)).await.unwrap();
        let (team, _) = write.declare_team(organisation, "support", at(0)).await.unwrap();
        let (extension, _) = write.declare_extension(&line(organisation, Some(team)), at(0)).await.unwrap();
        let number = NumberRow {
            organisation_id: organisation,
            number: "+442071230000".to_owned(),
            destination: Destination::Extension(extension),
        };
        write.declare_number(&number, at(0)).await.unwrap();
        let trunk = TrunkRow {
            name: "carrier".to_owned(),
            organisation_id: None,
            address: Some("sip:carrier.example:5060".to_owned()),
            accept_from: vec![Network { address: "192.0.2.0".parse().unwrap(), prefix_len: 24 }],
            priority: 10,
            username: "acme".to_owned(),
            password: Some(Secret("hush".to_owned())),
            realm: "carrier.example".to_owned(),
            register: true,
            short_numbers: vec!["112".to_owned(), "999".to_owned()],
            strict_source: Some(StrictSource::Any),
            srtp: Srtp::Optional,
            video: Video::Pass,
            max_call_seconds: Some(600),
            interop: TrunkInterop::default(),
        };
        write.declare_trunk(&trunk, at(0)).await.unwrap();
        assert_eq!(store.directory().await.unwrap().organisations.len(), 0, "not before the commit");
        write.commit().await.unwrap();

        let directory = store.directory().await.unwrap();
        assert_eq!(directory.revision, 1);
        assert_eq!(store.directory_revision().await.unwrap(), 1);
        assert_eq!(directory.organisations[0].sip_domain, "acme.test");
        let extension_row = &directory.extensions[0];
        assert_eq!((extension_row.id, extension_row.team_id), (extension, Some(team)));
        assert_eq!(extension_row.codecs, ["PCMA", "PCMU"]);
        assert_eq!(directory.numbers[0].destination, Destination::Extension(extension));
        assert_eq!(directory.organisations[0].numbering, acme().numbering);
        assert_eq!(directory.organisations[0].max_outbound_calls, Some(30));
        assert_eq!(directory.organisations[0].max_call_seconds, Some(7_200));
        assert_eq!(
            (extension_row.strict_source, extension_row.srtp, extension_row.video),
            (Some(StrictSource::Sdp), Srtp::Required, Video::Pass)
        );
        let stored = &directory.trunks[0];
        assert_eq!((&stored.accept_from, &stored.address), (&trunk.accept_from, &trunk.address));
        assert_eq!((stored.username.as_str(), stored.realm.as_str()), ("acme", "carrier.example"));
        assert_eq!((stored.register, &stored.short_numbers), (true, &trunk.short_numbers));
        assert_eq!(stored.password, Secret("hush".to_owned()));
        assert_eq!((stored.strict_source, stored.max_call_seconds), (Some(StrictSource::Any), Some(600)));
        assert_eq!((stored.srtp, stored.video), (Srtp::Optional, Video::Pass));

        // A password that is not declared again stays; an empty one is removed.
        let mut write = store.write().await.unwrap();
        let silent = TrunkRow { password: None, ..trunk.clone() };
        assert_eq!(write.declare_trunk(&silent, at(1)).await.unwrap().1, Change::Unchanged);
        let none = TrunkRow { password: Some(Secret::default()), ..trunk };
        assert_eq!(write.declare_trunk(&none, at(1)).await.unwrap().1, Change::Changed);
        // A limit that is not declared again is removed.
        let loose = TrunkRow {
            strict_source: None,
            srtp: Srtp::Off,
            video: Video::Off,
            max_call_seconds: None,
            ..none
        };
        assert_eq!(write.declare_trunk(&loose, at(2)).await.unwrap().1, Change::Changed);
        let unbounded = OrganisationRow { max_call_seconds: None, ..acme() };
        assert_eq!(write.declare_organisation(&unbounded, at(2)).await.unwrap().1, Change::Changed);
        // Forwarding that is not declared stays, because users change it on their phones.
        let plain = ExtensionRow {
            strict_source: None,
            forwarding: None,
            do_not_disturb: None,
            language: None,
            max_registrations: 10,
            notify_message_waiting: false,
            ..line(organisation, Some(team))
        };
        assert_eq!(write.declare_extension(&plain, at(2)).await.unwrap().1, Change::Changed);
        write.commit().await.unwrap();
        let directory = store.directory().await.unwrap();
        assert_eq!(directory.trunks[0].password, Secret::default());
        assert_eq!((directory.trunks[0].strict_source, directory.trunks[0].max_call_seconds), (None, None));
        assert_eq!(directory.organisations[0].max_call_seconds, None);
        assert_eq!(
            (directory.extensions[0].strict_source, directory.extensions[0].srtp),
            (None, Srtp::Required)
        );
        let line = &directory.extensions[0];
        assert_eq!((line.forwarding.busy.as_deref(), line.do_not_disturb), (Some("1002"), true));
        assert_eq!((directory.trunks[0].srtp, directory.trunks[0].video), (Srtp::Off, Video::Off));
    });
}

#[test]
fn declaring_twice_changes_nothing_and_the_revision_says_so() {
    with_store(async |store| {
        for (pass, expected) in
            [Change::Created, Change::Unchanged, Change::Unchanged].into_iter().enumerate()
        {
            let now = at(pass as i64);
            let mut write = store.write().await.unwrap();
            let (organisation, change) = write.declare_organisation(&acme(), now).await.unwrap();
            assert_eq!(change, expected);
            let (team, change) = write.declare_team(organisation, "support", now).await.unwrap();
            assert_eq!(change, expected);
            let mut extension = line(organisation, Some(team));
            if pass == 2 {
                // A credential that is not given again is kept.
                extension.ha1 = None;
            }
            assert_eq!(write.declare_extension(&extension, now).await.unwrap().1, expected);
            assert_eq!(write.declare_api_key(&key(organisation, "AAAA"), now).await.unwrap().1, expected);
            write.commit().await.unwrap();
            assert_eq!(store.directory_revision().await.unwrap(), 1);
        }
    });
}

#[test]
fn what_differs_is_changed_and_moves_the_revision() {
    with_store(async |store| {
        let mut write = store.write().await.unwrap();
        let (organisation, _) = write.declare_organisation(&acme(), at(0)).await.unwrap();
        write.declare_extension(&line(organisation, None), at(0)).await.unwrap();
        write.commit().await.unwrap();

        let mut write = store.write().await.unwrap();
        let mut extension = line(organisation, None);
        (extension.name, extension.ha1) = ("Grace".to_owned(), None);
        let (_, change) = write.declare_extension(&extension, at(1)).await.unwrap();
        assert_eq!(change, Change::Changed);
        write.commit().await.unwrap();
        let directory = store.directory().await.unwrap();
        assert_eq!((directory.revision, directory.extensions[0].name.as_str()), (2, "Grace"));
        assert_eq!(directory.extensions[0].ha1.md5, "m");
    });
}

#[test]
fn a_write_that_is_not_committed_leaves_nothing() {
    with_store(async |store| {
        let mut write = store.write().await.unwrap();
        write.declare_organisation(&acme(), at(0)).await.unwrap();
        drop(write);
        let mut write = store.write().await.unwrap();
        assert_eq!(write.find_organisation("Acme").await.unwrap(), None);
    });
}

#[test]
fn what_only_one_may_have_is_taken() {
    with_store(async |store| {
        let mut write = store.write().await.unwrap();
        let (first, _) = write.declare_organisation(&acme(), at(0)).await.unwrap();
        let other = OrganisationRow { name: "Bolt".to_owned(), ..acme() };
        let taken = write.declare_organisation(&other, at(0)).await.unwrap_err();
        assert!(matches!(taken, StoreError::Taken { column: "sip_domain" }));
        let other = OrganisationRow { sip_domain: "bolt.test".to_owned(), ..other };
        let (second, _) = write.declare_organisation(&other, at(0)).await.unwrap();
        write.declare_api_key(&key(first, "AAAA"), at(0)).await.unwrap();
        let taken = write.declare_api_key(&key(second, "AAAA"), at(0)).await.unwrap_err();
        assert!(matches!(taken, StoreError::Taken { column: "short_id" }));
        let number = |organisation_id| NumberRow {
            organisation_id,
            number: "+44".to_owned(),
            destination: Destination::Extension(ExtensionId(Uuid::nil())),
        };
        write.declare_number(&number(first), at(0)).await.unwrap();
        let taken = write.declare_number(&number(second), at(0)).await.unwrap_err();
        assert!(matches!(taken, StoreError::Taken { column: "number" }));
    });
}

#[test]
fn a_key_is_found_by_its_short_id() {
    with_store(async |store| {
        let mut write = store.write().await.unwrap();
        let (organisation, _) = write.declare_organisation(&acme(), at(0)).await.unwrap();
        let declared = key(organisation, "ABCDEFGHIJKL");
        let (id, _) = write.declare_api_key(&declared, at(0)).await.unwrap();
        write.commit().await.unwrap();
        let found = ApiKeys::find(store, "ABCDEFGHIJKL").await.unwrap().unwrap();
        assert_eq!((found.key, found.organisation_id), (id, organisation));
        assert_eq!(found.secret_sha256, [0xA5; 32]);
        assert_eq!((found.permissions, found.allow), (declared.permissions, declared.allow));
        assert_eq!(found.rate_per_minute, 600);
        assert_eq!(ApiKeys::find(store, "ABCDEFGHIJKM").await.unwrap(), None);
        assert_eq!(ApiKeys::find(store, "' OR 1=1 --").await.unwrap(), None);
    });
}

#[test]
fn a_node_keeps_its_id() {
    with_store(async |store| {
        let first = store.node("node-1", Timestamp::from_micros(1)).await.unwrap();
        assert_eq!(store.node("node-1", Timestamp::from_micros(2)).await.unwrap(), first);
        assert_ne!(store.node("node-2", Timestamp::from_micros(2)).await.unwrap(), first);
    });
}

#[test]
fn the_journal_becomes_rows_each_once_across_a_crash() {
    with_store(async |store| {
        let dir = TempDir::new();
        let (journal, reader, _) = Journal::open(dir.path()).unwrap();
        for number in 0..250 {
            drop(journal.answered(answered(number)).unwrap());
            if number < 200 {
                drop(journal.ended(ended(number)).unwrap());
            }
        }
        assert!(journal.tick(at(30)).unwrap().await);
        // The process crashes here once, and again when everything is stored and the journal still exists.
        let (first, second) = (TempDir::snapshot(dir.path()), TempDir::snapshot(dir.path()));
        drop((journal, reader));
        for (crashed, new) in [(first, 250), (second, 0)] {
            let (journal, reader, recovery) = Journal::open(crashed.path()).unwrap();
            assert_eq!(recovery.crashed_calls, 50);
            drop(journal);
            let mut writer = CdrWriter::new(reader);
            let stored = writer.stored();
            writer.run(store).await;
            assert_eq!(stored.load(Ordering::Relaxed), new);
        }
        let list = store.list(Scope::Organisation(organisation(1)), Window::at(0, 500).into()).await.unwrap();
        assert_eq!(list.total, 250);
        let crashed = list.items.iter().filter(|cdr| cdr.hangup_cause == Some(HangupCause::Crash));
        assert_eq!(crashed.count(), 50);
    });
}

#[test]
fn while_another_process_holds_the_database_records_wait_and_lists_answer() {
    let dir = TempDir::new();
    let path = dir.path().join("sidetone.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&path).await.unwrap();
        let other = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
        let holding = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
        let (journal, reader, _) = Journal::open(&dir.path().join("journal")).unwrap();
        assert!(journal.ended(ended(1)).unwrap().await);
        drop(journal);
        let sink = store.clone();
        let writer = tokio::spawn(async move { CdrWriter::new(reader).run(&sink).await });
        let scope = Scope::Organisation(organisation(1));
        assert_eq!(store.list(scope, Window::default().into()).await.unwrap().total, 0);
        holding.rollback().await.unwrap();
        writer.await.unwrap();
        assert_eq!(store.list(scope, Window::default().into()).await.unwrap().total, 1);
        other.close().await;
        store.close().await;
    });
}

#[test]
fn a_damaged_write_ahead_log_loses_nothing_that_the_journal_still_has() {
    let dir = TempDir::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&dir.path().join("sidetone.db")).await.unwrap();
        let journal_dir = TempDir::new();
        let (journal, reader, _) = Journal::open(journal_dir.path()).unwrap();
        let mut writer = CdrWriter::new(reader);
        let stored = writer.stored();
        let sink = store.clone();
        let writer = tokio::spawn(async move { writer.run(&sink).await });
        for number in 0..20 {
            assert!(journal.ended(ended(number)).unwrap().await);
        }
        while stored.load(Ordering::Relaxed) < 20 {
            tokio::task::yield_now().await;
        }
        // Both in the state after a crash: the log has the rows, the current segment the records.
        let (database, segments) = (TempDir::snapshot(dir.path()), TempDir::snapshot(journal_dir.path()));
        for back in (1..=512).step_by(73) {
            for flip in [false, true] {
                let (database, segments) =
                    (TempDir::snapshot(database.path()), TempDir::snapshot(segments.path()));
                damage(&database.path().join("sidetone.db-wal"), back, flip);
                let store = Store::open(&database.path().join("sidetone.db")).await.unwrap();
                let (journal, reader, _) = Journal::open(segments.path()).unwrap();
                drop(journal);
                CdrWriter::new(reader).run(&store).await;
                let scope = Scope::Organisation(organisation(1));
                let total = store.list(scope, Window::default().into()).await.unwrap().total;
                assert_eq!(total, 20, "{back} bytes from the end, flipped: {flip}");
                store.close().await;
            }
        }
        drop(journal);
        writer.await.unwrap();
        store.close().await;
    });
}

/// Flips the byte `back` from the end of `file`, or cuts the file there.
fn damage(file: &std::path::Path, back: usize, flip: bool) {
    let mut bytes = std::fs::read(file).unwrap();
    let at = bytes.len() - back;
    if flip {
        bytes[at] ^= 0x40;
    } else {
        bytes.truncate(at);
    }
    std::fs::write(file, bytes).unwrap();
}
