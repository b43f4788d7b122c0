//! A client that reads only the events of rooms: the state built from them must equal the live rooms.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sidetone_model::ids::ConferenceSessionId;
use sidetone_model::room::event::{MemberChange, RoomChange, RoomEvent};
use sidetone_model::room::{LiveMember, LiveRoom, MemberGain, Role, RoomName};

/// The state built from the events.
#[derive(Default)]
pub(crate) struct Reader {
    rooms: BTreeMap<RoomName, Mirror>,
    /// Sessions that ended, with their last revision.
    ended: HashMap<ConferenceSessionId, u64>,
}

/// A room as built from its events.
struct Mirror {
    live: LiveRoom,
    by_all: BTreeSet<u32>,
    peak: usize,
}

impl Reader {
    /// Applies an event. No event may be missing, repeated or without effect.
    pub(crate) fn read(&mut self, news: &RoomEvent) {
        if let RoomChange::Opened { room_name } = &news.what {
            let live = LiveRoom {
                room: news.room,
                organisation_id: news.organisation_id,
                room_id: news.room_id,
                room_name: room_name.clone(),
                session_id: news.session,
                started_at: news.at,
                locked: false,
                recording: false,
                all_muted: false,
                run_seconds: 0,
                playing: None,
                revision: news.revision,
                members: Vec::new(),
            };
            let before = self.rooms.insert(news.room, Mirror { live, by_all: BTreeSet::new(), peak: 0 });
            assert!(before.is_none(), "opened twice");
            return;
        }
        if let Some(last) = self.ended.get_mut(&news.session) {
            assert!(matches!(news.what, RoomChange::Recorded { .. }), "after the end: {news:?}");
            assert_eq!(news.revision, *last + 1);
            *last = news.revision;
            return;
        }
        let room = self.rooms.get_mut(&news.room).expect("news of a room that is not open");
        assert_eq!((room.live.session_id, room.live.revision + 1), (news.session, news.revision));
        room.live.revision = news.revision;
        room.apply(&news.what);
        if news.what == RoomChange::Ended {
            assert!(room.live.members.is_empty(), "ended before the last left");
            assert!(room.peak > 0, "a session without anybody");
            self.ended.insert(news.session, news.revision);
            self.rooms.remove(&news.room);
        }
    }

    /// Returns the live rooms as built from the events.
    pub(crate) fn live(&self) -> impl Iterator<Item = &LiveRoom> {
        self.rooms.values().map(|room| &room.live)
    }

    /// Returns how many sessions ended.
    pub(crate) fn sessions(&self) -> usize {
        self.ended.len()
    }

    /// Fails unless `live` equals the state built from the events.
    pub(crate) fn agrees(&self, mut live: Vec<LiveRoom>) {
        for room in &mut live {
            room.run_seconds = 0;
            for member in &mut room.members {
                // Depends on the stored room, which the events do not contain.
                member.waiting = false;
            }
        }
        let told: Vec<_> = self.live().cloned().collect();
        assert_eq!(live, told, "the news tell another room than is read");
    }
}

impl Mirror {
    fn apply(&mut self, what: &RoomChange) {
        let room = &mut self.live;
        let by_all = &mut self.by_all;
        match what {
            RoomChange::AllMuted(on) => {
                room.all_muted = *on;
                for member in &mut room.members {
                    if *on && member.role == Role::Participant && !member.muted {
                        member.muted = true;
                        by_all.insert(member.id);
                    } else if !on && by_all.remove(&member.id) {
                        member.muted = false;
                    }
                }
            }
            RoomChange::Joined(person) => {
                let muted = room.all_muted && person.role == Role::Participant;
                if muted {
                    by_all.insert(person.member);
                }
                // A participant who was muted individually stays muted when promoted to moderator; a separate
                // event reports that.
                room.members.push(LiveMember {
                    id: person.member,
                    call_uuid: person.call_uuid,
                    number: person.number.clone(),
                    name: person.name.clone(),
                    role: person.role,
                    muted,
                    mute_locked: false,
                    deaf: false,
                    on_hold: false,
                    waiting: false,
                    gain: MemberGain::default(),
                    whisper_to: None,
                    talking: false,
                    joined_at: person.joined_at,
                    extension_id: person.extension_id,
                    team_id: None,
                });
                // A phone that takes its old seat has its old place.
                room.members.sort_by_key(|member| member.id);
                self.peak = self.peak.max(room.members.len());
            }
            RoomChange::Left { member, .. } => {
                let before = room.members.len();
                room.members.retain(|other| other.id != *member);
                assert_eq!(room.members.len() + 1, before, "nobody left");
            }
            RoomChange::Locked(on) => change(&mut room.locked, *on),
            RoomChange::Member { member, change: what } => {
                if *what == MemberChange::MuteLock(true) {
                    by_all.remove(member);
                }
                let member = self.member(*member);
                match *what {
                    MemberChange::Deaf(on) => change(&mut member.deaf, on),
                    MemberChange::Gain(gain) => {
                        assert_ne!(std::mem::replace(&mut member.gain, gain), gain, "news of no change");
                    }
                    MemberChange::Hold(on) => change(&mut member.on_hold, on),
                    MemberChange::MuteLock(on) => change(&mut member.mute_locked, on),
                    MemberChange::Whisper(to) => {
                        assert_ne!(std::mem::replace(&mut member.whisper_to, to), to, "news of no change");
                    }
                }
            }
            RoomChange::Playing(sound) => assert_eq!(room.playing.replace(*sound), None, "two at once"),
            RoomChange::Played { sound, .. } => assert_eq!(room.playing.take(), Some(*sound)),
            RoomChange::Recording(on) => change(&mut room.recording, *on),
            RoomChange::Muted { member, muted } => {
                by_all.remove(member);
                change(&mut self.member(*member).muted, *muted);
            }
            RoomChange::Talking { member, talking } => change(&mut self.member(*member).talking, *talking),
            RoomChange::Ended
            | RoomChange::Invited(_)
            | RoomChange::Merged { .. }
            | RoomChange::Recorded { .. }
            | RoomChange::RecordingChannels(_) => {}
            RoomChange::Opened { .. } => panic!("opened twice"),
        }
    }

    fn member(&mut self, id: u32) -> &mut LiveMember {
        self.live
            .members
            .iter_mut()
            .find(|member| member.id == id)
            .expect("news of somebody who is not there")
    }
}

fn change(before: &mut bool, after: bool) {
    assert_ne!(*before, after, "news of what was so already");
    *before = after;
}
