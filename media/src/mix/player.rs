//! Plays clips in the order in which they were requested.

use std::collections::VecDeque;
use std::sync::Arc;

use super::events::Events;
use super::rate::Rate;
use super::spread::Spread;
use super::words::MixEvent;
use super::{SeatKey, ramp};
use crate::audio::clip::Clip;

/// Clips to be played, and the position in the first of them.
#[derive(Debug)]
pub(super) struct Player {
    items: VecDeque<Item>,
    /// Samples of the first clip that were played already.
    at: usize,
    /// Whether the next tick is the last one, in which the sound fades out.
    fades: bool,
    spread: Spread,
}

#[derive(Debug)]
enum Item {
    Clip(Arc<Clip>),
    /// The clips of one command end here.
    End(u64),
}

impl Player {
    /// A player without clips.
    pub(super) fn new() -> Self {
        Player { items: VecDeque::new(), at: 0, fades: false, spread: Spread::new(Rate::Wide) }
    }

    /// Queues these clips. Returns `false` when there are too many; then none of them is played.
    pub(super) fn play(&mut self, clips: Vec<Arc<Clip>>, token: Option<u64>) -> bool {
        if self.items.len() + clips.len() + 1 > ITEMS_MAX {
            return false;
        }
        if self.items.is_empty() {
            self.spread.begin(Rate::Wide);
        }
        self.items.extend(clips.into_iter().map(Item::Clip));
        self.items.extend(token.map(Item::End));
        true
    }

    /// Plays this clip in place of all others.
    pub(super) fn replace(&mut self, clip: Arc<Clip>) {
        self.stop();
        self.play(vec![clip], None);
    }

    /// Drops every clip.
    pub(super) fn stop(&mut self) {
        self.items.clear();
        (self.at, self.fades) = (0, false);
    }

    /// Drops every clip after the next tick, in which the sound fades out.
    pub(super) fn fade_out(&mut self) {
        self.fades = !self.items.is_empty();
    }

    pub(super) fn is_idle(&self) -> bool {
        self.items.is_empty()
    }

    /// Writes the tick's samples, and silence after the last clip; `ended` is called with the token of each
    /// command whose clips end.
    pub(super) fn tick(&mut self, ended: impl FnMut(u64)) {
        self.fill(ended);
        if self.fades {
            ramp::sink(self.spread.source());
            self.stop();
        }
    }

    fn fill(&mut self, mut ended: impl FnMut(u64)) {
        let pcm = self.spread.source();
        pcm.fill(0);
        let mut rest = pcm;
        while let Some(item) = self.items.front() {
            match item {
                Item::Clip(clip) => {
                    let left = clip.samples().get(self.at..).unwrap_or_default();
                    let count = left.len().min(rest.len());
                    let (here, behind) = rest.split_at_mut(count);
                    here.iter_mut().zip(left).for_each(|(sample, said)| *sample = *said);
                    self.at += count;
                    if count < left.len() {
                        return;
                    }
                    self.at = 0;
                    rest = behind;
                }
                Item::End(token) => ended(*token),
            }
            self.items.pop_front();
        }
    }

    /// The tick's samples at `rate`.
    pub(super) fn heard(&mut self, rate: Rate) -> &[i16] {
        self.spread.make(rate);
        self.spread.at(rate)
    }
}

/// Clips that are played to one seat, over its other audio.
#[derive(Debug)]
pub(super) struct Announcer {
    player: Player,
    /// Loudness of the other audio, as a share of [`ramp::WHOLE`].
    share: i32,
}

impl Announcer {
    pub(super) fn new() -> Self {
        Announcer { player: Player::new(), share: ramp::WHOLE }
    }

    pub(super) fn player(&mut self) -> &mut Player {
        &mut self.player
    }

    /// Whether no clip plays any more and the other audio has its full loudness again.
    pub(super) fn is_over(&self) -> bool {
        self.player.is_idle() && self.share == ramp::WHOLE
    }

    /// Plays the tick over `pcm`; while a clip plays, the loudness of `pcm` moves to `lowered`.
    pub(super) fn speak(
        &mut self,
        seat: SeatKey,
        pcm: &mut [i16],
        (rate, lowered): (Rate, i32),
        events: &mut Events,
    ) {
        let target = if self.player.is_idle() { ramp::WHOLE } else { lowered };
        self.player.tick(|token| events.tell(MixEvent::Played { seat, token }));
        ramp::over(self.player.heard(rate), pcm, (self.share, target));
        self.share = target;
    }
}

/// A clip that repeats; all its listeners hear the same position.
#[derive(Debug)]
pub(super) struct Music {
    clip: Arc<Clip>,
    at: usize,
    spread: Spread,
}

impl Music {
    pub(super) fn new(clip: Arc<Clip>) -> Self {
        Music { clip, at: 0, spread: Spread::new(Rate::Wide) }
    }

    /// Whether it plays this clip.
    pub(super) fn plays(&self, clip: &Arc<Clip>) -> bool {
        Arc::ptr_eq(&self.clip, clip)
    }

    /// Advances by a tick, at these rates.
    pub(super) fn tick(&mut self, needed: impl Iterator<Item = Rate>) {
        let samples = self.clip.samples();
        let pcm = self.spread.source();
        if samples.is_empty() {
            pcm.fill(0);
        } else {
            let looped = samples.iter().cycle().skip(self.at);
            pcm.iter_mut().zip(looped).for_each(|(sample, note)| *sample = *note);
            self.at = (self.at + pcm.len()) % samples.len();
        }
        for rate in needed {
            self.spread.make(rate);
        }
    }

    /// The tick's samples at `rate`; before [`Music::tick`] those of the previous tick.
    pub(super) fn heard(&self, rate: Rate) -> &[i16] {
        self.spread.at(rate)
    }
}

/// Clips and command ends that may wait.
const ITEMS_MAX: usize = 64;
