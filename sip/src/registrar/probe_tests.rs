//! Tests of probes: the meaning of their answers, and their distribution over time.

use std::time::{Duration, Instant};

use expect_test::expect;

use super::*;
use crate::registrar::tests::{check_with, register};

/// A phone that leaves two probes unanswered is not called, but stays registered; an answer or a registration makes it
/// callable again. A result for its earlier address is ignored.
#[test]
fn a_phone_that_does_not_answer_is_not_called_until_it_does() {
    check_with(
        RegistrarConfig::default(),
        "0 reg 10.0.2.1:5060 a 1 Contact: <sip:1001@10.0.2.1>
         59 tick
         60 tick
         92 probe 0 10.0.2.1:5060 unanswered
         93 look
         119 tick
         120 tick
         152 probe 0 10.0.2.1:5060 unanswered
         153 look
         180 tick
         181 probe 0 10.0.2.1:5060 answered
         182 look
         190 probe 0 10.0.2.1:5060 refused
         191 look
         192 reg 10.0.2.1:5060 a 2 Contact: <sip:1001@10.0.2.1>
         193 look
         194 reg 10.0.2.1:5061 a 3 Contact: <sip:1001@10.0.2.1>
         195 probe 0 10.0.2.1:5060 refused
         196 look",
        expect![[r#"
                0s 200
                     Contact: <sip:1001@10.0.2.1>;expires=3600
                0s   > new 0
               60s   > keep alive sip:1001@10.0.2.1 by 10.0.2.1:5060
               93s sip:1001@10.0.2.1 by 10.0.2.1:5060
              120s   > keep alive sip:1001@10.0.2.1 by 10.0.2.1:5060
              152s   > 0 is Unreachable
              180s   > keep alive sip:1001@10.0.2.1 by 10.0.2.1:5060
              181s   > 0 is Reachable
              182s sip:1001@10.0.2.1 by 10.0.2.1:5060
              190s   > 0 is Unreachable
              192s 200
                     Contact: <sip:1001@10.0.2.1>;expires=3600
              192s   > refreshed 0
              193s sip:1001@10.0.2.1 by 10.0.2.1:5060
              194s 200
                     Contact: <sip:1001@10.0.2.1>;expires=3600
              194s   > moved 0 to 10.0.2.1:5061
              194s   > refreshed 0
              196s sip:1001@10.0.2.1 by 10.0.2.1:5061
            1 left
        "#]],
    );
}

/// 1,000 phones of one domain and one of another register at the same time: their probes are spread over half of the
/// interval, no second exceeds its share, and the other domain is not delayed.
#[test]
fn probes_are_spread_and_the_domains_take_turns() {
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to count from")]
    let start = Instant::now();
    let config = RegistrarConfig { probes_per_second: 100, ..RegistrarConfig::default() };
    let mut registrar = Registrar::new(config);
    let register = |registrar: &mut Registrar, n: usize, aor: String| {
        let source = format!("10.0.2.{}:{}", n % 200, 5_000 + n);
        let (request, flow) = register(&format!("{source} c{n} 1 Contact: <sip:p@{source}>"));
        let registration = Registration::from_request(&request, flow).unwrap();
        registrar.register(start, &aor, registration).unwrap();
    };
    for n in 0..1_000 {
        register(&mut registrar, n, format!("{n}@many.test"));
    }
    register(&mut registrar, 1_000, "1@few.test".to_owned());
    let (mut sent, mut few) = (vec![0_usize; 61], None);
    while let Some(at) = registrar.next_timeout().filter(|at| *at <= start + Duration::from_secs(60)) {
        registrar.handle_input(at, Input::Timeout);
        while let Some(output) = registrar.poll_output() {
            if let Output::KeepAlive { aor, .. } = output {
                sent[usize::try_from((at - start).as_secs()).unwrap()] += 1;
                few = few.or((&*aor == "1@few.test").then_some(at));
            }
        }
    }
    assert_eq!(sent.iter().sum::<usize>(), 1_001);
    assert!(
        sent[..30].iter().all(|n| *n == 0) && sent[30..60].iter().all(|n| (20..50).contains(n)),
        "{sent:?}"
    );
    // After a pause all are due at the same time.
    let late = start + Duration::from_secs(200);
    let mut order = Vec::new();
    for step in 0..2_000_u32 {
        registrar.handle_input(late + Duration::from_millis(10) * step, Input::Timeout);
        while let Some(output) = registrar.poll_output() {
            if let Output::KeepAlive { aor, .. } = output {
                order.push((step, aor));
            }
        }
    }
    let first_second = order.iter().filter(|(step, _)| *step < 100).count();
    assert!((90..=110).contains(&first_second), "{first_second}");
    let place = order.iter().position(|(_, aor)| &**aor == "1@few.test").unwrap();
    assert!(place < 3, "{place}");
    assert!(few.is_some());
}
