//! The spoken names of extensions: no organisation reads another's, and they are kept as long as the organisation's
//! recordings.

use sidetone_model::access::Scope;
use sidetone_model::time::Timestamp;

use crate::provision::declare;
use crate::provision::with_store;

const TWO: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
recording_retention_days = 1
[[organisations.extensions]]
number = "1001"
password = "correct horse battery"
[[organisations]]
name = "Coil"
sip_domain = "coil.test"
[[organisations.extensions]]
number = "1001"
password = "correct horse battery"
"#;

#[test]
fn names_stay_with_their_organisation_and_expire() {
    with_store(async |store| {
        declare(store, &[TWO], false).await.unwrap();
        let directory = store.directory().await.unwrap();
        let of = |name: &str| directory.organisations.iter().find(|one| one.name == name).unwrap().id;
        let (acme, coil) = (of("Acme"), of("Coil"));
        let line = |owner| directory.extensions.iter().find(|one| one.organisation_id == owner).unwrap().id;
        let (ada, eve) = (line(acme), line(coil));
        let day = 86_400_000_000_i64;
        let at = |micros: i64| Timestamp::from_micros(1_700_000_000_000_000 + micros);

        store.put_spoken_name(acme, ada, b"ada", at(0)).await.unwrap();
        store.put_spoken_name(coil, eve, b"eve", at(0)).await.unwrap();
        store.put_spoken_name(acme, eve, b"forged", at(0)).await.unwrap();
        assert_eq!(store.spoken_name(acme, ada).await.unwrap().as_deref(), Some(b"ada".as_slice()));
        assert_eq!(store.spoken_name(coil, eve).await.unwrap().as_deref(), Some(b"eve".as_slice()));
        assert_eq!(store.spoken_name(acme, eve).await.unwrap(), None);
        assert!(store.find_spoken_name(Scope::Organisation(acme), eve).await.is_err());
        assert!(store.remove_spoken_name(Scope::Organisation(acme), eve).await.is_err());

        store.put_spoken_name(acme, ada, b"again", at(10)).await.unwrap();
        assert_eq!(store.purge_spoken_names(at(day)).await.unwrap(), 0, "spoken again since");
        assert_eq!(store.purge_spoken_names(at(day + 10)).await.unwrap(), 1);
        assert_eq!(store.spoken_name(acme, ada).await.unwrap(), None);
        assert_eq!(store.find_spoken_name(Scope::Organisation(coil), eve).await.unwrap(), b"eve");
        store.remove_spoken_name(Scope::Organisation(coil), eve).await.unwrap();
        assert!(store.remove_spoken_name(Scope::Organisation(coil), eve).await.is_err());
    });
}
