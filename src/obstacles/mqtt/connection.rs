//! Thread that keeps the connection to the broker.

use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rumqttc::{
    AsyncClient, ClientError, ConnectReturnCode, ConnectionError, Event, EventLoop, MqttOptions,
    Outgoing, Packet, QoS, SubscribeReasonCode,
};
use serde::Serialize;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::frigate::Tracked;
use super::topics::{OFFLINE, ONLINE, Topics};
use super::{PASSWORD, USER};

/// Pause after the first failed attempt; it doubles with every further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Longest time for the last messages of a run.
const PARTING: Duration = Duration::from_secs(2);

/// States that wait for the broker: at most one for each topic, the newest.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: Mutex<VecDeque<(usize, Vec<u8>)>>,
    ready: Notify,
    /// States that were replaced before they were sent, or not sent for another reason.
    pub(super) lost: AtomicU64,
}

impl Outbox {
    /// Leaves a state for a topic. One that still waits is dropped and counted.
    pub(super) fn post(&self, topic: usize, state: &impl Serialize) {
        let payload = match serde_json::to_vec(state) {
            Ok(payload) => payload,
            Err(error) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return tracing::warn!("a state for MQTT cannot be written: {error}");
            }
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.iter_mut().find(|(other, _)| *other == topic) {
            Some((_, older)) => {
                *older = payload;
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
            None => waiting.push_back((topic, payload)),
        }
        drop(waiting);
        self.ready.notify_one();
    }

    fn take(&self) -> Option<(usize, Vec<u8>)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    async fn next(&self) -> (usize, Vec<u8>) {
        loop {
            if let Some(state) = self.take() {
                return state;
            }
            self.ready.notified().await;
        }
    }
}

/// Connection, and what it carries.
pub(super) struct Connection {
    client: AsyncClient,
    event_loop: EventLoop,
    topics: Arc<Topics>,
    outbox: Arc<Outbox>,
    tracked: Option<Arc<Tracked>>,
    stop: Arc<Notify>,
    outage: Outage,
}

impl Connection {
    pub(super) fn new(
        options: MqttOptions,
        topics: &Arc<Topics>,
        outbox: &Arc<Outbox>,
        tracked: Option<&Arc<Tracked>>,
        stop: &Arc<Notify>,
    ) -> Self {
        let (host, port) = options.broker_address();
        let has_login = options.credentials().is_some();
        let outage = Outage::new(format!("{host}:{port}"), has_login);
        // Without a queue between client and connection, as what is in there when it breaks is lost uncounted.
        let (client, event_loop) = AsyncClient::new(options, 0);
        let (topics, outbox, tracked, stop) =
            (topics.clone(), outbox.clone(), tracked.cloned(), stop.clone());
        Self { client, event_loop, topics, outbox, tracked, stop, outage }
    }

    /// Connects, again and again, until it is stopped.
    pub(super) async fn run(mut self) {
        loop {
            let connected = select! {
                () = self.stop.notified() => return,
                event = self.event_loop.poll() => event,
            };
            let error = match connected {
                Ok(Event::Incoming(Packet::ConnAck(_))) => {
                    self.outage.end(&self.outbox);
                    match self.serve().await {
                        Some(error) => error,
                        None => return self.part().await,
                    }
                }
                Ok(_) => continue,
                Err(error) => error,
            };
            if let Some(tracked) = &self.tracked {
                tracked.clear();
            }
            let pause = self.outage.fail(&error, &self.outbox);
            select! {
                () = self.stop.notified() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// Sends states until the connection breaks, and returns why; none if it was stopped.
    async fn serve(&mut self) -> Option<ConnectionError> {
        let Self { client, event_loop, topics, outbox, tracked, stop, .. } = self;
        let tracked = tracked.as_deref();
        let is_held = Cell::new(false);
        let receive = async {
            loop {
                match event_loop.poll().await {
                    Ok(event) => take_event(event, tracked),
                    Err(error) => return error,
                }
            }
        };
        let send = async {
            greet(client, topics, tracked).await?;
            loop {
                let (topic, payload) = outbox.next().await;
                is_held.set(true);
                client.publish(topics.state(topic), QoS::AtMostOnce, false, payload).await?;
                is_held.set(false);
            }
        };
        let send = async {
            let _gone: Result<Infallible, ClientError> = send.await;
        };
        let broken = select! {
            error = receive => Some(error),
            // Fails only without an event loop.
            () = send => None,
            () = stop.notified() => None,
        };
        if is_held.get() {
            outbox.lost.fetch_add(1, Ordering::Relaxed);
        }
        broken
    }

    /// Sends the states that wait and takes leave, so that the last will is not needed.
    async fn part(self) {
        let Self { client, mut event_loop, topics, outbox, .. } = self;
        let say = async {
            while let Some((topic, payload)) = outbox.take() {
                client.publish(topics.state(topic), QoS::AtMostOnce, false, payload).await?;
            }
            client.publish(&topics.status, QoS::AtLeastOnce, true, OFFLINE).await?;
            client.disconnect().await
        };
        let send = async {
            let _gone: Result<(), ClientError> = say.await;
            std::future::pending::<()>().await;
        };
        let receive = async {
            while !matches!(
                event_loop.poll().await,
                Ok(Event::Outgoing(Outgoing::Disconnect)) | Err(_)
            ) {}
        };
        select! {
            () = receive => {}
            () = send => {}
            () = sleep(PARTING) => tracing::warn!("the MQTT broker did not take the last messages"),
        }
    }
}

/// Subscribes, and says who is there. All of it again after each connection, as brokers may forget.
async fn greet(
    client: &AsyncClient,
    topics: &Topics,
    tracked: Option<&Tracked>,
) -> Result<(), ClientError> {
    if let Some(tracked) = tracked {
        client.subscribe(tracked.topic(), QoS::AtMostOnce).await?;
    }
    if let Some((topic, payload)) = &topics.discovery {
        client.publish(topic, QoS::AtLeastOnce, true, payload.clone()).await?;
    }
    client.publish(&topics.status, QoS::AtLeastOnce, true, ONLINE).await
}

fn take_event(event: Event, tracked: Option<&Tracked>) {
    let Some(tracked) = tracked else {
        return;
    };
    match event {
        Event::Incoming(Packet::Publish(message)) => tracked.take(&message.payload),
        Event::Incoming(Packet::SubAck(answer))
            if answer.return_codes.contains(&SubscribeReasonCode::Failure) =>
        {
            tracing::warn!("the MQTT broker does not let this user read {}", tracked.topic());
        }
        Event::Incoming(_) | Event::Outgoing(_) => {}
    }
}

/// Time without a broker, and what was logged of it.
struct Outage {
    broker: String,
    has_login: bool,
    since: Option<Instant>,
    was_connected: bool,
    told: Vec<Trouble>,
    pause: Duration,
}

/// Kinds of failures, each of which is logged once for each outage.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    Away,
    Login,
    Tls,
}

impl Outage {
    fn new(broker: String, has_login: bool) -> Self {
        Self {
            broker,
            has_login,
            since: None,
            was_connected: false,
            told: Vec::new(),
            pause: FIRST_PAUSE,
        }
    }

    /// Logs a failure if its kind is new, and returns the pause before the next attempt.
    fn fail(&mut self, error: &ConnectionError, outbox: &Outbox) -> Duration {
        self.since.get_or_insert_with(Instant::now);
        let trouble = match error {
            ConnectionError::ConnectionRefused(
                ConnectReturnCode::BadUserNamePassword | ConnectReturnCode::NotAuthorized,
            ) => Trouble::Login,
            ConnectionError::Tls(_) => Trouble::Tls,
            _ => Trouble::Away,
        };
        if !self.told.contains(&trouble) {
            self.told.push(trouble);
            self.tell(trouble, error, outbox);
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        pause
    }

    fn tell(&self, trouble: Trouble, error: &ConnectionError, outbox: &Outbox) {
        let broker = &self.broker;
        let goes_on = "the run goes on, and so do attempts every 1 to 30 s";
        match trouble {
            Trouble::Login if self.has_login => {
                tracing::error!(
                    "the MQTT broker {broker} refuses the user or password in {USER} and {PASSWORD}: {goes_on}"
                );
            }
            Trouble::Login => tracing::error!(
                "the MQTT broker {broker} wants a user and a password, in the environment variables {USER} and \
                {PASSWORD}, which are not set: {goes_on}"
            ),
            Trouble::Tls => tracing::error!(
                "TLS with the MQTT broker {broker} fails: {error}. Its certificate must be for this host name and from an \
                authority that this system or the given file of certificates knows; {goes_on}"
            ),
            Trouble::Away if self.was_connected => {
                let lost = outbox.lost.load(Ordering::Relaxed);
                tracing::warn!(
                    "the MQTT broker {broker} is lost: {error} ({lost} states dropped so far); {goes_on}"
                );
            }
            Trouble::Away => {
                tracing::warn!("the MQTT broker {broker} is not there: {error}; {goes_on}")
            }
        }
    }

    /// Logs that the broker is there.
    fn end(&mut self, outbox: &Outbox) {
        let broker = &self.broker;
        match self.since.take() {
            Some(since) => {
                let lost = outbox.lost.load(Ordering::Relaxed);
                let missed = since.elapsed().as_secs_f64();
                tracing::info!(
                    "the MQTT broker {broker} is back after {missed:.1} s ({lost} states dropped so far)"
                );
            }
            None => tracing::info!("connected to the MQTT broker {broker}"),
        }
        self.was_connected = true;
        self.told.clear();
        self.pause = FIRST_PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_state_of_each_topic_waits() {
        let outbox = Outbox::default();
        for (topic, state) in [(1, "a"), (0, "b"), (1, "c"), (1, "d")] {
            outbox.post(topic, &state);
        }
        assert_eq!(outbox.lost.load(Ordering::Relaxed), 2);
        let taken: Vec<_> = std::iter::from_fn(|| outbox.take()).collect();
        assert_eq!(taken, [(1, b"\"d\"".to_vec()), (0, b"\"b\"".to_vec())]);
    }

    #[test]
    fn pauses_grow_and_kinds_of_trouble_are_told_once() {
        let outbox = Outbox::default();
        let mut outage = Outage::new("broker:1883".into(), true);
        let login = ConnectionError::ConnectionRefused(ConnectReturnCode::NotAuthorized);
        let pauses: Vec<u64> = (0..7)
            .map(|_| outage.fail(&ConnectionError::NetworkTimeout, &outbox).as_secs())
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        outage.fail(&login, &outbox);
        outage.fail(&ConnectionError::FlushTimeout, &outbox);
        assert_eq!(outage.told, [Trouble::Away, Trouble::Login]);
        outage.end(&outbox);
        assert!(outage.told.is_empty() && outage.since.is_none());
        assert_eq!(outage.fail(&login, &outbox), FIRST_PAUSE);
    }
}
