//! The settings of the switch's user agent: the SIP extensions and methods that it supports.

use sidetone_sip::dialog::SessionTimerConfig;
use sidetone_sip::transaction::LayerConfig;
use sidetone_sip::ua::UaConfig;

/// Returns the settings of the user agent of a switch.
pub fn ua_config(layer: LayerConfig, session_timer: Option<SessionTimerConfig>) -> UaConfig {
    UaConfig {
        session_timer,
        extensions: EXTENSIONS.map(str::to_owned).to_vec(),
        dialog_extensions: DIALOG_EXTENSIONS.to_owned(),
        dialog_methods: DIALOG_METHODS.to_owned(),
        ..UaConfig::new(layer)
    }
}

/// RFC 3262, RFC 5627, RFC 4488, RFC 5626, RFC 3327 and RFC 3891. The session timer is added by the user agent.
const EXTENSIONS: [&str; 6] = ["100rel", "gruu", "norefersub", "outbound", "path", "replaces"];
/// Those that a peer may use in a dialog or for it. Short, because every INVITE has it: a datagram of more than 1,300
/// bytes may be fragmented.
const DIALOG_EXTENSIONS: &str = "replaces, norefersub";
/// The methods of requests inside dialogs, for the same reason without the others.
const DIALOG_METHODS: &str = "INVITE, ACK, CANCEL, BYE, INFO, OPTIONS, PRACK, REFER, UPDATE";
