//! Errors in a file, and conflicts with the database, are named.

use crate::provision::ACME;
use crate::provision::declare;
use crate::provision::parse;
use crate::provision::refusals;
use crate::provision::with_store;

#[test]
fn what_contradicts_the_database_is_refused_by_key() {
    let cases = [
        (
            "a domain of another",
            "[[organisations]]\nname = \"Bolt\"\nsip_domain = \"acme.test\"\n",
            "0: organisation \"Bolt\": sip_domain: another organisation has this domain",
        ),
        (
            "a number of another",
            "[[organisations]]\nname = \"Bolt\"\nsip_domain = \"bolt.test\"\n[[organisations.extensions]]\n\
             number = \"1\"\n[[organisations.numbers]]\nnumber = \"+442071230000\"\n\
             destination = { extension = \"1\" }\n",
            "0: organisation \"Bolt\", number \"+442071230000\": number: the number belongs to another organisation",
        ),
        (
            "a key id of another",
            "[[organisations]]\nname = \"Bolt\"\nsip_domain = \"bolt.test\"\n[[organisations.api_keys]]\n\
             name = \"k\"\nkey = \"tel_ABCDEFGHIJKL_0123456789abcdefghijklmnopqrstuvwxyz\"\npreset = \"full\"\n\
             allow = [\"127.0.0.1\"]\n",
            "0: organisation \"Bolt\", API key \"k\": key: another key has this id",
        ),
        (
            "a destination that is not there",
            "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n[[organisations.numbers]]\n\
             number = \"+4420\"\ndestination = { extension = \"9\" }\n",
            "0: organisation \"Acme\", number \"+4420\": destination: there is no extension \"9\", declare it",
        ),
        (
            "calls forwarded to a number that is not there",
            "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n[[organisations.extensions]]\n\
             number = \"7\"\nforwarding = { busy = \"8\", always = \"1002\" }\n",
            "0: organisation \"Acme\", extension \"7\": forwarding.busy: is no extension, conference room or phone \
             number that the extension can dial",
        ),
        (
            "a team that is not there",
            "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n[[organisations.extensions]]\n\
             number = \"7\"\nteam = \"sales\"\n",
            "0: organisation \"Acme\", extension \"7\": team: there is no team \"sales\", declare it under teams",
        ),
        (
            "a new domain without the passwords",
            "[[organisations]]\nname = \"Acme\"\nsip_domain = \"new.test\"\n",
            "0: organisation \"Acme\": sip_domain: was acme.test; passwords belong to a domain, give those of 1001, 1002 \
             here as well",
        ),
        (
            "the carrier of another",
            "[[organisations]]\nname = \"Acme\"\nsip_domain = \"acme.test\"\n\
             [[organisations]]\nname = \"Bolt\"\nsip_domain = \"bolt.test\"\n\
             [[trunks]]\nname = \"one\"\norganisation = \"Acme\"\naddress = \"sip:carrier.example\"\n\
             [[trunks]]\nname = \"two\"\norganisation = \"Bolt\"\naddress = \"sip:Carrier.example:5060\"\n",
            "0: trunk \"two\": address: a trunk of another organisation, or one that all share, has this carrier; make one \
             trunk that all share",
        ),
    ];
    with_store(async |store| {
        declare(store, &[ACME], false).await.unwrap();
        let before = store.directory().await.unwrap();
        for (name, text, expected) in cases {
            let refused = refusals(declare(store, &[text], false).await.expect_err(name));
            assert_eq!(refused, [expected], "{name}");
        }
        assert_eq!(store.directory().await.unwrap(), before);
    });
}

#[test]
fn every_mistake_in_a_file_is_named() {
    let organisation =
        |inside: &str| format!("[[organisations]]\nname = \"A\"\nsip_domain = \"a.test\"\n{inside}");
    let key = |inside: &str| organisation(&format!("[[organisations.api_keys]]\nname = \"k\"\n{inside}\n"));
    let at_key = "organisation \"A\", API key \"k\"";
    let cases: Vec<(&str, String, Vec<String>)> = vec![
        ("nothing", String::new(), vec![]),
        (
            "empty organisation",
            "[[organisations]]\n".to_owned(),
            vec!["organisation (no. 1): name: is missing".to_owned(), "organisation (no. 1): sip_domain: is missing".to_owned()],
        ),
        (
            "an empty room",
            organisation("[[organisations.rooms]]\n"),
            vec![
                "organisation \"A\", room (no. 1): name: is missing".to_owned(),
                "organisation \"A\", room (no. 1): number: is missing".to_owned(),
            ],
        ),
        (
            "a URL without a secret",
            organisation("call_info_url = \"https://crm.example/\"\n"),
            vec![
                "organisation \"A\": call_info_secret: is missing: requests to call_info_url are signed with it"
                    .to_owned(),
            ],
        ),
        (
            "a secret without a URL",
            organisation("call_info_secret = \"sixteen letters!\"\n"),
            vec![
                "organisation \"A\": call_info_url: is missing: requests to call_info_url are signed with call_info_secret".to_owned(),
            ],
        ),
        (
            "a short secret",
            organisation("call_info_url = \"https://crm.example/\"\ncall_info_secret = \"short\"\n"),
            vec![
                "organisation \"A\": call_info_secret: must be 16 to 256 characters on one line, without control \
                 characters"
                    .to_owned(),
            ],
        ),
        (
            "a short secret of callbacks",
            organisation("callback_secret = \"short\"\n"),
            vec![
                "organisation \"A\": callback_secret: must be 16 to 256 characters on one line, without control \
                 characters"
                    .to_owned(),
            ],
        ),
        (
            "a secret for nothing",
            organisation("call_info_url = \"\"\ncall_info_secret = \"sixteen letters!\"\n"),
            vec![
                "organisation \"A\": call_info_secret: must be empty, or left out, with an empty call_info_url"
                    .to_owned(),
            ],
        ),
        (
            "rates",
            "[[sell_rates]]\nprefix = \"44\"\nper_minute = \"-1\"\nincrements = [60]\nto_time = \"1969-01-01\"\n\
             [[cost_rates]]\ntrunk = \"carrier\"\nprefix = \"+4a\"\nper_minute = \"0.000000001\"\nfrom_time = \"soon\"\n\
             [[fx_rates]]\nfrom = \"EUR\"\nto = \"EUR\"\nrate = \"0\"\n".to_owned(),
            [
                "sell rate \"44\": organisation: is missing",
                "sell rate \"44\": per_minute: must be a decimal in quotes, 0 to 10000 with at most 8 places, such as \"0.0120\"",
                "sell rate \"44\": increments: must be two numbers of seconds, 1 to 86400, such as [60, 1]",
                "sell rate \"44\": to_time: must be later than from_time",
                "cost rate \"+4a\" of \"carrier\": prefix: must be the beginning of a number such as +44, at most 15 digits",
                "cost rate \"+4a\" of \"carrier\": per_minute: must be a decimal in quotes, 0 to 10000 with at most 8 places, such as \"0.0120\"",
                "cost rate \"+4a\" of \"carrier\": currency: is missing",
                "cost rate \"+4a\" of \"carrier\": from_time: must be an instant such as \"2026-01-01T00:00:00Z\"",
                "fx rate \"EUR\" to \"EUR\": to: must be another currency than from",
                "fx rate \"EUR\" to \"EUR\": rate: must be a decimal in quotes, above 0 and at most 10000000 with at most 8 places, such as \"0.9200\"",
            ].map(str::to_owned).to_vec(),
        ),
        (
            "values of an organisation",
            "[[organisations]]\nname = \"A\"\nsip_domain = \"a b\"\ncurrency = \"euro\"\ncredit = \"1e3\"\n".to_owned(),
            vec![
                "organisation \"A\": sip_domain: must be a host name such as acme.test".to_owned(),
                "organisation \"A\": currency: must be the three letters of a currency, such as EUR".to_owned(),
                "organisation \"A\": credit: must be a decimal in quotes that is not negative, such as \"25.00\"".to_owned(),
            ],
        ),
        (
            "an extension",
            organisation("[[organisations.extensions]]\nnumber = \"10a\"\npassword = \"\"\ncodecs = [\"G7290\", \"pcmu\", \"PCMU\"]\n"),
            vec![
                "organisation \"A\", extension \"10a\": number: must be 1 to 15 digits".to_owned(),
                "organisation \"A\", extension \"10a\": password: must be 8 characters to 128 bytes on one line; without a password one is generated".to_owned(),
                "organisation \"A\", extension \"10a\": codecs: \"G7290\" is none of AMR, AMR-WB, EVS, G722, G723, G726-32, G729, GSM, L16, PCMA, \
                 PCMU, iLBC, opus, speex".to_owned(),
                "organisation \"A\", extension \"10a\": codecs: PCMU is named twice".to_owned(),
            ],
        ),
        (
            "forwarding",
            organisation(
                "[[organisations.extensions]]\nnumber = \"1\"\ndo_not_disturb = \"yes\"\nmax_registrations = 51\n\
                 forwarding = { always = \"bob\", no_answer_seconds = 3, never = \"1\" }\n",
            ),
            vec![
                "organisation \"A\", extension \"1\": do_not_disturb: must be true or false, not a text".to_owned(),
                "organisation \"A\", extension \"1\": max_registrations: 51 is out of range, write 1 to 50".to_owned(),
                "organisation \"A\", extension \"1\": forwarding.always: must be 1 to 20 digits as the extension dials them, such as 1002 or +442071230000".to_owned(),
                "organisation \"A\", extension \"1\": forwarding.no_answer_seconds: 3 is out of range, write 5 to 120".to_owned(),
                "organisation \"A\", extension \"1\": forwarding.never: unknown key, known here are: always, busy, no_answer, no_answer_seconds, unregistered".to_owned(),
            ],
        ),
        (
            "twice",
            organisation("[[organisations.extensions]]\nnumber = \"1\"\n[[organisations.extensions]]\nnumber = \"1\"\n"),
            vec!["organisation \"A\", extension \"1\": number: \"1\" is declared twice".to_owned()],
        ),
        (
            "a key without an allowlist or permissions",
            key(""),
            vec![
                format!("{at_key}: permissions: is missing, name permissions or a preset"),
                format!("{at_key}: allow: is missing, name the addresses that may use the key"),
            ],
        ),
        (
            "a key for the whole Internet",
            key("preset = \"full\"\nallow = [\"0.0.0.0/0\", \"::/0\", \"localhost\"]"),
            vec![
                format!("{at_key}: allow: \"0.0.0.0/0\" is the whole Internet, name the addresses that call"),
                format!("{at_key}: allow: \"::/0\" is the whole Internet, name the addresses that call"),
                format!("{at_key}: allow: \"localhost\" must be an address or a network, such as 192.0.2.0/24"),
            ],
        ),
        (
            "users",
            organisation(
                "[[organisations.users]]\nemail = \"ada\"\npassword = \"\"\nrole = \"root\"\n\
                 [[organisations.users]]\nemail = \"eve@acme.test\"\nrole = \"agent\"\n\
                 [[organisations.users]]\nemail = \"Eve@ACME.test\"\nrole = \"agent\"\nteem = \"a\"\n",
            ),
            vec![
                "organisation \"A\", user \"ada\": email: must be an email address such as ada@acme.test".to_owned(),
                "organisation \"A\", user \"ada\": password: must be 8 characters to 128 bytes on one line; without a password one is generated".to_owned(),
                "organisation \"A\", user \"ada\": role: \"root\" is none of agent, operator, org_admin, org_member, \
                 team_supervisor"
                    .to_owned(),
                "organisation \"A\", user \"Eve@ACME.test\": teem: unknown key, known here are: email, name, password, role, team"
                    .to_owned(),
                "organisation \"A\", user \"Eve@ACME.test\": email: \"eve@acme.test\" is declared twice".to_owned(),
            ],
        ),
        (
            "an empty allowlist",
            key("preset = \"full\"\nallow = []"),
            vec![format!("{at_key}: allow: must name 1 to 64 addresses or networks")],
        ),
        (
            "permissions",
            key("permissions = [\"calls:write\"]\nallow = [\"127.0.0.1\"]\nrate_per_minute = 0\nkey = \"tel_short\""),
            vec![
                format!("{at_key}: key: must be a prefix, an id of 8 to 32 and a secret of 32 to 128 letters and digits, with _ between them"),
                format!("{at_key}: permissions: \"calls:write\" is none of billing:read, calls:control, calls:read, conferences:control, conferences:read, conferences:write, conversations:write, directory:read, directory:write, keys:write, margin:read, organisations:write, rates:write, recordings:delete, recordings:listen, trunks:write, users:write, webhooks:read, webhooks:write"),
                format!("{at_key}: rate_per_minute: 0 is out of range, write 1 to 60000"),
            ],
        ),
        (
            "a number",
            organisation("[[organisations.numbers]]\nnumber = \"0044\"\ndestination = { conference = 200 }\n"),
            vec![
                "organisation \"A\", number \"0044\": number: must be written like +442071230000".to_owned(),
                "organisation \"A\", number \"0044\": destination.conference: must be true, or the number of a room in quotes".to_owned(),
            ],
        ),
        (
            "a trunk",
            "[[trunks]]\nname = \"t\"\naddress = \"carrier\"\nusername = \"u\"\nregister = true\nport = 1\n".to_owned(),
            vec![
                "trunk \"t\": address: must be written like sip:carrier.example:5060".to_owned(),
                "trunk \"t\": port: unknown key, known here are: name, organisation, address, accept_from, username, password, realm, register, priority, short_numbers, strict_source, srtp, video, max_call_seconds, backup_addresses, outbound_proxy, from_domain, country_code, national_prefix, inbound_numbers, outbound_numbers, codecs, headers, progress_seconds, qualify_seconds, transfers".to_owned(),
            ],
        ),
        (
            "a trunk that cannot register",
            "[[trunks]]\nname = \"t\"\naddress = \"sip:carrier.example;transport=ws\"\nregister = true\n\
             [[trunks]]\nname = \"u\"\nregister = true\npassword = \"a\\nb\"\nshort_numbers = [\"+112\"]\n\
             strict_source = \"rtp\"\nsrtp = \"always\"\nvideo = \"on\"\nmax_call_seconds = 59\n"
                .to_owned(),
            vec![
                "trunk \"t\": address: has an unknown transport, write ;transport=udp, ;transport=tcp or ;transport=tls, or none".to_owned(),
                "trunk \"u\": password: must be at most 128 bytes on one line".to_owned(),
                "trunk \"u\": register: needs an address and a username to register with".to_owned(),
                "trunk \"u\": short_numbers: must be 1 to 6 digits, such as \"112\"".to_owned(),
                "trunk \"u\": strict_source: must be one of any, sdp, signalling".to_owned(),
                "trunk \"u\": srtp: must be one of off, optional, required".to_owned(),
                "trunk \"u\": video: must be one of off, pass".to_owned(),
                "trunk \"u\": max_call_seconds: 59 is out of range, write 60 to 86400".to_owned(),
            ],
        ),
        (
            "a trunk whose carrier differs",
            "[[trunks]]\nname = \"t\"\naddress = \"sip:a.example\"\nbackup_addresses = [\"b\"]\nfrom_domain = \"a b\"\n\
             inbound_numbers = \"local\"\ncodecs = [\"PCMA\", \"PCMA\"]\nheaders = [\"Via: x\"]\nprogress_seconds = 4\n\
             [[trunks]]\nname = \"u\"\naddress = \"sip:a.example\"\noutbound_numbers = \"national\"\n\
             [[trunks]]\nname = \"v\"\noutbound_proxy = \"sip:p.example\"\n"
                .to_owned(),
            vec![
                "trunk \"t\": backup_addresses: must be written like sip:carrier.example:5060".to_owned(),
                "trunk \"t\": from_domain: must be a host name such as acme.test".to_owned(),
                "trunk \"t\": inbound_numbers: must be one of international, national".to_owned(),
                "trunk \"t\": codecs: PCMA is named twice".to_owned(),
                "trunk \"t\": headers: sets Via, which the switch writes itself; choose another header".to_owned(),
                "trunk \"t\": progress_seconds: 4 is out of range, write 5 to 120".to_owned(),
                "trunk \"u\": outbound_numbers: needs country_code, the country of national numbers".to_owned(),
                "trunk \"v\": outbound_proxy: needs an address, which is the domain of the Request-URI".to_owned(),
            ],
        ),
        (
            "numbering",
            organisation("country_code = \"+44\"\nnational_prefix = \"0x\"\ninternational_prefix = \"\"\nmax_outbound_calls = -1\nmax_call_seconds = 86401\nrecording_retention_days = -1\n"),
            vec![
                "organisation \"A\": country_code: must be 0 to 3 digits in quotes".to_owned(),
                "organisation \"A\": national_prefix: must be 0 to 5 digits in quotes".to_owned(),
                "organisation \"A\": international_prefix: must be 1 to 5 digits in quotes".to_owned(),
                "organisation \"A\": max_outbound_calls: -1 is out of range, write 0 to 1000000".to_owned(),
                "organisation \"A\": max_call_seconds: 86401 is out of range, write 60 to 86400".to_owned(),
                "organisation \"A\": recording_retention_days: -1 is out of range, write 0 to 36500".to_owned(),
            ],
        ),
    ];
    for (name, text, expected) in cases {
        let found = parse(&text).err().unwrap_or_default();
        assert_eq!(found, expected, "{name}");
    }
}
