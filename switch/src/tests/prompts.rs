//! Prompts that programs play into calls: the parties that hear them, their end, and the audio of the others meanwhile.

use std::time::Duration;

use expect_test::expect;
use sidetone_model::call_operation::{CallOperation, OperationRefused};
use sidetone_model::call_prompt::{LivePrompt, PlaySide};
use sidetone_model::ids::CallId;
use sidetone_model::prompt::Prompt;
use uuid::Uuid;

use crate::io::PortId;
use crate::machine::Input;
use crate::tests::conference_adapter::{CARRIER, WORLD, with_rooms};
use crate::tests::network::{Net, Plan};
use crate::tests::operations::refused;
use crate::tests::own_mix::check_after;

fn prompt(play: u128, side: PlaySide) -> LivePrompt {
    LivePrompt { play_id: Uuid::from_u128(play).into(), prompt: Prompt::Goodbye, side }
}

impl Net {
    fn play(&mut self, call: CallId, prompt: LivePrompt) -> Result<CallId, OperationRefused> {
        self.operate(CallOperation::Play(call, Some(prompt)))
    }

    fn stop_playing(&mut self, call: CallId) -> Result<CallId, OperationRefused> {
        self.operate(CallOperation::Play(call, None))
    }
}

#[test]
fn one_side_hears_a_prompt_in_the_place_of_the_other() {
    check_after(
        "1000 play goodbye callee 7
         1500 played 1 6
         2000 played 1 7
         3000 play goodbye caller 8
         3500 play -
         4000 played 0 8
         4500 play -",
        expect![[r#"
            1000 play goodbye callee 7
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      media 0 to no one
                      media 1 plays [Goodbye] as 7
            1500 played 1 6
            2000 played 1 7
                      prompt goodbye to callee finished
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 0 to 1
                      media 1 to 0
            3000 play goodbye caller 8
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      media 1 to no one
                      media 0 plays [Goodbye] as 8
            3500 play -
                      media 0 plays nothing
                      prompt goodbye to caller stopped
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 0 to 1
                      media 1 to 0
            4000 played 0 8
            4500 play -
        "#]],
    );
}

#[test]
fn both_sides_hear_a_prompt_until_it_has_ended_for_both() {
    check_after(
        "1000 play goodbye both 7
         2000 played 0 7
         2010 played 1 7",
        expect![[r#"
            1000 play goodbye both 7
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      media 0 to no one
                      media 1 to no one
                      media 0 plays [Goodbye] as 7
                      media 1 plays [Goodbye] as 7
            2000 played 0 7
            2010 played 1 7
                      prompt goodbye to both finished
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 0 to 1
                      media 1 to 0
        "#]],
    );
}

#[test]
fn another_prompt_takes_the_place_of_one_that_plays() {
    check_after(
        "1000 play goodbye callee 7
         2000 play goodbye caller 8
         2010 played 1 7
         3000 played 0 8",
        expect![[r#"
            1000 play goodbye callee 7
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      media 0 to no one
                      media 1 plays [Goodbye] as 7
            2000 play goodbye caller 8
                      media 1 plays nothing
                      prompt goodbye to callee replaced
                      media 0 to 1
                      media 1 to 0
                      media 1 to no one
                      media 0 plays [Goodbye] as 8
            2010 played 1 7
            3000 played 0 8
                      prompt goodbye to caller finished
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 0 to 1
                      media 1 to 0
        "#]],
    );
}

/// A prompt neither ends a pause of the recording nor unmutes a party.
#[test]
fn a_recording_goes_on_during_a_prompt_and_after_it() {
    check_after(
        "1000 record start
         1500 record pause
         2000 play goodbye callee 7
         2500 record resume
         3000 played 1 7
         4000 play goodbye callee 8
         4500 record stop
         5000 played 1 8",
        expect![[r#"
            1000 record start
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      record mix 100 Some([PortId(0), PortId(1)])
            1500 record pause
                      media 0 muted
                      media 1 muted
            2000 play goodbye callee 7
                      media 0 to no one
                      media 1 plays [Goodbye] as 7
            2500 record resume
                      media 0 unmuted
                      media 1 unmuted
            3000 played 1 7
                      prompt goodbye to callee finished
                      media 0 to 1
                      media 1 to 0
            4000 play goodbye callee 8
                      media 0 to no one
                      media 1 plays [Goodbye] as 8
            4500 record stop
                      mix 100 StopRecording
                      media 0 unmuted
                      media 1 unmuted
            5000 played 1 8
                      prompt goodbye to callee finished
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 0 to 1
                      media 1 to 0
        "#]],
    );
}

#[test]
fn the_party_on_hold_hears_a_prompt_in_the_place_of_the_music() {
    check_after(
        "1000 hold caller
         2000 play goodbye callee 7
         3000 played 1 7
         4000 play goodbye callee 8
         5000 hold -",
        expect![[r#"
            1000 hold caller
                      media 0 joins mix 100 in PCMU muted hears Nothing
                      media 1 joins mix 100 in PCMU muted hears Music
                      re-INVITE caller [20000 PCMU inactive v2]
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
            2000 play goodbye callee 7
                      media 1 plays [Goodbye] as 7
            3000 played 1 7
                      prompt goodbye to callee finished
            4000 play goodbye callee 8
                      media 1 plays [Goodbye] as 8
            5000 hold -
                      media 1 plays nothing
                      prompt goodbye to callee interrupted
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 0 to 1
                      media 1 to 0
        "#]],
    );
    check_after(
        "1000 play goodbye callee 7
         2000 hold caller",
        expect![[r#"
            1000 play goodbye callee 7
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      media 0 to no one
                      media 1 plays [Goodbye] as 7
            2000 hold caller
                      media 1 plays nothing
                      prompt goodbye to callee interrupted
                      media 0 joins mix 100 in PCMU muted hears Nothing
                      media 1 joins mix 100 in PCMU muted hears Music
                      re-INVITE caller [20000 PCMU inactive v2]
                      re-INVITE fork 0 [20002 PCMU sendonly v2]
        "#]],
    );
}

/// A new offer of a phone does not make the other party audible again.
#[test]
fn an_offer_does_not_end_a_prompt() {
    check_after(
        "1000 play goodbye callee 7
         2000 offer 0 5008 PCMU sendrecv
         3000 played 1 7",
        expect![[r#"
            1000 play goodbye callee 7
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      media 0 to no one
                      media 1 plays [Goodbye] as 7
            2000 offer 0 5008 PCMU sendrecv
                      media 1 party 5008 receive true send true
                      media 1 PCMU hears true speaks true
                      media 0 to 1
                      media 1 to 0
                      media 0 to no one
                      re-INVITE fork 0 200 [20002 PCMU sendrecv v2]
            3000 played 1 7
                      prompt goodbye to callee finished
                      media 0 leaves its mix
                      media 1 leaves its mix
                      media 0 to 1
                      media 1 to 0
        "#]],
    );
}

#[test]
fn the_end_of_the_call_and_a_room_end_a_prompt() {
    check_after(
        "1000 play goodbye both 7
         2000 bye caller",
        expect![[r#"
            1000 play goodbye both 7
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      media 0 to no one
                      media 1 to no one
                      media 0 plays [Goodbye] as 7
                      media 1 plays [Goodbye] as 7
            2000 bye caller
                      BYE fork 0 NORMAL_CLEARING
                      media 0 plays nothing
                      media 1 plays nothing
                      prompt goodbye to both call_ended
                      media 1 close
                      media 0 close
        "#]],
    );
    check_after(
        "1000 play goodbye caller 7
         2000 merge",
        expect![[r#"
            1000 play goodbye caller 7
                      media 0 is heard by mix 100 in PCMU
                      media 1 is heard by mix 100 in PCMU
                      media 1 to no one
                      media 0 plays [Goodbye] as 7
            2000 merge
                      media 0 plays nothing
                      prompt goodbye to caller interrupted
                      media 0 leaves its mix
                      media 1 leaves its mix
                      seat caller
                      seat fork 0
        "#]],
    );
}

#[test]
fn what_is_not_answered_or_cannot_be_decoded_hears_no_prompt() {
    let quiet = |script: &str| {
        let before = crate::tests::ladder::play(script);
        let after = crate::tests::ladder::play(&format!("{script}\n900 play goodbye both 7"));
        assert_eq!(after.strip_prefix(&before), Some("900 play goodbye both 7\n"), "{script}");
    };
    quiet("call 4000 PCMU sendrecv -> 1");
    quiet("call 4000 G729 sendrecv -> 1\n200 answered 0 5000 G729 sendrecv\n210 journalled");
}

#[test]
fn a_program_plays_a_prompt_and_reads_its_end() {
    let mut net = Net::new(with_rooms());
    net.register();
    net.is_player_slow = true;
    net.carrier(CARRIER, [Plan::Ring]);
    net.dial(WORLD);
    let ringing = net.live()[0].uuid;
    assert_eq!(refused(net.play(ringing, prompt(7, PlaySide::Both))), "conflict");
    assert_eq!(refused(net.play(CallId(Uuid::from_u128(9)), prompt(7, PlaySide::Both))), "gone");
    let mut net = Net::new(with_rooms());
    net.register();
    net.is_player_slow = true;
    net.carrier(CARRIER, [Plan::Accept]);
    net.dial(WORLD);
    let call = net.live()[0].uuid;
    assert_eq!(net.play(call, prompt(7, PlaySide::Callee)), Ok(call));
    assert_eq!(net.live()[0].playing, Some(prompt(7, PlaySide::Callee)));
    assert!(net.rooms.iter().any(|line| line == "2 is told goodbye"), "{:?}", net.rooms);
    net.feed(Input::Played(PortId(2), 7));
    net.run();
    assert_eq!((net.live()[0].playing, net.requests.clone()), (None, vec!["prompt finished".to_owned()]));
    // Stopping is repeatable; another prompt replaces one; the end of the call ends it.
    assert_eq!(net.stop_playing(call), Ok(call));
    for play in [8, 9] {
        assert_eq!(net.play(call, prompt(play, PlaySide::Both)), Ok(call));
    }
    net.hang_up();
    net.wait(Duration::from_secs(5));
    assert_eq!(net.requests[1..], ["prompt replaced", "prompt call_ended"]);
    assert_eq!(refused(net.stop_playing(call)), "gone");
    assert_eq!(net.records.len(), 1);
}

/// A transfer ends the prompt, and a linked call plays none.
#[test]
fn a_transfer_ends_a_prompt() {
    let mut desk = crate::tests::transfers::Desk::new([Plan::Accept]);
    desk.net.is_player_slow = true;
    let call = desk.net.live()[0].uuid;
    desk.net.play(call, prompt(7, PlaySide::Both)).unwrap();
    let to = sidetone_model::call_operation::TransferTarget::Number(crate::tests::transfers::BOB.to_owned());
    desk.net.transfer(call, None, to).unwrap();
    assert_eq!(desk.net.requests, ["prompt interrupted"]);
    assert_eq!(
        desk.net.play(call, prompt(8, PlaySide::Both)),
        Ok(call),
        "and may play to the joined parties"
    );
    desk.end();
}
