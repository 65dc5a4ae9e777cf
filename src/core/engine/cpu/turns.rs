//! Turns of the engines of a program on its cores. Teams of threads that share cores wait for each other's threads, so
//! pairs that take about equally long are matched one after the other. No turns are needed where the cores suffice for
//! the threads of all, nor where one pair is short compared with the other: that one would wait for long, and the long
//! one loses little.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::cores::Cores;
use crate::thread::{available, locked};

static ARE_TAKEN: AtomicBool = AtomicBool::new(false);

static QUEUE: Queue = Queue { order: Mutex::new(Order::new()), changed: Condvar::new() };

/// Name of the stage in which a pair waits for the pairs of other engines.
pub const TURN: &str = "turn of other rigs";

/// A pair is short compared with one that takes at least this many times as long.
const SHORT: u32 = 4;

/// From now on, engines on the CPU take turns.
pub fn take_turns() {
    ARE_TAKEN.store(true, Ordering::Relaxed);
}

/// The place of an engine among those that take turns.
pub struct Seat {
    cores: Option<Cores>,
    threads: usize,
    /// Expected time of a pair in nanoseconds; 0 before the first one.
    expected_ns: AtomicU64,
}

/// The right to work, until it is dropped.
pub struct Turn {
    queue: &'static Queue,
    seat: Arc<Seat>,
    number: u64,
    began: Instant,
    /// Time for which it was waited for.
    pub waited: Duration,
}

impl Seat {
    /// `cores`: those of the threads; `None`: all of the process.
    pub fn new(cores: Option<Cores>, threads: usize) -> Arc<Self> {
        Arc::new(Self { cores, threads, expected_ns: AtomicU64::new(0) })
    }

    /// Waits for the turn of a pair; `None` if engines take no turns.
    pub fn turn(self: &Arc<Self>) -> Option<Turn> {
        ARE_TAKEN.load(Ordering::Relaxed).then(|| QUEUE.wait(self.clone()))
    }

    fn claim(&self) -> Claim {
        let expected_ns = self.expected_ns.load(Ordering::Relaxed);
        Claim {
            cores: self.cores,
            room: self.cores.map_or_else(available, Cores::len),
            threads: self.threads,
            expected: (expected_ns > 0).then(|| Duration::from_nanos(expected_ns)),
        }
    }

    fn note(&self, time: Duration) {
        let (newest, before) = (time.as_nanos() as u64, self.expected_ns.load(Ordering::Relaxed));
        let expected = if before == 0 { newest } else { before.midpoint(newest) };
        self.expected_ns.store(expected.max(1), Ordering::Relaxed);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.seat.note(self.began.elapsed());
        self.queue.end(self.number);
    }
}

struct Queue {
    order: Mutex<Order>,
    changed: Condvar,
}

impl Queue {
    fn wait(&'static self, seat: Arc<Seat>) -> Turn {
        let asked = Instant::now();
        let mut order = locked(&self.order);
        let number = order.ask(seat.claim(), asked);
        let begun = self.changed.wait_while(order, |order| !order.begin(number));
        drop(begun.unwrap_or_else(PoisonError::into_inner));
        // One that waited behind this one may go beside it.
        self.changed.notify_all();
        let began = Instant::now();
        Turn { queue: self, seat, number, began, waited: began - asked }
    }

    fn end(&self, number: u64) {
        locked(&self.order).end(number);
        self.changed.notify_all();
    }
}

/// The cores that a pair is to be matched on, and for how long.
#[derive(Clone, Copy)]
struct Claim {
    /// `None`: all cores of the process.
    cores: Option<Cores>,
    /// Number of threads for which there are cores.
    room: usize,
    threads: usize,
    /// `None` for the first pair.
    expected: Option<Duration>,
}

impl Claim {
    fn shares_cores_with(&self, other: &Claim) -> bool {
        match (self.cores, other.cores) {
            (Some(own), Some(others)) => own.overlaps(others),
            _ => true,
        }
    }

    /// Reports whether one pair is short compared with the other. A first pair, whose time is not known, waits for none,
    /// and none for it.
    fn differs_much_from(&self, other: &Claim) -> bool {
        let Some((own, other)) = self.expected.zip(other.expected) else { return true };
        SHORT * own.min(other) <= own.max(other)
    }

    /// Reports whether this pair may be matched while the others are.
    fn fits_beside<'a>(&self, others: impl Iterator<Item = &'a Claim>) -> bool {
        let sharing: Vec<_> = others.filter(|other| self.shares_cores_with(other)).collect();
        let threads: usize = sharing.iter().map(|other| other.threads).sum();
        threads + self.threads <= self.room
            || sharing.iter().all(|other| self.differs_much_from(other))
    }
}

/// The pairs that wait or are matched. Each is due once it has waited for as long as it takes, and the one that is due
/// first comes first: so shorter pairs overtake longer ones, and none waits for ever.
struct Order {
    asked: u64,
    first: Option<Instant>,
    waiting: Vec<Waiting>,
    working: Vec<(u64, Claim)>,
}

struct Waiting {
    number: u64,
    due: Duration,
    claim: Claim,
}

impl Order {
    const fn new() -> Self {
        Self { asked: 0, first: None, waiting: Vec::new(), working: Vec::new() }
    }

    /// Adds a pair, and returns its number.
    fn ask(&mut self, claim: Claim, now: Instant) -> u64 {
        let first = *self.first.get_or_insert(now);
        let due = now.saturating_duration_since(first) + claim.expected.unwrap_or_default();
        let number = self.asked;
        self.asked += 1;
        self.waiting.push(Waiting { number, due, claim });
        number
    }

    /// Lets a pair begin, if it may: beside those that are matched, and those that come before it.
    fn begin(&mut self, number: u64) -> bool {
        let Some(place) = self.waiting.iter().position(|pair| pair.number == number) else {
            return true;
        };
        let own = &self.waiting[place];
        let comes_before = |pair: &&Waiting| (pair.due, pair.number) < (own.due, number);
        let before = self.waiting.iter().filter(comes_before).map(|pair| &pair.claim);
        let working = self.working.iter().map(|(_, claim)| claim);
        let may_begin = own.claim.fits_beside(working.chain(before));
        if may_begin {
            let Waiting { claim, .. } = self.waiting.remove(place);
            self.working.push((number, claim));
        }
        may_begin
    }

    fn end(&mut self, number: u64) {
        self.working.retain(|(other, _)| *other != number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "0-3";

    /// Rigs that have a pair again as soon as the one before is matched, by a clock of their own.
    struct Machine {
        start: Instant,
        now: u64,
        order: Order,
        rigs: Vec<Rig>,
    }

    struct Rig {
        claim: Claim,
        takes: u64,
        /// Time from the arrival of a pair to that of the next one.
        every: u64,
        next: u64,
        /// Number, arrival and end of its pair.
        at_work: Option<(u64, u64, Option<u64>)>,
        matched: u64,
        longest: u64,
    }

    fn claim(cores: &str, threads: usize, ms: u64) -> Claim {
        let cores: Cores = cores.parse().unwrap();
        let expected = (ms > 0).then(|| Duration::from_millis(ms));
        Claim { cores: Some(cores), room: cores.len(), threads, expected }
    }

    /// A rig whose pairs come in this period and take so long on all of its cores.
    fn rig(cores: &str, takes: u64, every: u64) -> Rig {
        let claim = claim(cores, cores.parse::<Cores>().unwrap().len(), takes);
        Rig { claim, takes, every, next: 0, at_work: None, matched: 0, longest: 0 }
    }

    impl Machine {
        /// Runs rigs for so many milliseconds. Pairs beside others take no longer, because the machine only counts.
        fn run(rigs: Vec<Rig>, ms: u64) -> Vec<(u64, u64)> {
            let mut machine = Self { start: Instant::now(), now: 0, order: Order::new(), rigs };
            while machine.now < ms {
                machine.step();
                machine.now += 1;
            }
            machine.rigs.iter().map(|rig| (rig.matched, rig.longest)).collect()
        }

        fn step(&mut self) {
            let (now, order) = (self.now, &mut self.order);
            let instant = self.start + Duration::from_millis(now);
            for rig in &mut self.rigs {
                if let Some((number, arrived, Some(end))) = rig.at_work
                    && end <= now
                {
                    order.end(number);
                    rig.at_work = None;
                    rig.matched += 1;
                    rig.longest = rig.longest.max(now - arrived);
                }
                if rig.at_work.is_none() && rig.next <= now {
                    rig.at_work = Some((order.ask(rig.claim, instant), now, None));
                    rig.next = now + rig.every;
                }
            }
            for rig in &mut self.rigs {
                if let Some((number, _, end @ None)) = &mut rig.at_work
                    && order.begin(*number)
                {
                    *end = Some(now + rig.takes);
                }
            }
        }
    }

    #[test]
    fn equal_rigs_on_the_same_cores_match_in_turn() {
        let counts = Machine::run(vec![rig(ALL, 20, 0), rig(ALL, 20, 0), rig(ALL, 20, 0)], 6000);
        for (matched, longest) in counts {
            assert!((98..=100).contains(&matched) && longest <= 62, "{matched} {longest}");
        }
    }

    #[test]
    fn rigs_with_cores_of_their_own_take_no_turns() {
        let counts = Machine::run(vec![rig("0-1", 20, 0), rig("2-3", 20, 0)], 2000);
        assert!(counts.iter().all(|&(matched, _)| matched >= 99), "{counts:?}");
        // Nor do those whose threads find cores among all.
        let few = |ms| Rig { claim: claim(ALL, 2, ms), ..rig(ALL, ms, 0) };
        let counts = Machine::run(vec![few(20), few(20)], 2000);
        assert!(counts.iter().all(|&(matched, _)| matched >= 99), "{counts:?}");
        let counts = Machine::run(vec![few(20), few(20), few(20)], 2100);
        let all: u64 = counts.iter().map(|(matched, _)| matched).sum();
        assert!((205..=210).contains(&all), "two of three at once: {counts:?}");
    }

    #[test]
    fn a_short_pair_does_not_wait_for_a_long_one() {
        let counts = Machine::run(vec![rig(ALL, 160, 66), rig(ALL, 5, 66)], 10_000);
        let [(long, _), (short, longest)] = counts[..] else { panic!() };
        assert!(short >= 150 && longest <= 6, "{short} pairs, the last after {longest} ms");
        assert!(long >= 61, "{long}");
    }

    #[test]
    fn shorter_pairs_come_first_and_starve_no_longer_ones() {
        // No pair is so short that it goes beside another one. Both rigs together have more pairs than can be matched.
        let counts = Machine::run(vec![rig(ALL, 60, 66), rig(ALL, 20, 66)], 10_000);
        let [(long, _), (short, longest)] = counts[..] else { panic!() };
        assert!(short >= 145 && longest <= 80, "{short} of 152 pairs, at most after {longest} ms");
        assert!(long >= 115, "{long}");
        // Rigs that always have a pair have about as many turns each.
        let counts = Machine::run(vec![rig(ALL, 60, 0), rig(ALL, 30, 0), rig(ALL, 20, 0)], 12_000);
        for (matched, longest) in counts {
            assert!(matched >= 105 && longest <= 130, "{matched} {longest}");
        }
    }

    #[test]
    fn only_pairs_that_take_about_equally_long_wait_for_each_other() {
        let (mut order, now) = (Order::new(), Instant::now());
        for (number, ms) in [200, 0, 10].into_iter().enumerate() {
            assert_eq!(order.ask(claim(ALL, 4, ms), now), number as u64);
            assert!(order.begin(number as u64), "{ms}");
        }
        let (long, short) = (0, 2);
        let [medium, other] = [60, 12].map(|ms| order.ask(claim(ALL, 4, ms), now));
        assert!(!order.begin(medium) && !order.begin(other));
        order.end(short);
        assert!(order.begin(other) && !order.begin(medium), "the long one is at work");
        order.end(long);
        assert!(order.begin(medium));
    }

    #[test]
    fn the_expected_time_follows_the_last_ones() {
        let seat = Seat::new(None, 2);
        let expected = |seat: &Seat| seat.claim().expected;
        assert_eq!(expected(&seat), None);
        seat.note(Duration::from_millis(80));
        assert_eq!(expected(&seat), Some(Duration::from_millis(80)));
        seat.note(Duration::from_millis(40));
        assert_eq!(expected(&seat), Some(Duration::from_millis(60)));
        assert!(seat.turn().is_none(), "one engine needs no turns");
    }

    #[test]
    fn a_turn_that_ends_in_a_panic_ends_too() {
        static OF_TEST: Queue = Queue { order: Mutex::new(Order::new()), changed: Condvar::new() };
        let seat = Seat::new(None, 1000);
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _turn = OF_TEST.wait(seat.clone());
            panic!("of the test");
        }));
        let turn = OF_TEST.wait(seat.clone());
        let (other, order) = (seat.clone(), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _turn = OF_TEST.wait(other);
                locked(&order).push("other");
            });
            while locked(&OF_TEST.order).waiting.is_empty() {
                std::thread::yield_now();
            }
            locked(&order).push("own");
            drop(turn);
        });
        assert_eq!(*locked(&order), ["own", "other"]);
    }
}
