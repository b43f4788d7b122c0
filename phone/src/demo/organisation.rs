//! The demo's organisation, declared as in an apply file.

use std::fmt::Write;

use rand::CryptoRng;
use rand::distr::{Alphanumeric, SampleString};

use crate::demo::script::{SCENES, Scene};

/// The access data for the demo's engine.
#[derive(Clone, Debug)]
pub struct Access {
    /// The SIP domain.
    pub domain: &'static str,
    /// The extension for a softphone.
    pub extension: &'static str,
    /// Its password.
    pub password: String,
    /// The extension that always answers.
    pub answering: &'static str,
    /// The password of the built-in phones.
    pub(super) phones_password: String,
    /// The integration key.
    pub key: String,
    /// The address of the organisation's admin.
    pub email: &'static str,
    /// The admin's password.
    pub user_password: String,
}

impl Access {
    /// Generates every secret.
    pub fn generate(rng: &mut impl CryptoRng) -> Self {
        let mut text = |len| Alphanumeric.sample_string(rng, len);
        Access {
            domain: "demo.sidetone.test",
            extension: "100",
            answering: "200",
            password: text(12),
            phones_password: text(20),
            key: format!("tel_{}_{}", text(12), text(32)),
            email: "admin@demo.sidetone.test",
            user_password: text(12),
        }
    }

    /// The organisation as the text of an apply file.
    pub fn apply_file(&self) -> String {
        let mut text = format!(
            "[[organisations]]\nname = \"Demo\"\nsip_domain = \"{}\"\n\n\
             [[organisations.api_keys]]\nname = \"demo\"\nkey = \"{}\"\npreset = \"full\"\nallow = [\"127.0.0.1/32\"]\n\n\
             [[organisations.users]]\nemail = \"{}\"\npassword = \"{}\"\nrole = \"org_admin\"\n",
            self.domain, self.key, self.email, self.user_password
        );
        let mut extension = |number: &str, name: &str, password: &str| {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n[[organisations.extensions]]\nnumber = \"{number}\"\nname = \"{name}\"\npassword = \"{password}\"\n"
            );
        };
        extension(self.extension, "You", &self.password);
        extension(self.answering, "Answering phone", &self.phones_password);
        for (place, scene) in SCENES.iter().enumerate() {
            extension(&Scene::from(place), scene.name, &self.phones_password);
            extension(&Scene::to(place), scene.name, &self.phones_password);
        }
        for (number, name) in MEMBERS {
            extension(number, name, &self.phones_password);
        }
        let _ = write!(
            text,
            "\n[[organisations.rooms]]\nname = \"Stand-up\"\nnumber = \"{ROOM}\"\nparticipant_pin = \"{PIN}\"\n"
        );
        text
    }
}

/// The phones that meet in the room, with the names of their users.
pub(super) const MEMBERS: [(&str, &str); 3] = [("301", "Ada"), ("302", "Bob"), ("303", "Cleo")];
/// The PIN of the room.
pub const PIN: &str = "2580";
/// The conference room's number.
pub const ROOM: &str = "300";
