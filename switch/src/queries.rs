//! Queries to the running switch: how the HTTP API and other tasks read and control calls and conferences.
//!
//! A query is an input with a reply token; its answer is an output with the same token. To add one, write its
//! struct, add a line to the list at the end of this file, and answer it in the switch.
//!
//! A query is answered immediately, except [`CallQuality`], which waits for reports of the relay. A phone's response
//! seconds later is never part of an answer: it is an event of the phone's leg, and a separate output.

use std::fmt;

use sidetone_model::access::Scope;
use sidetone_model::call_fields::GivenFields;
use sidetone_model::call_operation::{CallOperation, OperationRefused};
use sidetone_model::call_request::{CallOrder, CancelRefused, PlaceRefused, Placeable, RequestedCall};
use sidetone_model::ids::{CallId, ExtensionId, OrganisationId, RoomId, TrunkId};
use sidetone_model::live_call::{LiveCall, LiveCallQuery};
use sidetone_model::media_quality::LiveCallQuality;
use sidetone_model::note::{CallPhones, Dispatch};
use sidetone_model::page::{Page, Window};
use sidetone_model::problem::FieldProblem;
use sidetone_model::registration::{KeptExtension, RegistrationQuery, RegistrationRecord};
use sidetone_model::room::{
    Control, ControlDone, ControlRefused, DialRequest, LiveRoom, MergeRefused, Requester, RoomDialled,
    RoomName, RoomViewer,
};
use sidetone_model::trunk_status::TrunkStatus;
use sidetone_sip::transaction::ServerKey;
use uuid::Uuid;

use crate::outbound_limit::{OutboundDecision, OutboundNeeds};
use crate::rating::{CreditNeed, CreditReserved};
use crate::room_owner::{RoomOwner, WantedRooms};
use crate::room_state::RoomState;
use crate::shared_binding::{BindingsElsewhere, NodeBindings};
use crate::trunk_homes::TrunkHomes;

/// Identifies a query and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyToken(pub u64);

/// A query with a typed answer.
///
/// *Bounds*: it runs in the task that serves SIP, and iterates over at most the live calls.
pub trait Question: Send + 'static {
    /// The answer.
    type Answer: Send + 'static;

    /// Returns the input for the switch.
    fn query(self) -> Query;

    /// Returns the answer inside an output; `None` when the output answers a query of another kind.
    fn answer(answer: Answer) -> Option<Self::Answer>;
}

/// Sends this final status as the answer to a phone's message.
#[derive(Debug)]
pub struct AnswerMessage(pub ServerKey, pub u16);

/// The media quality of a live call.
#[derive(Debug)]
pub struct CallQuality(pub CallId);

/// The answer to [`CallQuality`].
#[derive(Clone, Debug, PartialEq)]
pub enum QualityAnswer {
    /// Too many queries wait already, or the relay did not report in time.
    Busy,
    /// The call is not live.
    Gone,
    /// The quality of its legs now.
    Known(Box<LiveCallQuality>),
}

/// Cancels a requested call that one of its sides has not answered.
#[derive(Debug)]
pub struct CancelCall(pub CallId);

/// Performs every check of a requested call from this extension; no phone rings.
#[derive(Debug)]
pub struct CheckCall(pub ExtensionId, pub RequestedCall);

/// Carries out a command in a live room.
#[derive(Debug)]
pub struct ControlRoom(pub RoomName, pub Control);

/// The credit that organisations' calls at this node need, where other nodes use the same credit.
#[derive(Debug)]
pub struct CreditNeeds;

/// Applies the decisions of the nodes about outbound calls.
#[derive(Debug)]
pub struct DecideOutbound(pub Vec<OutboundDecision>);

/// The contacts registered for an extension.
#[derive(Debug)]
pub struct DevicesOf(pub ExtensionId);

/// Dials a target into a room.
#[derive(Debug)]
pub struct DialIntoRoom(pub RoomId, pub DialRequest);

/// Ends a live call; the answer is whether there was one.
#[derive(Debug)]
pub struct EndCall(pub CallId);

/// Expects the members of a room that another node hands over; the answer is whether this node accepts them.
#[derive(Debug)]
pub struct ExpectRoom(pub RoomState);

/// One live call, of any organisation.
#[derive(Debug)]
pub struct FindCall(pub CallId);

/// One live room.
#[derive(Debug)]
pub struct FindRoom(pub RoomName);

/// Begins to hand over a room that this node owns; the answer is its state, or `None` when it stays.
#[derive(Debug)]
pub struct HandOverRoom(pub RoomId);

/// Keeps a room that no other node accepts.
#[derive(Debug)]
pub struct KeepRoom(pub RoomId);

/// The live calls of a scope that match a query.
#[derive(Debug)]
pub struct ListCalls(pub Scope, pub LiveCallQuery);

/// The registrations of phones in a scope that match a query.
#[derive(Debug)]
pub struct ListRegistrations(pub Scope, pub RegistrationQuery);

/// The live rooms that a viewer may see.
#[derive(Debug)]
pub struct ListRooms(pub RoomViewer, pub Option<OrganisationId>, pub Window);

/// The number of members in each of these rooms.
#[derive(Debug)]
pub struct MembersOfRooms(pub Vec<RoomId>);

/// Merges two calls into one room.
#[derive(Debug)]
pub struct Merge {
    /// The call that the room is named after.
    pub call: CallId,
    /// The other call.
    pub with: CallId,
    /// The requester.
    pub by: Requester,
}

/// Begins an operation on a live call; the answer is the call to a transfer's target, or otherwise the same call.
#[derive(Debug)]
pub struct Operate(pub CallOperation);

/// The phones on a live call; the answer is `None` when the call is not live.
#[derive(Debug)]
pub struct PhonesOnCall(pub CallId);

/// Places a requested call.
#[derive(Debug)]
pub struct PlaceCall(pub CallOrder);

/// Replaces the bindings of these extensions at other nodes; the answer contains the extensions that are not in the
/// directory yet.
#[derive(Debug)]
pub struct ReplaceElsewhere(pub Vec<BindingsElsewhere>);

/// Replaces the owners of these rooms; the answer is the number of rooms that this node has lost.
#[derive(Debug)]
pub struct ReplaceRoomOwners(pub Vec<(RoomId, RoomOwner)>);

/// Applies the credit that was reserved for the organisations at this node.
#[derive(Debug)]
pub struct ReserveCredit(pub Vec<CreditReserved>);

/// Restores bindings of an earlier process; the answer is their number.
#[derive(Debug)]
pub struct RestoreBindings(pub Vec<KeptExtension>);

/// The live room of a call, found by the call's id or that of any of its legs.
#[derive(Debug)]
pub struct RoomOfCall(pub Uuid);

/// Sends notes to phones.
#[derive(Debug)]
pub struct SendNotes(pub Vec<Dispatch>);

/// Registers with the trunks whose home is this node now; ends other registrations.
#[derive(Debug)]
pub struct ShareTrunks(pub TrunkHomes);

/// The state of a trunk; the answer is `None` when the directory has no such trunk.
#[derive(Debug)]
pub struct StatusOfTrunk(pub TrunkId);

/// The bindings that changed since the last query, of up to this number of extensions.
#[derive(Debug)]
pub struct TakeChangedBindings(pub usize);

/// The bindings for the other nodes, of up to this number of extensions: at first all, then the changed ones.
#[derive(Debug)]
pub struct TakeNodeBindings(pub usize);

/// The needs of organisations with a limit for their outbound calls at this node.
#[derive(Debug)]
pub struct TakeOutboundNeeds;

/// The rooms that are live or wanted here, which need an owner.
#[derive(Debug)]
pub struct TakeWantedRooms;

/// Checks these fields without any effect; the answer lists the problems.
#[derive(Debug)]
pub struct WrongFields(pub GivenFields);

/// Declares the queries with their answers.
macro_rules! questions {
    ($($name:ident => $answer:ty,)*) => {
        /// A query to the switch.
        pub enum Query {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)*
        }

        /// The answer to a query.
        pub enum Answer {
            $(#[doc = concat!("Answers [`", stringify!($name), "`].")] $name($answer),)*
        }

        $(impl Question for $name {
            type Answer = $answer;

            fn query(self) -> Query {
                Query::$name(self)
            }

            fn answer(answer: Answer) -> Option<$answer> {
                match answer {
                    Answer::$name(answer) => Some(answer),
                    _ => None,
                }
            }
        })*

        impl fmt::Debug for Query {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Query::$name(_) => stringify!($name),)* })
            }
        }

        impl fmt::Debug for Answer {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Answer::$name(_) => stringify!($name),)* })
            }
        }
    };
}

questions! {
    AnswerMessage => (),
    CallQuality => QualityAnswer,
    CancelCall => Result<(), CancelRefused>,
    CheckCall => Result<Placeable, PlaceRefused>,
    ControlRoom => Result<ControlDone, ControlRefused>,
    CreditNeeds => Vec<CreditNeed>,
    DecideOutbound => (),
    DevicesOf => Vec<String>,
    DialIntoRoom => Result<RoomDialled, ControlRefused>,
    EndCall => bool,
    ExpectRoom => bool,
    FindCall => Option<Box<LiveCall>>,
    FindRoom => Option<LiveRoom>,
    HandOverRoom => Option<RoomState>,
    KeepRoom => (),
    ListCalls => Page<LiveCall>,
    ListRegistrations => Page<RegistrationRecord>,
    ListRooms => Page<LiveRoom>,
    MembersOfRooms => Vec<u32>,
    Merge => Result<LiveRoom, MergeRefused>,
    Operate => Result<CallId, OperationRefused>,
    PhonesOnCall => Option<CallPhones>,
    PlaceCall => Result<(), PlaceRefused>,
    ReplaceElsewhere => Vec<ExtensionId>,
    ReplaceRoomOwners => usize,
    ReserveCredit => (),
    RestoreBindings => usize,
    RoomOfCall => Option<LiveRoom>,
    SendNotes => (),
    ShareTrunks => (),
    StatusOfTrunk => Option<TrunkStatus>,
    TakeChangedBindings => Vec<KeptExtension>,
    TakeNodeBindings => Vec<NodeBindings>,
    TakeOutboundNeeds => Vec<OutboundNeeds>,
    TakeWantedRooms => WantedRooms,
    WrongFields => Vec<FieldProblem>,
}
