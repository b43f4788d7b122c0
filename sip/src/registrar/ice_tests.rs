//! Devices with ICE.

use crate::registrar::tests::register;
use crate::registrar::{Contacts, Registration};

/// RFC 5768 §4: a device indicates ICE support with an option tag or with a feature tag of its contact.
#[test]
fn a_registration_says_whether_the_device_has_ice() {
    for (headers, expected) in [
        ("Contact: <sip:a@192.0.2.1>", false),
        ("Supported: path, ice|Contact: <sip:a@192.0.2.1>", true),
        ("Contact: <sip:a@192.0.2.1>;+sip.ice", true),
        ("Contact: <sip:a@192.0.2.1;+sip.ice>", false),
    ] {
        let (request, flow) = register(&format!("192.0.2.1:5060 a 1 {headers}"));
        let Contacts::List(list) = Registration::from_request(&request, flow).unwrap().contacts else {
            panic!()
        };
        assert_eq!(list[0].has_ice, expected, "{headers}");
    }
}
