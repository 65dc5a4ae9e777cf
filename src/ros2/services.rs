//! Services of a graph: how they are offered and answered, and the messages of std_srvs.

use anyhow::Result;
use ros2_client::dds::rustdds::CDRSerializerAdapter;
use ros2_client::dds::rustdds::no_key::SerializerAdapter;
use ros2_client::{
    Message, Name, Node, QosProfile, RmwRequestId, Server, ServiceMapping, ServiceTypeName,
};
use serde::{Deserialize, Serialize};

/// Request of `std_srvs/SetBool`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SetBool {
    pub(super) data: bool,
}

/// Request of `std_srvs/Trigger`. An empty message has a byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trigger {
    pub(super) structure_needs_at_least_one_member: u8,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Response {
    pub(super) success: bool,
    pub(super) message: String,
}

impl Response {
    pub(super) fn of(done: Result<String>) -> Self {
        match done {
            Ok(message) => Self { success: true, message },
            Err(error) => Self { success: false, message: format!("{error:#}") },
        }
    }
}

impl Message for SetBool {}
impl Message for Trigger {}
impl Message for Response {}

pub(super) fn serve<Q: Message + Clone + 'static, A: Message + Clone + 'static>(
    node: &mut Node,
    name: &Name,
    kind: ServiceTypeName,
) -> Result<Server<Q, A>> {
    let quality = QosProfile::publisher_default();
    Ok(node.create_server(ServiceMapping::Enhanced, name, &kind, quality.clone(), quality)?)
}

pub(super) fn receive<Q: Message + Clone + 'static, A: Message + Clone + 'static>(
    server: &Server<Q, A>,
) -> Option<(RmwRequestId, Q)> {
    let unreadable = |error| tracing::debug!("ROS 2: an unreadable request: {error}");
    server.receive_request().map_err(unreadable).ok().flatten()
}

pub(super) fn respond<Q: Message + Clone + 'static, A: Message + Clone + 'static>(
    server: &Server<Q, A>,
    id: RmwRequestId,
    response: A,
) {
    if let Err(error) = server.send_response(id, response) {
        tracing::debug!("ROS 2: an answer was lost: {error}");
    }
}

/// Largest values of an answer in bytes. RustDDS sends larger messages in fragments, and garbles the number of the
/// request in them, so they do not arrive.
const LARGEST: usize = 1250;

/// Returns as many values as an answer can hold. If there are more, a warning says so.
pub(super) fn fitting<T: Serialize>(mut values: Vec<T>) -> Vec<T> {
    let all = values.len();
    let size = |values: &Vec<T>| {
        let bytes = CDRSerializerAdapter::<Vec<T>>::to_bytes(values);
        bytes.map_or(usize::MAX, |bytes| bytes.len())
    };
    while size(&values) > LARGEST && values.pop().is_some() {}
    if values.len() < all {
        tracing::warn!(
            "ROS 2: an answer holds the first {} of {all} values, because larger ones do not arrive; ask for fewer at \
             once (`ros2 param get`), or see them all with `stereod config print`",
            values.len()
        );
    }
    values
}

pub(super) fn answer<Q: Message + Clone + 'static, A: Message + Clone + 'static>(
    server: &Server<Q, A>,
    mut work: impl FnMut(Q) -> A,
) {
    while let Some((id, request)) = receive(server) {
        respond(server, id, work(request));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_no_more_than_arrives() {
        let text = "x".repeat(95);
        // Each has its length, 96 bytes with the end.
        assert_eq!(fitting(vec![text.clone(); 12]).len(), 12);
        assert_eq!(fitting(vec![text; 13]).len(), 12);
        assert!(fitting(vec!["x".repeat(2000)]).is_empty());
    }
}
