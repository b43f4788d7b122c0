//! The commands of a phone's owner to its task, and the errors of these commands.

use std::io;
use std::time::Duration;

use sidetone_media::time::Micros;
use sidetone_sip::sdp::Direction;
use tokio::sync::oneshot;

use crate::config::{CallOutcome, CallPlan};
use crate::notes::{Noting, Parcel};

/// Why a command to a phone failed.
#[derive(Debug, thiserror::Error)]
pub enum PhoneError {
    /// A socket failed.
    #[error("open a socket: {0}")]
    Io(#[from] io::Error),
    /// There is no such call.
    #[error("do it: the phone has no such call")]
    NoCall,
    /// The phone has not shown this note.
    #[error("acknowledge {0}: no such note was shown")]
    NoNote(String),
    /// The switch refused or did not answer.
    #[error("register {number}: the switch answered {status}")]
    Refused {
        /// The extension.
        number: String,
        /// The status; 408 without an answer.
        status: u16,
    },
    /// The phone was switched off.
    #[error("use a phone that is switched off")]
    SwitchedOff,
}

/// A command of a [`Phone`](crate::Phone) to its task.
pub(super) enum Command {
    Acknowledge(String, Micros, oneshot::Sender<Result<u16, PhoneError>>),
    Answer(oneshot::Sender<bool>),
    Call(CallPlan, oneshot::Sender<CallOutcome>),
    Decline,
    Dial(String, oneshot::Sender<bool>),
    HangUp,
    Move,
    Notes(Noting),
    Offer(Direction),
    /// Transfers the remote party of the newest call to a number.
    Refer(String, oneshot::Sender<Result<u16, PhoneError>>),
    /// Transfers the remote party of the oldest call to that of the newest.
    ReferToCall(oneshot::Sender<Result<u16, PhoneError>>),
    /// For this many seconds; 0 removes the binding.
    Register(u32, oneshot::Sender<(u16, Duration)>),
    Send(Parcel, oneshot::Sender<Result<u16, PhoneError>>),
}
