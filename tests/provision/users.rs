//! Users and their passwords.

use rand::SeedableRng;
use rand::rngs::StdRng;
use sidetone::accounts::hash::verify;
use sidetone::accounts::{Passwords, People};
use sidetone_model::directory::Secret;
use sidetone_model::user::Accounts;
use sidetone_phone::demo::Access;

use crate::provision::declare;
use crate::provision::json;
use crate::provision::refusals;
use crate::provision::with_store;

/// The users of [`ACME`], one with a password and one without.
const USERS: &str = r#"
[[organisations]]
name = "Acme"
sip_domain = "acme.test"
  [[organisations.teams]]
  name = "support"
  [[organisations.users]]
  email = "Admin@ACME.test"
  password = "correct horse"
  role = "org_admin"
  [[organisations.users]]
  email = "eve@acme.test"
  name = "Eve"
  role = "team_supervisor"
  team = "support"
"#;

#[test]
fn users_are_declared_once_and_their_sessions_live_on() {
    with_store(async |store| {
        let first = json(&declare(store, &[USERS], false).await.unwrap());
        let users = &first["organisations"][0]["users"];
        assert_eq!((&users[0]["email"], users[0].get("password")), (&"admin@acme.test".into(), None));
        let generated = users[1]["password"].as_str().unwrap();
        assert_eq!(generated.len(), 20);
        let (admin, hash) = store.account_by_email("admin@acme.test").await.unwrap().unwrap();
        assert_eq!((admin.user.name.as_str(), admin.user.role.as_str()), ("admin", "org_admin"));
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(verify("correct horse", &hash) && !verify(generated, &hash));
        let (eve, hash) = store.account_by_email("eve@acme.test").await.unwrap().unwrap();
        assert!(verify(generated, &hash) && eve.user.team_id.is_some());

        let second = json(&declare(store, &[USERS], false).await.unwrap());
        assert_eq!((&second["changed"], &second["unchanged"]), (&0.into(), &4.into()));
        assert_eq!(second["organisations"][0]["users"][1].get("password"), None);
        let versions = async || {
            let mut versions = Vec::new();
            for email in ["admin@acme.test", "eve@acme.test"] {
                versions.push(store.account_by_email(email).await.unwrap().unwrap().0.version);
            }
            versions
        };
        assert_eq!(versions().await, [1, 1]);
        let changed = USERS.replace("correct horse", "battery staple").replace("\"Eve\"", "\"Eva\"");
        let third = json(&declare(store, &[&changed], false).await.unwrap());
        assert_eq!((&third["changed"], &third["unchanged"]), (&2.into(), &2.into()));
        assert_eq!(versions().await, [2, 1], "a new password ends sessions, a new name does not");

        let elsewhere = USERS.replace("Acme", "Bolt").replace("acme.test\"\n  [[o", "bolt.test\"\n  [[o");
        let refused = refusals(declare(store, &[&elsewhere], false).await.unwrap_err());
        assert!(
            refused[0].contains("user \"Admin@ACME.test\": email: a user of another organisation"),
            "{refused:?}"
        );
    });
}

/// The user printed by `sidetone demo` can log in.
#[test]
fn the_user_of_the_demo_logs_in() {
    with_store(async |store| {
        let mut rng = StdRng::seed_from_u64(5);
        let access = Access::generate(&mut rng);
        declare(store, &[&access.apply_file()], false).await.unwrap();
        let people = People::new(store.clone(), Passwords::new(&mut rng));
        let log_in =
            async |password: &str| people.log_in(access.email, &Secret(password.to_owned())).await.unwrap();
        let account = log_in(&access.user_password).await.unwrap();
        assert_eq!(account.user.role.as_str(), "org_admin");
        assert_eq!(log_in(&access.key).await, None);
    });
}
